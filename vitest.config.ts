import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { seeded } from './test/property/seeded.ts';

/** Kinds of tests, the longest first: a file of minutes that starts last makes all the others wait for it. */
const KINDS = [/\/test\/.*\.e2e\.test\.ts$/, /\.e2e\.test\.ts$/, /\.int\.test\.ts$/];
const rank = ({ moduleId }: TestSpecification): number => {
  const kind = KINDS.findIndex((pattern) => pattern.test(moduleId));
  return kind === -1 ? KINDS.length : kind;
};

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  plugins: [seeded],
  test: {
    // What is expected and what came is printed whole: a line of a log is all that is left of a run elsewhere.
    chaiConfig: { truncateThreshold: 0 },
    include: ['{libs,services,test,scripts}/**/*.{unit,int,e2e}.test.ts'],
    sequence: { sequencer: LongestFirst },
    // Far beyond what a test takes: they end only what hangs, also on a machine that is busy with other work.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 120_000 } },
    // Two cores carry six: most files wait for servers, leases and polls.
    maxWorkers: 6,
  },
});
