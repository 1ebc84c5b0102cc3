import type { LogEventOf, LogEventType } from '@kronos/contracts';
import type { Draft } from './draft.ts';

/** What an event changes in the state. The file of each concern exports the effects of its events, and `evolve.ts` has all of them. */
export type Effects = {
  readonly [T in LogEventType]: (draft: Draft, event: LogEventOf<T>) => void;
};
