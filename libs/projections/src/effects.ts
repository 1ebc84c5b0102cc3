import type { LogEventOf, LogEventType } from '@kronos/contracts';
import type { StateDraft } from './draft.ts';

/** The effect of each event on the state. The file of each concern exports the effects of its events, and `evolve.ts` has all of them. */
export type Effects = {
  readonly [T in LogEventType]: (draft: StateDraft, event: LogEventOf<T>) => void;
};
