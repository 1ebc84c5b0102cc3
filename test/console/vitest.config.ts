import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The console in a real browser; also part of the tests with containers. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/console/**/*.containers.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 600_000,
    fileParallelism: false,
  },
});
