import { type SnapshotTaken, subject } from '@kronos/contracts';
import { asksForPlan } from '@kronos/cycle';
import { AppendConflict, type Delivered, LogFull } from '@kronos/eventlog';
import { undispatched } from '@kronos/projections';
import { closeWatch } from './closeWatch.ts';
import { type SnapshotDecider, snapshotDecider } from './decideSnapshot.ts';
import { folded, type PlannerDeps } from './deps.ts';
import { dispatcher } from './dispatch.ts';
import { ownOptions, yieldTexts } from './ownOptions.ts';

export type Planner = {
  /** Runs until it was stopped and the log is closed; rejects when the log can no longer be read. */
  readonly run: () => Promise<void>;
  readonly stop: () => Promise<void>;
  /** The log or the own clock is no longer in doubt: does what waits for no snapshot. */
  readonly lookAgain: () => void;
  /** Aggregates whose newest snapshot has a time that cannot be trusted, and why. */
  readonly misdated: SnapshotDecider['misdated'];
  /** Why aggregates are not planned here: another planner, which started later, has other options for them. */
  readonly yielding: () => readonly string[];
  /** The aggregates of which a cycle takes longer to decide than until the next one is due. */
  readonly slow: SnapshotDecider['slow'];
};

/** Says why a cycle was not decided: the next snapshot is. */
function reportUndecided(error: unknown, aggregate: string, { logger, meters }: PlannerDeps): void {
  if (error instanceof AppendConflict) {
    // Somebody else decided: the log has the decision, this one is dropped.
    meters.notDecided(aggregate, 'lost-race');
    logger.debug({ aggregate }, 'another planner decided first');
  } else if (error instanceof LogFull) {
    meters.notDecided(aggregate, 'log-full');
    logger.error({ aggregate, err: error }, 'the event log is full: nothing is planned until its limit is raised');
  } else {
    meters.notDecided(aggregate, 'error');
    logger.error({ aggregate, err: error }, 'this cycle was not decided');
  }
}

/** The snapshots that wait for a decision: of each aggregate the newest, and all requests for plans, since each has an answer. */
class Undecided {
  readonly #newest = new Map<string, Delivered<SnapshotTaken>>();
  readonly #requests = new Map<string, Delivered<SnapshotTaken>[]>();

  put(aggregate: string, delivered: Delivered<SnapshotTaken>): void {
    if (delivered.problem === undefined && asksForPlan(delivered.message.data))
      this.#requests.set(aggregate, [...(this.#requests.get(aggregate) ?? []), delivered]);
    else this.#newest.set(aggregate, delivered);
  }

  /** Removes the one to decide next; undefined: none waits. */
  take(aggregate: string): Delivered<SnapshotTaken> | undefined {
    const request = this.#requests.get(aggregate)?.shift();
    if (request !== undefined) return request;
    const newest = this.#newest.get(aggregate);
    this.#newest.delete(aggregate);
    return newest;
  }
}

/**
 * Reads the newest snapshot of each aggregate, folds the log, decides, appends. Aggregates never wait for each other, and
 * each one is handled by one worker at a time.
 */
export function createPlanner(deps: PlannerDeps): Planner {
  const { log, view, meters } = deps;
  const own = ownOptions(deps);
  const undecided = new Undecided();
  const busy = new Map<string, Promise<void>>();
  let stopped = false;
  let fail: (error: unknown) => void = () => {};
  const state = folded(view);
  const { now } = state;
  const closes = closeWatch(deps, state, wake);
  const finishReleased = dispatcher(deps, state, () => stopped);
  const { consider, misdated, slow } = snapshotDecider(deps, own, state, finishReleased);

  /** Has the aggregate looked at again, after what is under way for it. */
  function wake(aggregate: string): void {
    const before = busy.get(aggregate) ?? Promise.resolve();
    const next = before.then(() => (stopped ? undefined : attend(aggregate))).catch((error: unknown) => fail(error));
    busy.set(aggregate, next);
  }

  async function attend(aggregate: string): Promise<void> {
    const delivered = undecided.take(aggregate);
    if ((deps.guard?.problem ?? null) !== null) return meters.notDecided(aggregate, 'other-log');
    try {
      if (delivered === undefined) await finishReleased(aggregate);
      else await consider(aggregate, delivered);
    } catch (error) {
      reportUndecided(error, aggregate, deps);
    }
  }

  async function readSnapshots(): Promise<void> {
    for await (const delivered of log.snapshots({ aggregates: deps.aggregates })) {
      const aggregate = deps.aggregates.find((a) => subject('snapshots', a) === delivered.subject);
      if (aggregate === undefined) continue;
      undecided.put(aggregate, delivered);
      wake(aggregate);
    }
  }

  /** What people command between two snapshots need not wait for the next one: tasks of an approved plan, and closes with force. */
  async function readCommands(): Promise<void> {
    for await (const stored of view.changes()) {
      closes.changed(stored);
      if (stored.event.type !== 'plan.approved') continue;
      for (const aggregate of deps.aggregates) if (undispatched(now(aggregate).state).length > 0) wake(aggregate);
    }
  }

  function lookAgain(): void {
    if (stopped) return;
    for (const aggregate of deps.aggregates) wake(aggregate);
    closes.begin();
  }

  return {
    lookAgain,
    async run() {
      const failed = new Promise<never>((_, reject) => {
        fail = reject;
      });
      lookAgain();
      try {
        await Promise.race([Promise.all([readSnapshots(), readCommands()]), failed]);
      } catch (error) {
        // The connection is closed after a stop: that ends the reading, and is no failure.
        if (!stopped) throw error;
      }
    },
    async stop() {
      stopped = true;
      closes.stop();
      await Promise.all(busy.values());
    },
    misdated,
    slow,
    yielding: () => yieldTexts(own, deps.aggregates, (aggregate) => now(aggregate).state),
  };
}
