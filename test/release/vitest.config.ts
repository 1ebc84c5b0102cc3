import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { common } from '../common.ts';

/** The files of a release, installed where they belong: whole systems are made and booted, one file after the other. */
export default defineConfig({
  test: {
    ...common,
    globalSetup: [fileURLToPath(new URL('setup.ts', import.meta.url))],
    include: ['test/release/**/*.release.test.ts'],
    testTimeout: 600_000,
    hookTimeout: 1_200_000,
    teardownTimeout: 120_000,
    maxWorkers: 1,
  },
});
