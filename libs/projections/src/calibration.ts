/** How well loads of hosts were predicted: moves that should have changed them, and what was measured afterwards. */
import type { CycleDecided, HostLoad, LogEventOf } from '@kronos/contracts';
import {
  CALIBRATION_CAUSES,
  COMPARED_LATE_MS,
  COMPARED_LATER_MS,
  COMPARED_SOON_MS,
  type Comparison,
  judgePredictions,
} from '@kronos/rules';
import type { StateDraft, WritableFacts } from './draft.ts';
import {
  type AggregateState,
  COMPARISONS_KEPT,
  type PolicyCalibration,
  type TaskFacts,
  type WatchedHost,
} from './state.ts';

/** One comparison that a decided snapshot allows. */
export type Predicted = Comparison & {
  readonly policy: string;
  readonly after: 'soon' | 'later';
  /** The plan of the last move. */
  readonly planId: string;
  readonly predicted: number;
  readonly measured: number;
};

type Watching = Pick<AggregateState, 'watched' | 'tasks'>;
type Seen = Pick<CycleDecided['data'], 'loads' | 'plan' | 'release'>;

/** Hosts that moves leave or enter, and how far these are. */
function hostsOfMoves(tasks: AggregateState['tasks']): { readonly busy: Set<string>; readonly open: Set<string> } {
  const busy = new Set<string>();
  const open = new Set<string>();
  for (const { end, slot, step, destination } of tasks.values()) {
    if (end !== null) continue;
    for (const host of [step.from, destination]) (slot === null ? open : busy).add(host);
  }
  return { busy, open };
}

/** The hosts whose loads the next decision states: those that moves have changed, or will change. */
export function hostsToMeasure(
  { watched, tasks }: Watching,
  { plan, release }: Pick<Seen, 'plan' | 'release'>,
): string[] {
  const { busy, open } = hostsOfMoves(tasks);
  const planned = release === 'released' || release === 'proposed' ? (plan?.steps ?? []) : [];
  const hosts = new Set([...watched.keys(), ...open, ...planned.flatMap(({ from, to }) => [from, to])]);
  return [...hosts.difference(busy)].sort();
}

/** Compares the loads of a decided snapshot with earlier predictions. */
export function comparisons(
  { watched, tasks }: Watching,
  { loads }: Pick<Seen, 'loads'>,
  snapshotMs: number,
): Predicted[] {
  if (watched.size === 0) return [];
  const { busy } = hostsOfMoves(tasks);
  return (loads ?? []).flatMap((load) => {
    const watch = watched.get(load.host);
    const after = watch === undefined || busy.has(load.host) ? null : dueAt(watch, snapshotMs);
    if (watch === undefined || watch.planId === null || after === null) return [];
    const { planId } = watch;
    return Object.entries(watch.change).flatMap(([policy, change]) => {
      const compared = comparisonOf(watch, load, policy, change);
      return compared === null ? [] : [{ policy, after, planId, ...compared }];
    });
  });
}

/** Null: a value is missing. */
function comparisonOf(
  watch: WatchedHost,
  load: HostLoad,
  policy: string,
  change: number,
): Omit<Predicted, 'policy' | 'after' | 'planId'> | null {
  const [before, measured] = [watch.before[policy], load.values[policy]];
  const [residents, vms] = [watch.residents[policy], load.vms[policy]];
  if (before === undefined || measured === undefined || residents === undefined || vms === undefined) return null;
  const predicted = before + change;
  // The prediction is not at fault for the change of the other VMs of the host.
  const drift = vms - (load.arrived[policy] ?? 0) - residents;
  return { host: load.host, change, predicted, measured, error: measured - predicted - drift };
}

function dueAt({ endedMs, soon }: WatchedHost, snapshotMs: number): 'soon' | 'later' | null {
  if (endedMs === null || snapshotMs < endedMs + COMPARED_SOON_MS) return null;
  if (snapshotMs >= endedMs + COMPARED_LATER_MS)
    return snapshotMs <= endedMs + COMPARED_LATER_MS + COMPARED_LATE_MS ? 'later' : null;
  return soon ? null : 'soon';
}

/** A decision, after the fold has begun its plan: comparisons are kept, and the watch of hosts goes on. */
export function loadsSeen(
  draft: StateDraft,
  f: WritableFacts,
  data: LogEventOf<'cycle.decided'>['data'],
  snapshotMs: number,
): void {
  const policies = new Set(data.before.policies.map(({ policy }) => policy));
  const found = comparisons(f, data, snapshotMs).filter(({ policy }) => policies.has(policy));
  for (const one of found)
    f.calibration = draft.put(f.calibration, one.policy, withOne(f.calibration.get(one.policy), one));
  const gone = [...f.calibration.keys()].filter((policy) => !policies.has(policy));
  f.calibration = draft.remove(f.calibration, gone);

  const loads = new Map((data.loads ?? []).map((load) => [load.host, load]));
  const { busy, open } = hostsOfMoves(f.tasks);
  const proposed = f.waiting === null ? [] : (f.plans.get(f.waiting)?.proposed ?? []);
  for (const { from, to } of proposed) open.add(from).add(to);
  for (const host of [...f.watched.keys(), ...open].filter((one, i, all) => all.indexOf(one) === i && !busy.has(one))) {
    const next = watchedNext(f.watched.get(host), { load: loads.get(host), awaited: open.has(host) }, snapshotMs);
    f.watched = next === null ? draft.remove(f.watched, [host]) : draft.put(f.watched, host, next);
  }
}

