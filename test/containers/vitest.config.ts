import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { common } from '../common.ts';

/** The tests with containers, and with what is built for them: two at a time, as some wait for a cloud, and with time to build. */
export default defineConfig({
  test: {
    ...common,
    globalSetup: [fileURLToPath(new URL('setup.ts', import.meta.url))],
    include: ['test/{containers,deploy,console}/**/*.containers.test.ts'],
    testTimeout: 300_000,
    hookTimeout: 900_000,
    teardownTimeout: 60_000,
    maxWorkers: 2,
  },
});
