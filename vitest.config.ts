import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Kinds of tests, the longest first: a file of minutes that starts last makes all the others wait for it. */
const KINDS = [/\/test\/.*\.e2e\.test\.ts$/, /\.e2e\.test\.ts$/, /\.int\.test\.ts$/];
const rank = ({ moduleId }: TestSpecification): number => {
  const kind = KINDS.findIndex((pattern) => pattern.test(moduleId));
  return kind === -1 ? KINDS.length : kind;
};

const SEED_FILE = fileURLToPath(new URL('test/property/seed.ts', import.meta.url));

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

/** Gives the properties of every test the seed of test/property/runs.ts. In the first line, so that line numbers stay. */
const seeded: Plugin = {
  name: 'property-seed',
  enforce: 'pre',
  transform: (code, id) =>
    id.endsWith('.test.ts') && code.includes("from 'fast-check'")
      ? `import ${JSON.stringify(SEED_FILE)};${code}`
      : null,
};

export default defineConfig({
  plugins: [seeded],
  test: {
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
