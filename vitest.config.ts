import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['{libs,services,test,scripts}/**/*.{unit,int,e2e}.test.ts'],
    // Where CI shares its machine a test may be starved of time: one more try, and the report names what needed it.
    retry: process.env.CI === undefined ? 0 : 1,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two cores carry the tests and the servers they start.
    maxWorkers: 2,
  },
});
