import { iso, isoOrNull, type Snapshot, timeMs } from '@kronos/contracts';
import type { CooldownFacts, ProposalFacts, Waits } from '@kronos/rules';

/**
 * The history that a decision needs: facts and their times, never deadlines. `decide` applies the durations of its own options.
 * libs/cycle makes it from the folded state.
 *
 * Every time is in milliseconds since the epoch; {@link memoryText} is the form with texts that digests are made of. The order inside arrays
 * does not matter unless the field says so.
 */
export type Memory = {
  /** An operator paused the aggregate and it was not resumed. */
  readonly paused: { readonly atMs: number; readonly by: string } | null;
  /** The first event of this aggregate that the fold did not understand. */
  readonly unreadable: { readonly sequence: number; readonly type: string; readonly version: number | null } | null;
  /** `snapshotTime` of the newest `cycle.decided`. */
  readonly lastDecidedMs: number | null;
  /** The newest release of a plan, or of a part of one. */
  readonly lastRelease: CooldownFacts['lastRelease'];
  /** The newest rejection or recorded expiry of a plan. */
  readonly lastRefusal: CooldownFacts['lastRefusal'];
  /** The proposed plan that waits for an answer, with the `approval_ttl` of its time (null: the log names no options). */
  readonly waitingPlan: ProposalFacts | null;
  /** When a released move of this aggregate last ended (completed or finally failed). */
  readonly lastMoveEndMs: number | null;
  /** By server: when it was released to be moved. */
  readonly releases: Readonly<Record<string, readonly number[]>>;
  /** By server: the quarantines that nobody released. The one that ends last counts. */
  readonly quarantines: Readonly<Record<string, readonly QuarantineFact[]>>;
  /** By host: when it was at fault as the destination of a failed attempt. */
  readonly hostFailures: Readonly<Record<string, readonly number[]>>;
  /** Destinations that Nova refused. Absent: none. */
  readonly refusals?: readonly {
    readonly serverId: string;
    readonly host: string;
    readonly atMs: number;
    /** Nova's words. */
    readonly text: string;
    /** `shapeOf` the server and `markOf` the host, as the first decision afterwards saw them; null: this one is the first. */
    readonly shape: string | null;
    readonly mark: string | null;
  }[];
  /** By server, of those in the snapshot's ended migrations: the last move that Kronos completed. Absent: none. */
  readonly ownMoves?: Readonly<Record<string, OwnMove>>;
  /** Released tasks without a final result, those of other aggregates too that concern a server or a host of the snapshot. */
  readonly inFlight: readonly InFlightTask[];
  /** Hosts that an operator asked to be drained. Absent: none. */
  readonly draining?: readonly string[];
  /** Rate of the links in former moves, bytes per second. Absent: too few moves are known, or no option needs it. */
  readonly copyBytesPerSecond?: number;
  /**
   * Pace of former moves, ms per GiB (`paceOf` of libs/rules): from host to host when enough are known, else of the aggregate (null:
   * unknown). Absent: nothing is known, or neither a forecast nor the time of a course needs it.
   */
  readonly movePaces?: {
    readonly others: number | null;
    readonly pairs: Readonly<Record<string, Readonly<Record<string, number>>>>;
  };
  /** The current wait of the forecast, and the savings of the waits of the last days (`Waits` of libs/rules). Absent: none, or no forecast needs it. */
  readonly waits?: Waits;
  /**
   * By policy: standard deviation of the noise of its imbalance in the last cycles (`noiseOf` of libs/rules). Absent, also for one policy: too
   * few cycles are known.
   */
  readonly noise?: Readonly<Record<string, number>>;
  /**
   * Moves that are left of a course to the targets whose last part was released and has not failed: they are made below the thresholds too.
   * Absent: there are none.
   */
  readonly courseMoves?: number;
  /** By policy: `sustainedCycles` of the newest `cycle.decided`. */
  readonly sustained: Readonly<Record<string, number>>;
};

export type OwnMove = {
  readonly from: string;
  readonly to: string;
  readonly atMs: number;
  /** Nova's id of the migration; null: not known. */
  readonly migrationId: number | null;
};

