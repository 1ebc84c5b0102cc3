import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The tests with containers, and with what is built for them: two at a time, as some wait for a cloud, and with time to build. */
export default defineConfig({
  test: {
    // What is expected and what came is printed whole: a line of a log is all that is left of a run elsewhere.
    chaiConfig: { truncateThreshold: 0 },
    root: fileURLToPath(new URL('../..', import.meta.url)),
    globalSetup: [fileURLToPath(new URL('setup.ts', import.meta.url))],
    include: ['test/{containers,deploy,console}/**/*.containers.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 900_000,
    teardownTimeout: 60_000,
    maxWorkers: 2,
  },
});
