import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The console in a real browser; also part of the tests with containers. */
export default defineConfig({
  test: {
    // What is expected and what came is printed whole: a line of a log is all that is left of a run elsewhere.
    chaiConfig: { truncateThreshold: 0 },
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['test/console/**/*.containers.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 600_000,
    fileParallelism: false,
  },
});
