import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['{libs,services,test,scripts}/**/*.{unit,int,e2e}.test.ts'],
    // Far beyond what a test takes: they end only what hangs, also on a machine that is busy with other work.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    // Two cores carry four: most files wait for servers, leases and polls.
    maxWorkers: 4,
  },
});
