import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';

/** The file that `npm run test:mutations -- --record` writes. */
export const SCORES = fileURLToPath(new URL('scores.json', import.meta.url));

const Score = z.strictObject({
  /** The commit that was measured. Files and lines of the survivors are those of this commit. */
  commit: z.string().regex(/^[0-9a-f]{8}$/),
  seed: z.int(),
  /** All mutants of the area. */
  mutants: z.int(),
  sampled: z.int(),
  noticed: z.int(),
  /** Percentage of the sample that was noticed, rounded down. */
  percent: z.int(),
  survivors: z.array(z.string()),
});
export type Score = z.infer<typeof Score>;

export const readScores = (): Readonly<Record<string, Score>> =>
  z.record(z.string(), Score).parse(JSON.parse(readFileSync(SCORES, 'utf8')));
