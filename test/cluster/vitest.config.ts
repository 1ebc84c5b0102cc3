import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The tests with three NATS servers, or those of the night: one after the other, as each fills a small machine. */
export default defineConfig({
  test: {
    // What is expected and what came is printed whole: a line of a log is all that is left of a run elsewhere.
    chaiConfig: { truncateThreshold: 0 },
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: [`test/cluster/**/*.${process.env.KRONOS_NIGHTLY === '1' ? 'nightly' : 'cluster'}.test.ts`],
    testTimeout: 240_000,
    hookTimeout: 120_000,
    maxWorkers: 1,
    fileParallelism: false,
  },
});
