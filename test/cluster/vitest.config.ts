import { defineConfig } from 'vitest/config';
import { common } from '../common.ts';
import { nightly } from '../nightly.ts';

/** The tests with three NATS servers, or those of the night: one after the other, as each fills a small machine. */
export default defineConfig({
  test: {
    ...common,
    include: [`test/cluster/**/*.${nightly ? 'nightly' : 'cluster'}.test.ts`],
    testTimeout: 240_000,
    hookTimeout: 120_000,
    maxWorkers: 1,
    fileParallelism: false,
  },
});
