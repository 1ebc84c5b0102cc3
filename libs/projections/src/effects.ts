import type { LogEventOf, LogEventType } from '@kronos/contracts';
import type { Draft } from './draft.ts';

/**
 * What an event changes in the state. The file of each concern exports the effects of its events, and `evolve.ts` has all of them.
 *
 * @param atMs when it happened, ms since the epoch, see `eventTimeMs`
 * @param storedAtMs the server's timestamp
 */
export type Effects = {
  readonly [T in LogEventType]: (draft: Draft, event: LogEventOf<T>, atMs: number, storedAtMs: number) => void;
};
