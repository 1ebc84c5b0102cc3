/** How good predictions were: the load of hosts after the moves of a plan, as predicted and as measured. */
import { type Snapshot, timeMs, timeOf } from '@kronos/contracts';
import { hostValuesOf } from '@kronos/cycle';
import {
  CALIBRATION_CAUSES,
  type CalibrationCause,
  COMPARED_LATE_MS,
  COMPARED_LATER_MS,
  COMPARED_SOON_MS,
} from '@kronos/rules';
import type { FoundDecision } from './find.ts';
import { type History, isOfCycle, loadRecordedSnapshot } from './history.ts';
import { lay } from './overlay.ts';

/** One host that gained or lost VMs, under one policy. */
export type CalibratedHost = {
  readonly policy: string;
  readonly host: string;
  /** Value on which the plan was made. */
  readonly before: number;
  readonly predicted: number;
  /** One and ten minutes after the last move; null: not measured, or other moves have changed it. */
  readonly soon: number | null;
  readonly later: number | null;
};

export type Calibration = {
  readonly hosts: readonly CalibratedHost[];
  /** The policies whose predictions are off by more than their thresholds. */
  readonly off: readonly {
    readonly policy: string;
    readonly threshold: number;
    /** The largest difference of a host. */
    readonly error: number;
    readonly cause: CalibrationCause;
    readonly text: string;
  }[];
};

/** A move that was completed. */
export type DoneMove = { readonly serverId: string; readonly from: string; readonly to: string };

/**
 * Predictions beside measurements. Pure.
 *
 * @param snapshot the plan was made on it
 * @param measured the cloud one and ten minutes after the moves; null: nobody looked
 * @param disturbed hosts that other moves have changed by then
 */
export function calibrate(
  snapshot: Snapshot,
  moves: readonly DoneMove[],
  measured: readonly [soon: Snapshot | null, later: Snapshot | null],
  disturbed: readonly [soon: ReadonlySet<string>, later: ReadonlySet<string>] = [new Set(), new Set()],
): Calibration {
  const laid = lay({ hosts: new Map(moves.map(({ serverId, to }) => [serverId, to])), still: new Set() }, snapshot);
  const touched = new Set(moves.flatMap(({ from, to }) => [from, to]));
  const at = (i: 0 | 1, policy: Snapshot['policies'][number], host: string): number | null => {
    const seen = measured[i];
    const values = seen === null || disturbed[i].has(host) ? null : hostValuesOf(seen, policy);
    return values?.[host] ?? null;
  };
  const hosts: CalibratedHost[] = [];
  for (const policy of snapshot.policies.filter(({ enabled }) => enabled)) {
    const before = hostValuesOf(snapshot, policy);
    const predicted = hostValuesOf(laid, policy);
    if (before === null || predicted === null) continue;
    for (const host of [...touched].sort()) {
      const [was, will] = [before[host], predicted[host]];
      if (was === undefined || will === undefined) continue;
      hosts.push({
        policy: policy.name,
        host,
        before: was,
        predicted: will,
        soon: at(0, policy, host),
        later: at(1, policy, host),
      });
    }
  }
  const destinations = new Set(moves.map(({ to }) => to));
  const off = snapshot.policies.flatMap(({ name, threshold }) => {
    const own = hosts.filter(({ policy }) => policy === name);
    const error = own.reduce((most, one) => Math.max(most, errorOf(one) ?? 0), 0);
    if (error <= threshold) return [];
    const cause = causeOf(own, destinations);
    return [{ policy: name, threshold, error, cause, text: CALIBRATION_CAUSES[cause] }];
  });
  return { hosts, off };
}

const measuredOf = ({ soon, later }: CalibratedHost): number | null => later ?? soon;

/** How far a prediction was from the last measurement; null: there is none. */
export function errorOf(host: CalibratedHost): number | null {
  const value = measuredOf(host);
  return value === null ? null : Math.abs(value - host.predicted);
}