export type QuarantineFact = {
  readonly cause: 'failure' | 'operator';
  readonly atMs: number;
  /** The failure's type; null for an operator's quarantine. */
  readonly errorType: string | null;
  /** Duration that the operator set, -1 until released; null: `instanceQuarantineSeconds` applies. */
  readonly seconds: number | null;
};

export type InFlightTask = {
  readonly taskId: string;
  readonly serverId: string;
  readonly from: string;
  /** Destination of the current attempt: the step's `to`, or the alternate that was taken since. */
  readonly destination: string;
  /** Its claim by resource class, as in the step. */
  readonly resources: Readonly<Record<string, number>>;
  /** As in the step, by policy name. */
  readonly weights: Readonly<Record<string, { readonly source: number; readonly destination: number }>>;
  readonly ramMb: number;
  /** Time of the current attempt's `migration.started`; null while it waits for its start. */
  readonly startedAtMs: number | null;
  /** A move between cells, which takes nothing from the budget. Absent: a live migration. */
  readonly cell?: true;
  /** The other aggregate whose plan has it: it takes nothing from the budget. Absent: this one. */
  readonly aggregate?: string;
};

/**
 * The moment of a decision, ms since the epoch: the time of its snapshot, and never before the snapshot of the last decision, as
 * clocks of scorers differ.
 */
export const decisionMs = (
  { time }: Pick<Snapshot, 'time'>,
  { lastDecidedMs }: Pick<Memory, 'lastDecidedMs'>,
): number => Math.max(timeMs(time), lastDecidedMs ?? Number.NEGATIVE_INFINITY);

/** The memory of an aggregate of which nothing is known yet. */
export const emptyMemory: Memory = {
  paused: null,
  unreadable: null,
  lastDecidedMs: null,
  lastRelease: null,
  lastRefusal: null,
  waitingPlan: null,
  lastMoveEndMs: null,
  releases: {},
  quarantines: {},
  hostFailures: {},
  inFlight: [],
  sustained: {},
};

/**
 * The memory as digests of decisions have it since their first version: times as ISO-8601 UTC. A fact that a state does not have is absent, so
 * that digests of former decisions stay the same.
 */
export function memoryText(memory: Memory) {
  const { paused, lastDecidedMs, lastRelease, lastRefusal, waitingPlan, lastMoveEndMs, ...rest } = memory;
  const { refusals, ownMoves, waits, ...facts } = rest;
  return {
    ...facts,
    paused: paused === null ? null : { at: iso(paused.atMs), by: paused.by },
    lastDecidedTime: isoOrNull(lastDecidedMs),
    lastRelease: lastRelease === null ? null : { planId: lastRelease.planId, at: iso(lastRelease.atMs) },
    lastRefusal:
      lastRefusal === null ? null : { planId: lastRefusal.planId, at: iso(lastRefusal.atMs), how: lastRefusal.how },
    waitingPlan: waitingPlan === null ? null : proposedText(waitingPlan),
    lastMoveEndAt: isoOrNull(lastMoveEndMs),
    releases: each(memory.releases, (times) => times.map(iso)),
    quarantines: each(memory.quarantines, (causes) => causes.map(timed)),
    hostFailures: each(memory.hostFailures, (times) => times.map(iso)),
    inFlight: memory.inFlight.map(({ startedAtMs, ...task }) => ({ ...task, startedAt: isoOrNull(startedAtMs) })),
    ...(refusals === undefined ? {} : { refusals: refusals.map(timed) }),
    ...(ownMoves === undefined ? {} : { ownMoves: each(ownMoves, timed) }),
    ...(waits === undefined
      ? {}
      : { waits: { open: waits.open === null ? null : waitText(waits.open), days: waits.days } }),
  };
}

const timed = <T extends { readonly atMs: number }>({ atMs, ...rest }: T) => ({ ...rest, at: iso(atMs) });

const proposedText = ({ planId, proposedAtMs, approvalTtlSeconds }: ProposalFacts) => ({
  planId,
  proposedAt: iso(proposedAtMs),
  approvalTtlSeconds,
});

const waitText = ({ sinceMs, untilMs, plannedMs }: NonNullable<Waits['open']>) => ({
  since: iso(sinceMs),
  until: iso(untilMs),
  plannedMs,
});

const each = <V, R>(record: Readonly<Record<string, V>>, of: (value: V) => R): Record<string, R> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, of(value)]));
