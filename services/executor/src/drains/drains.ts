/** Runs the drains that operators asked for: disables and enables the nova-compute services of hosts, and sees when the hosts are empty. */
import type { StoredEvent } from '@kronos/contracts';
import { AppendConflict, AppendWithdrawn } from '@kronos/eventlog';
import { type HostDeps, HostDrains } from './drainHost.ts';

export interface DrainsDeps extends HostDeps {
  /** The aggregates that this executor serves. */
  readonly aggregates: readonly string[];
  /** Why nothing may be done now: the log is in doubt, or the own clock is wrong; null: nothing is wrong. */
  readonly problem: () => string | null;
  /** Interval between two reads of Nova about the hosts that are being drained; without a drain nothing is read. Default 10 s. */
  readonly pollMs?: number;
}

/** Runs the drains of the aggregates that this executor serves. Any number of executors may do so at once. */
export interface Drains {
  /** An event was folded. */
  changed(stored: Pick<StoredEvent, 'event'>): void;
  /** Looks at once, and goes on for as long as there is a drain. */
  wake(): void;
  /** Stops: acts that are under way end before they send or write anything more. */
  stop(): void;
}

const POLL_MS = 10_000;
/** Events that may bring a drain forward: it is checked without waiting for the next poll. */
const WAKES: ReadonlySet<string> = new Set([
  'host.drainAsked',
  'host.undrainAsked',
  'aggregate.resumed',
  'planner.configured',
  'migration.completed',
]);

/** Advances all drains after an event that matters and at every poll, and never twice at the same time. */
export function runDrains(deps: DrainsDeps): Drains {
  const { aggregates, clock, logger } = deps;
  const stopping = new AbortController();
  const { signal } = stopping;
  const hosts = new HostDrains(deps, signal);
  let running: Promise<void> | null = null;
  let again = false;
  let cancel: (() => void) | null = null;

  const hostsIn = (aggregate: string): readonly string[] => [...deps.reader.at(aggregate).state.drains.keys()];

  function wake(): void {
    if (signal.aborted) return;
    again = running !== null;
    if (again) return;
    cancel?.();
    cancel = null;
    // Without a drain there is nothing to look after, until the log has one.
    if (aggregates.every((aggregate) => hostsIn(aggregate).length === 0)) return;
    running = advanceAll().finally(() => {
      running = null;
      if (signal.aborted) return;
      if (again) wake();
      else cancel = clock.after(deps.pollMs ?? POLL_MS, wake);
    });
  }

  async function advanceAll(): Promise<void> {
    for (const aggregate of aggregates) {
      if (hostsIn(aggregate).length === 0 || signal.aborted) continue;
      try {
        await advance(aggregate);
      } catch (error) {
        if (!signal.aborted)
          logger.warn(
            { aggregate, err: error },
            'the drains of an aggregate could not be continued; they are tried again',
          );
      }
    }
  }

  async function advance(aggregate: string): Promise<void> {
    const problem = deps.problem();
    if (problem !== null) {
      logger.warn({ aggregate }, `the drains of an aggregate wait: ${problem}`);
      return;
    }
    for (const host of hostsIn(aggregate)) {
      if (signal.aborted) return;
      try {
        await hosts.advance(aggregate, host);
      } catch (error) {
        // Another writer was first: decide again with its event.
        if (!(error instanceof AppendConflict || error instanceof AppendWithdrawn)) throw error;
      }
    }
  }

  return {
    changed: ({ event }) => {
      if (WAKES.has(event.type)) wake();
    },
    wake,
    stop() {
      stopping.abort();
      cancel?.();
    },
  };
}
