import fc from 'fast-check';
import { SEED } from './runs.ts';

// A setup file of the tests: two runs of the same code draw the same cases.
fc.configureGlobal({ seed: SEED });
