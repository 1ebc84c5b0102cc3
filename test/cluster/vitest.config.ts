import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The tests with three NATS servers: one after the other, as each fills a small machine. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/cluster/**/*.cluster.test.ts'],
    testTimeout: 240_000,
    hookTimeout: 120_000,
    maxWorkers: 1,
    fileParallelism: false,
  },
});
