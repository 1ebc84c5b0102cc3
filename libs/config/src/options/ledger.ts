import { bool, bytes, integer, LEDGER, optionalPath, seconds } from '../option.ts';

/** The options of the section `[ledger]`. */
export const ledger = {
  checkpoint_interval: seconds(300, {
    min: 1,
    by: LEDGER,
    help: 'Interval at which the ledger writes the folded state as a checkpoint.',
  }),
  checkpoint_events: integer(10000, {
    min: 1,
    by: LEDGER,
    help: 'A checkpoint is also written after this many events.',
  }),
  archive_dir: optionalPath({
    by: LEDGER,
    help: 'Directory for a second copy of the event log, as one JSON object per line. Not set: no archive.',
  }),
  archive_max_file_bytes: bytes(64 * 1024 ** 2, {
    min: 1024,
    by: LEDGER,
    help: 'The ledger starts the next file of the archive when a file has reached this size.',
  }),
  evidence_key: optionalPath({
    by: ['cli'],
    help: 'Ed25519 key (PEM) with which kronos evidence signs its files. Not set: they are not signed.',
  }),
  console: bool(true, {
    by: LEDGER,
    help: 'Serve the console to browsers. It is read-only unless [console] acting is set.',
  }),
} as const;
