import { defineConfig } from 'vitest/config';
import { common } from '../common.ts';
import { nightly } from '../nightly.ts';

/** The tests against a real OpenStack, which must be up: one after the other, since they share one cloud, and with time to wait for it. */
export default defineConfig({
  test: {
    ...common,
    include: nightly
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
