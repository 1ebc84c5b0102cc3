import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The tests of whole installations that lose a part of themselves: three at a time, as most of them wait. */
export default defineConfig({
  test: {
    // What is expected and what came is printed whole: a line of a log is all that is left of a run elsewhere.
    chaiConfig: { truncateThreshold: 0 },
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/recovery/**/*.recovery.test.ts'],
    // Far beyond what a test takes: they end only what hangs, also on a machine that is busy with other work.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 120_000 } },
    maxWorkers: 3,
  },
});
