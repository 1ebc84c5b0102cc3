/** The entry of the script: what a page needs to fold the log, to decide again and to say why. Pure. */
export { canonicalJson } from '@kronos/contracts';
export { decideInput } from '@kronos/cycle';
export { decide, explain, isCounted, meaningOf, pictureOf, plannerVersion, score } from '@kronos/placement';
export { aggregateState, createFolder } from '@kronos/projections';
export { unpackSnapshots } from './snapshots.ts';
