import type { Family } from '@kronos/contracts/names';

/** The families that `kronos tap` shows by default: snapshots, plans, results and commands. */
export const DEFAULT_FAMILIES: readonly Family[] = ['snapshots', 'plans', 'results', 'controls', 'custody'];
