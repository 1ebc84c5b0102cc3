import { aggregateFold } from '@kronos/checkpoints';
import type { Cancel } from '@kronos/clock';
import { errorText, type SnapshotTaken, subject } from '@kronos/contracts';
import type { Decider } from '@kronos/cycle';
import { AppendConflict, type Delivered, LogFull } from '@kronos/eventlog';
import { undispatched } from '@kronos/projections';
import { closeWatch } from './closeWatch.ts';
import { type SnapshotDecider, snapshotDecider } from './decideSnapshot.ts';
import type { PlannerDeps } from './deps.ts';
import { dispatcher } from './dispatch.ts';
import { ownOptions, yieldTexts } from './ownOptions.ts';
import { isRequest, Undecided } from './undecided.ts';

export type Planner = {
  /** Runs until it was stopped and the log is closed; rejects when the log can no longer be read. */
  readonly run: () => Promise<void>;
  /** Ends the decisions under way, and its decider: they may take longer than the process has for its stop. Nothing of them is on the log. */
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

/** After an error the planner tries again without a snapshot: people wait for what it did not finish. */
const AGAIN_MS = 15_000;

/** A planner that starts answers the requests of this time. */
const REQUESTS_SINCE_MS = 3_600_000;

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

type Attending = {
  readonly undecided: Undecided;
  readonly finishReleased: (aggregate: string) => Promise<void>;
  readonly consider: SnapshotDecider['consider'];
  readonly isStopped: () => boolean;
};

/**
 * Finishes what was released, and decides the snapshot of the aggregate that is the next one. A request that a doubt or an error leaves
 * without an answer stays unsettled.
 *
 * @returns false: an error left something undone that the next snapshot does not repeat
 */
async function attend(
  aggregate: string,
  deps: PlannerDeps,
  { undecided, finishReleased, consider, isStopped }: Attending,
): Promise<boolean> {
  const { guard, meters, clockProblem } = deps;
  const logInDoubt = (): boolean => (guard?.problem ?? null) !== null;
  const delivered = undecided.take(aggregate);
  try {
    if (logInDoubt()) meters.notDecided(aggregate, 'other-log');
    else if (delivered === undefined) await finishReleased(aggregate);
    else await consider(aggregate, delivered);
    if (delivered !== undefined && !logInDoubt() && clockProblem() === null) undecided.settle(delivered);
    return true;
  } catch (error) {
    if (isStopped()) {
      deps.logger.info({ aggregate, reason: errorText(error) }, 'stopped before the snapshot was decided');
      return true;
    }
    reportUndecided(error, aggregate, deps);
    return error instanceof AppendConflict && !(delivered !== undefined && isRequest(delivered));
  }
}

/** Begins with no decision once the planner has stopped. */
function decidesUntil(stopped: () => boolean, decider: Decider): Decider {
  const begin = (): void => {
    if (stopped()) throw new Error('the planner has stopped');
  };
  return {
    async cycle(input, begun) {
      begin();
      return decider.cycle(input, begun);
    },
    async proposal(input) {
      begin();
      return decider.proposal(input);
    },
    close: decider.close,
  };
}

type OfAggregate = { readonly aggregate: string; readonly delivered: Delivered<SnapshotTaken> };

/** The newest snapshot of each aggregate, requests from before it, which may have no answer if no planner ran, and then all that come. */
async function* snapshotsOf({
  log,
  aggregates,
  clock,
}: Pick<PlannerDeps, 'log' | 'aggregates' | 'clock'>): AsyncGenerator<OfAggregate> {
  const named = new Map(aggregates.map((aggregate) => [subject('snapshots', aggregate), aggregate]));
  const of = (delivered: Delivered<SnapshotTaken>): OfAggregate[] => {
    const aggregate = named.get(delivered.subject);
    return aggregate === undefined ? [] : [{ aggregate, delivered }];
  };
  let past = false;
  for await (const delivered of log.snapshots({ aggregates })) {
    yield* of(delivered);
    if (past) continue;
    past = true;
    const since = new Date(clock.now() - REQUESTS_SINCE_MS);
    for await (const before of log.replaySnapshots({ aggregates, since })) if (isRequest(before)) yield* of(before);
  }
}

/**
 * Reads the newest snapshot of each aggregate, folds the log, decides, appends. Aggregates never wait for each other, and
 * each one is handled by one worker at a time.
 */
export function createPlanner(deps: PlannerDeps): Planner {
  const own = ownOptions(deps);
  const undecided = new Undecided();
  const busy = new Map<string, Promise<void>>();
  let stopped = false;
  let cancelAgain: Cancel | null = null;
  let fail: (error: unknown) => void = () => {};
  const fold = aggregateFold(deps.view);
  const closes = closeWatch(deps, fold, wake);
  const isStopped = (): boolean => stopped;
  const finishReleased = dispatcher(deps, fold, isStopped);
  const decider = decidesUntil(isStopped, deps.decider);
  const { consider, misdated, slow } = snapshotDecider({ ...deps, decider }, own, fold, finishReleased);

  /** Attends to the aggregate again, after what is under way for it. */
  function wake(aggregate: string): void {
    const before = busy.get(aggregate) ?? Promise.resolve();
    const next = before
      .then(async () => {
        if (stopped || (await attend(aggregate, deps, { undecided, finishReleased, consider, isStopped }))) return;
        cancelAgain ??= deps.clock.after(AGAIN_MS, lookAgain);
      })
      .catch((error: unknown) => fail(error));
    busy.set(aggregate, next);
  }

  async function readSnapshots(): Promise<void> {
    for await (const { aggregate, delivered } of snapshotsOf(deps)) {
      if (undecided.has(aggregate, delivered)) continue;
      undecided.put(aggregate, delivered);
      wake(aggregate);
    }
  }

  /** Acts on people's commands between two snapshots: tasks of an approved plan and closes with force do not wait for the next snapshot. */
  async function readCommands(): Promise<void> {
    for await (const stored of deps.view.changes()) {
      closes.changed(stored);
      if (stored.event.type !== 'plan.approved') continue;
      for (const aggregate of deps.aggregates) if (undispatched(fold.at(aggregate).state).length > 0) wake(aggregate);
    }
  }

  function lookAgain(): void {
    if (stopped) return;
    cancelAgain?.();
    cancelAgain = null;
    for (const aggregate of [...deps.aggregates, ...undecided.restore()]) wake(aggregate);
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
      await decider.close();
      await Promise.all(busy.values());
      cancelAgain?.();
    },
    misdated,
    slow,
    yielding: () => yieldTexts(own, deps.aggregates, (aggregate) => fold.at(aggregate).state),
  };
}
