import { defineConfig } from 'vitest/config';
import { common } from '../common.ts';
import type { Mutant } from './mutants.ts';

const mutant: Mutant | null = JSON.parse(process.env.KRONOS_MUTANT ?? 'null');

/** The tests of one mutant. It exists only in what Vite hands to the tests: no file changes. */
export default defineConfig({
  plugins: [
    {
      name: 'mutant',
      enforce: 'pre',
      transform(code, id) {
        if (mutant === null || id.split('?')[0] !== `${common.root}${mutant.file}`) return undefined;
        return code.slice(0, mutant.start) + mutant.becomes + code.slice(mutant.end);
      },
    },
  ],
  test: {
    ...common,
    include: ['{libs,services,test}/**/*.{unit,int}.test.ts'],
    setupFiles: ['test/property/seed.ts'],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    bail: 1,
    pool: 'threads',
    isolate: false,
    // The cache key does not depend on the mutant.
    fsModuleCache: false,
    maxWorkers: 2,
  },
});
