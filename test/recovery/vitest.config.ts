import { defineConfig } from 'vitest/config';
import { common } from '../common.ts';

/** The tests of whole installations that lose a part of themselves: three at a time, as most of them wait. */
export default defineConfig({
  test: {
    ...common,
    include: ['test/recovery/**/*.recovery.test.ts'],
    // Node loads the modules as it loads those of the services. No test replaces a module.
    experimental: { viteModuleRunner: false },
    // Far beyond what a test takes: they end only what hangs, also on a machine that is busy with other work.
    testTimeout: 900_000,
    hookTimeout: 900_000,
    expect: { poll: { timeout: 120_000 } },
    maxWorkers: 3,
  },
});
