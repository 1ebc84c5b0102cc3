import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The tests against a real OpenStack: one after the other, since they share one cloud, and with time to wait for it. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include: ['{libs,services,test}/**/*.openstack.test.ts'],
    globalSetup: [fileURLToPath(new URL('setup.ts', import.meta.url))],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 60_000,
    maxWorkers: 1,
    fileParallelism: false,
  },
});