/** A change that is this part of the predicted one or less is none. */
const NOTHING = 0.25;

function causeOf(hosts: readonly CalibratedHost[], destinations: ReadonlySet<string>): CalibrationCause {
  const judged = hosts.flatMap((one) => {
    const value = measuredOf(one);
    const predicted = one.predicted - one.before;
    return value === null || predicted === 0
      ? []
      : [{ part: (value - one.before) / predicted, gains: destinations.has(one.host) }];
  });
  if (judged.every(({ part }) => Math.abs(part) <= NOTHING)) return 'wrong-label';
  const [gains, losses] = [judged.filter(({ gains: one }) => one), judged.filter(({ gains: one }) => !one)];
  const asPredicted = losses.length > 0 && losses.every(({ part }) => Math.abs(part - 1) <= NOTHING);
  return asPredicted && gains.length > 0 ? 'host-sizes' : 'load-depends-on-host';
}

/** The completed moves of a plan, the ends of the moves of others, and the time of the plan's last end. */
async function movesAfter(
  history: History,
  sequence: number,
  { aggregate, planId }: { readonly aggregate: string; readonly planId: string },
) {
  const moves: DoneMove[] = [];
  const others: { readonly atMs: number; readonly hosts: readonly string[] }[] = [];
  let endedMs = Number.NEGATIVE_INFINITY;
  for await (const stored of history.events(undefined, sequence)) {
    const { event } = stored;
    if (event.type !== 'migration.started' && event.type !== 'migration.completed') continue;
    if (event.aggregate !== aggregate) continue;
    const { serverId, from, destination } = event.data;
    if (event.data.planId !== planId) others.push({ atMs: timeOf(stored), hosts: [from, destination] });
    else if (event.type === 'migration.completed') {
      moves.push({ serverId, from, to: destination });
      endedMs = Math.max(endedMs, timeOf(stored));
    }
  }
  return { moves, others, endedMs };
}

/** The first snapshots of cycles at two times; null where none came in time. */
async function snapshotsAt(
  history: History,
  aggregate: string,
  times: readonly [number, number],
): Promise<[Snapshot | null, Snapshot | null]> {
  const found: [Snapshot | null, Snapshot | null] = [null, null];
  const range = { aggregates: [aggregate], sinceMs: times[0], untilMs: times[1] + COMPARED_LATE_MS };
  for await (const entry of history.snapshots(range)) {
    for (const [i, atMs] of times.entries()) {
      if (found[i] !== null || entry.timeMs < atMs || entry.timeMs > atMs + COMPARED_LATE_MS) continue;
      const loaded = await loadRecordedSnapshot(entry);
      if (isOfCycle(loaded.snapshot.purpose)) found[i] = loaded.snapshot;
    }
  }
  return found;
}

/** Calibrates a plan whose moves have been carried out; null: none was, or its snapshot is not kept. @throws as `loadRecordedSnapshot` */
export async function calibratePlan(
  history: History,
  { event, sequence, decision, snapshot }: Pick<FoundDecision, 'event' | 'sequence' | 'decision' | 'snapshot'>,
): Promise<Calibration | null> {
  const { plan } = decision;
  if (plan === null || snapshot === null) return null;
  const { aggregate } = event;
  const { moves, others, endedMs } = await movesAfter(history, sequence, { aggregate, planId: plan.id });
  if (moves.length === 0) return null;
  const [soon, later] = await snapshotsAt(history, aggregate, [
    endedMs + COMPARED_SOON_MS,
    endedMs + COMPARED_LATER_MS,
  ]);
  const fromMs = timeMs(snapshot.time);
  const changedBy = (seen: Snapshot | null): Set<string> =>
    new Set(
      others.flatMap(({ atMs, hosts }) => (seen !== null && atMs >= fromMs && atMs <= timeMs(seen.time) ? hosts : [])),
    );
  return calibrate(snapshot, moves, [soon, later], [changedBy(soon), changedBy(later)]);
}
