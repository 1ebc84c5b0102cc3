import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vitest/config';

const SEED_FILE = fileURLToPath(new URL('seed.ts', import.meta.url));

/** Gives the properties of every test the seed of runs.ts. In the first line, so that line numbers stay. */
export const seeded: Plugin = {
  name: 'property-seed',
  enforce: 'pre',
  transform: (code, id) =>
    id.endsWith('.test.ts') && code.includes("from 'fast-check'")
      ? `import ${JSON.stringify(SEED_FILE)};${code}`
      : null,
};
