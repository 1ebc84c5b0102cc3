import { defineConfig } from 'vitest/config';
import { common } from '../common.ts';

/** The console in a real browser; also part of the tests with containers. */
export default defineConfig({
  test: {
    ...common,
    include: ['test/console/**/*.containers.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 600_000,
    fileParallelism: false,
  },
});
