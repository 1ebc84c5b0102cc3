import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['{libs,services,test,scripts}/**/*.{unit,int,e2e}.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two cores carry the tests and the servers they start.
    maxWorkers: 2,
  },
});
