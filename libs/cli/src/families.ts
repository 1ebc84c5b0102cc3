import type { Family } from '@kronos/contracts/names';

/** What `kronos tap` shows when no family is named: what was seen, decided, done and asked. */
export const DEFAULT_FAMILIES: readonly Family[] = ['snapshots', 'plans', 'results', 'controls', 'custody'];