function watchedNext(
  watch: WatchedHost | undefined,
  { load, awaited }: { readonly load: HostLoad | undefined; readonly awaited: boolean },
  snapshotMs: number,
): WatchedHost | null {
  const ended = watch?.endedMs ?? null;
  // The load right after a move is not settled: further moves count with the former ones.
  if (awaited && (ended === null || snapshotMs >= ended + COMPARED_SOON_MS))
    return load === undefined
      ? null
      : { before: load.values, residents: load.vms, arrived: [], change: {}, planId: null, endedMs: null, soon: false };
  if (watch === undefined || ended === null || snapshotMs >= ended + COMPARED_LATER_MS) return null;
  return snapshotMs >= ended + COMPARED_SOON_MS && !watch.soon ? { ...watch, soon: true } : watch;
}

export type PredictionsOff = NonNullable<ReturnType<typeof judgePredictions>> & {
  readonly policy: string;
  /** The cause as a sentence without a full stop. */
  readonly text: string;
};

/** The policies of the last decision whose predictions are off. */
export function predictionsOff({
  decided,
  calibration,
}: Pick<AggregateState, 'decided' | 'calibration'>): PredictionsOff[] {
  return (decided?.before.policies ?? []).flatMap(({ policy, threshold }) => {
    const off = judgePredictions(calibration.get(policy)?.last ?? [], threshold);
    return off === null ? [] : [{ policy, ...off, text: CALIBRATION_CAUSES[off.cause] }];
  });
}

function withOne(
  known: PolicyCalibration | undefined,
  { after, host, change, error, predicted, measured }: Predicted,
): PolicyCalibration {
  const { soon, later, last } = known ?? { soon: NONE, later: NONE, last: [] };
  const counted = (sum: PolicyCalibration['soon']) => ({
    count: sum.count + 1,
    error: sum.error + Math.abs(measured - predicted),
  });
  if (after === 'soon') return { soon: counted(soon), later, last };
  return {
    soon,
    later: counted(later),
    last: [...last.slice(-(COMPARISONS_KEPT - 1)), { host, change: rounded(change), error: rounded(error) }],
  };
}
const NONE = { count: 0, error: 0 };
/** A checkpoint keeps no digits that the judgement has no use for. */
const rounded = (value: number): number => Math.round(value * 1e6) / 1e6;

type Completed = Pick<LogEventOf<'migration.completed'>['data'], 'host' | 'outcome'> & { readonly endedMs: number };

/** A move was completed: its hosts should have changed by its weights. */
export function moveCounted(draft: StateDraft, f: WritableFacts, { planId, step }: TaskFacts, end: Completed): void {
  const { host: arrivedAt, outcome, endedMs } = end;
  // Its weight on another host than the planned one is not known, nor the time of its arrival if not by this attempt.
  if (outcome !== 'migrated' || arrivedAt !== step.to || step.cell !== undefined) {
    f.watched = draft.remove(f.watched, [step.from, arrivedAt]);
    return;
  }
  const [source, destination] = [f.watched.get(step.from), f.watched.get(arrivedAt)];
  if (source !== undefined)
    f.watched = draft.put(f.watched, step.from, { ...left(source, step), planId, endedMs, soon: false });
  if (destination !== undefined)
    f.watched = draft.put(f.watched, arrivedAt, {
      ...destination,
      change: plus(destination.change, weightsOf(step, 'destination'), 1),
      arrived: [...destination.arrived, step.serverId],
      planId,
      endedMs,
      soon: false,
    });
}

function left(source: WatchedHost, step: TaskFacts['step']): WatchedHost {
  const weights = weightsOf(step, 'source');
  const cameBefore = source.arrived.includes(step.serverId);
  return {
    ...source,
    change: plus(source.change, weights, -1),
    residents: cameBefore ? source.residents : plus(source.residents, weights, -1),
    arrived: source.arrived.filter((id) => id !== step.serverId),
  };
}

const weightsOf = ({ weights }: TaskFacts['step'], end: 'source' | 'destination'): Record<string, number> =>
  Object.fromEntries(Object.entries(weights).map(([policy, of]) => [policy, of[end]]));

function plus(
  to: Readonly<Record<string, number>>,
  more: Readonly<Record<string, number>>,
  sign: 1 | -1,
): Record<string, number> {
  const sum: Record<string, number> = { ...to };
  for (const [policy, value] of Object.entries(more)) sum[policy] = (sum[policy] ?? 0) + sign * value;
  return sum;
}
