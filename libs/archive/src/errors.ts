/** The errors of an archive: one class per meaning. */

/** A file of the archive is changed, cut, or missing. */
export class ArchiveBroken extends Error {
  readonly code = 'KRONOS_ARCHIVE_BROKEN';
  readonly remedy = 'Take another copy of the archive; what comes before this file can still be read.';
  readonly file: string;
  constructor(file: string, problem: string, options?: ErrorOptions) {
    super(`${file}: ${problem}`, options);
    this.name = 'ArchiveBroken';
    this.file = file;
  }
}

/** Events were to be written that do not follow the last one of the archive. */
export class ArchiveGap extends Error {
  readonly code = 'KRONOS_ARCHIVE_GAP';
  constructor(expected: number, actual: number) {
    super(`the archive continues with event ${expected}, but event ${actual} was to be written`);
    this.name = 'ArchiveGap';
  }
}

/** Somebody else writes to the archive. */
export class ArchiveTaken extends Error {
  readonly code = 'KRONOS_ARCHIVE_TAKEN';
  constructor(file: string) {
    super(`${file} was changed by somebody else: give every ledger an [ledger] archive_dir of its own`);
    this.name = 'ArchiveTaken';
  }
}
