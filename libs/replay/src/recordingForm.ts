/** The form of a recorded directory: its files by name, and its description. */
import { engineOptionsSchema, logMarkSchema, type ObjectRef, type Snapshot } from '@kronos/contracts';
import { z } from 'zod';
import { RecordingInvalid } from './errors.ts';

/** The form of a recorded directory. A later version reads every earlier one; form 1 has no chain and no range. */
export const FORM = 2;
export const COOLDOWNS = 'cooldowns.json';

export const aboutSchema = z.object({
  form: z.union([z.literal(1), z.literal(FORM)]),
  madeBy: z.string(),
  madeAt: z.iso.datetime(),
  anonymized: z.boolean(),
  aggregates: z.array(z.string()),
  /** Times of the first and the last snapshot that were to be recorded: the decisions of this range can be run again. */
  range: z.object({ since: z.iso.datetime(), until: z.iso.datetime() }).optional(),
  /** Which log was recorded, and up to which event. Recordings of Kronos 0.1 do not have it. */
  log: logMarkSchema.optional(),
  /** The snapshots are not files: they are put together from `sources/`, the history that others keep. */
  reconstructed: z.literal(true).optional(),
  /** The options in force at the end, by aggregate; for what-ifs where the log names none. */
  options: z.record(z.string(), engineOptionsSchema),
});
/** The description of a recorded directory, in its own file. */
export type About = z.infer<typeof aboutSchema>;

/** `2026-03-01T120000.123Z-gpu-29537.json`: names sort by time, and hold the id. */
export const fileOf = ({ time, id }: Pick<Snapshot, 'time' | 'id'>): string => `${time.replaceAll(':', '')}-${id}.json`;
/** The parts of such a name: day, hours, minutes, seconds, id. */
export const FILE = /^(\d{4}-\d{2}-\d{2}T)(\d{2})(\d{2})(\d{2}(?:\.\d+)?Z)-(.+)\.json$/;

/** The file of a decision's details, by their digest. */
export const detailsFile = (ref: ObjectRef): string => `${ref.digest.replace(/^sha256:/, '')}.json`;

/** The error for a file that does not have its form; it names the first field. */
export function invalid(file: string, error: z.ZodError): RecordingInvalid {
  const [issue] = error.issues;
  return new RecordingInvalid(file, `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'has another form'}`);
}
