import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The tests with three NATS servers: one after the other, as each fills a small machine. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/cluster/**/*.cluster.test.ts'],
    // Where CI shares its machine a test may be starved of time: one more try, and the report names what needed it.
    retry: process.env.CI === undefined ? 0 : 1,
    testTimeout: 240_000,
    hookTimeout: 120_000,
    maxWorkers: 1,
    fileParallelism: false,
  },
});
