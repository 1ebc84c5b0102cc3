import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { canonicalJson, type StoredEvent } from '@kronos/contracts';
import { createFolder, FOLD_VERSION, type Json, toParts } from '@kronos/projections';
import { readRecording } from '@kronos/replay';
import { z } from 'zod';

export const HISTORIES = join(import.meta.dirname, '../histories');
export const FOLD_FILE = join(HISTORIES, 'fold.json');
const COMMAND = 'node scripts/run.mjs node test/replay/writeFold.ts';

export const histories = (): string[] =>
  readdirSync(HISTORIES, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));

const foldRecordSchema = z.object({
  /** The `FOLD_VERSION` of the digests. */
  foldVersion: z.number(),
  /** History -> field of the state -> digest of each value that it has in the course of the log. */
  histories: z.record(z.string(), z.record(z.string(), z.string())),
});
export type FoldRecord = z.infer<typeof foldRecordSchema>;

export const recordedFold = (): FoldRecord => foldRecordSchema.parse(JSON.parse(readFileSync(FOLD_FILE, 'utf8')));

/** Digests of the values of one field, each with the sequence from which on it holds. */
class Course {
  readonly #hash = createHash('sha256');
  readonly #now = new Map<string, string>();

  see(sequence: number, aggregate: string, value: Json): void {
    const text = canonicalJson(value);
    if (this.#now.get(aggregate) === text) return;
    this.#now.set(aggregate, text);
    this.#hash.update(`${sequence} ${aggregate} ${text}\n`);
  }

  digest = (): string => this.#hash.digest('hex').slice(0, 16);
}

function digestsOf(events: readonly StoredEvent[]): Record<string, string> {
  const courses = new Map<string, Course>();
  const see = (prefix: string, sequence: number, aggregate: string, facts: object) => {
    for (const [field, value] of Object.entries(facts)) {
      const course = courses.get(prefix + field) ?? new Course();
      courses.set(prefix + field, course);
      course.see(sequence, aggregate, value);
    }
  };
  const folder = createFolder();
  for (const stored of events) {
    for (const { aggregate, sequence, state } of toParts(folder.apply(stored).snapshot(), '')) {
      const { facts, all } = state as { facts: object; all: object };
      see('', sequence, aggregate, facts);
      see('all.', sequence, '', all);
    }
  }
  return Object.fromEntries([...courses].map(([field, course]) => [field, course.digest()]));
}

/** The state that the recorded histories fold to now, as digests. */
export async function foldNow(): Promise<FoldRecord> {
  const digests: FoldRecord['histories'] = {};
  for (const name of histories()) {
    const { history } = await readRecording(join(HISTORIES, name));
    digests[name] = digestsOf(await Array.fromAsync(history.events()));
  }
  return { foldVersion: FOLD_VERSION, histories: digests };
}

/**
 * Why what the histories fold to now cannot be recorded: a field that was recorded has other values, and the version is the same or an older
 * one. Null: it can be. A field or a history that was not recorded needs no other version.
 */
export function foldBroken(recorded: FoldRecord, now: FoldRecord): string | null {
  const changed = Object.entries(recorded.histories).flatMap(([name, fields]) =>
    Object.entries(fields).flatMap(([field, digest]) => {
      const today = now.histories[name]?.[field];
      return today === undefined || today === digest ? [] : [`${name}: ${field}`];
    }),
  );
  if (changed.length === 0 || now.foldVersion > recorded.foldVersion) return null;
  return [
    `Events fold to other values than at fold version ${recorded.foldVersion}, in these fields of these histories:`,
    ...changed.map((one) => `  ${one}`),
    'A service that starts from a checkpoint of the old fold would find it wrong. Mend the fold if this is not meant. If it is, set FOLD_VERSION',
    `in libs/projections/src/checkpoint.ts to ${recorded.foldVersion + 1}, so that such checkpoints are skipped, and run ${COMMAND}.`,
  ].join('\n');
}

/** The error of the record with its remedy. Null: the histories fold to what is recorded. */
export function foldProblem(recorded: FoldRecord, now: FoldRecord): string | null {
  const broken = foldBroken(recorded, now);
  if (broken !== null || canonicalJson(recorded) === canonicalJson(now)) return broken;
  return `test/histories/fold.json lacks a history or a field, or is of another fold version than ${now.foldVersion}: run ${COMMAND}`;
}
