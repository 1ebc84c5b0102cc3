import fc from 'fast-check';
import { SEED } from './runs.ts';

// The plugin of seeded.ts imports this before every test that uses fast-check: two runs of the same code draw the same cases.
fc.configureGlobal({ seed: SEED });
