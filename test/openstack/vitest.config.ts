import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The tests against a real OpenStack, which must be up: one after the other, since they share one cloud, and with time to wait for it. */
export default defineConfig({
  test: {
    // Print expected and received values in full: of a run elsewhere only the log remains.
    chaiConfig: { truncateThreshold: 0 },
    root: fileURLToPath(new URL('../..', import.meta.url)),
    include:
      process.env.KRONOS_NIGHTLY === '1'
        ? ['test/{openstack,contract}/**/*.nightly.test.ts']
        : ['{libs,services,test}/**/*.openstack.test.ts'],
    // A file takes minutes, so report each case as it ends.
    reporters: ['verbose'],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    teardownTimeout: 60_000,
    maxWorkers: 1,
    fileParallelism: false,
  },
});
