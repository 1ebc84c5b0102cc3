import type { EngineOptions } from '@kronos/contracts';
import type { Draft } from '../draft.ts';
import { greedy } from './greedy.ts';

/** The imbalance planner in spread mode: adds its moves to the draft. */
export function spread(draft: Draft, options: Pick<EngineOptions, 'planner' | 'minGain' | 'searchWorkLimit'>): void {
  for (const { vm, to } of greedy(draft, options.minGain)) draft.apply(vm, to, 'spread', 'lowers-imbalance');
}
