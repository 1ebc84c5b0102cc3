/** A moment of the past: the plans that ran then, and one sentence for people. Pure. */
import { clause, count, type LogEventOf, type StoredEvent, span, timeMs } from '@kronos/contracts';
import { ratioOf, type Scored } from '@kronos/rules';

/** A plan and its moves over time, as far as the events that were read tell, at the times that they state: ms since the epoch. */
export type PlanRun = {
  readonly planId: string;
  /** Of the event that made the plan; null: it was not read. */
  readonly sequence: number | null;
  readonly release: 'released' | 'proposed' | 'dryRun' | 'none';
  readonly decidedMs: number | null;
  /** When its moves were free to start; null: they never were. */
  readonly releasedMs: number | null;
  /** Moves that were released, or that were planned where none was; null: not known. */
  readonly steps: number | null;
  /** First attempts. */
  readonly started: readonly number[];
  readonly completed: readonly number[];
  /** Final failures of moves. */
  readonly failed: readonly number[];
  /** Moves that ended and were never started. */
  readonly skipped: readonly number[];
};

type Written = { -readonly [K in keyof PlanRun]: PlanRun[K] extends readonly number[] ? number[] : PlanRun[K] };
/** `tasks`: those that were started. */
type Known = Written & { readonly tasks: Set<string>; approvedMs: number | null };

/** The newest plans that are kept of each aggregate. */
const RUNS_KEPT = 200;

/** Collects the plans of each aggregate from the events of a log, in their order. */
export class PlanRuns {
  readonly #most: number;
  readonly #runs = new Map<string, Known>();
  readonly #byAggregate = new Map<string, Known[]>();

  constructor(most = RUNS_KEPT) {
    this.#most = most;
  }

  /** Oldest first. */
  of(aggregate: string): readonly PlanRun[] {
    return this.#byAggregate.get(aggregate) ?? [];
  }

  clear(): void {
    this.#runs.clear();
    this.#byAggregate.clear();
  }

  add({ sequence, event }: StoredEvent): void {
    switch (event.type) {
      case 'cycle.decided':
      case 'plan.proposed':
        this.#made(sequence, event);
        break;
      case 'plan.approved': {
        const run = this.#runs.get(event.data.planId);
        if (run !== undefined) run.approvedMs ??= timeMs(event.time);
        break;
      }
      case 'plan.dispatched': {
        const run = this.#known(event.aggregate, event.data.planId);
        run.steps = event.data.tasks;
        began(run, timeMs(event.time));
        break;
      }
      case 'migration.started': {
        const run = this.#known(event.aggregate, event.data.planId);
        began(run, timeMs(event.time));
        if (run.tasks.has(event.data.taskId)) break;
        run.tasks.add(event.data.taskId);
        run.started.push(timeMs(event.time));
        break;
      }
      case 'migration.completed':
      case 'migration.failed':
      case 'migration.skipped':
        ended(this.#known(event.aggregate, event.data.planId), event);
        break;
      default:
    }
  }

  #made(sequence: number, event: LogEventOf<'cycle.decided' | 'plan.proposed'>): void {
    const plan = event.type === 'plan.proposed' ? { id: event.data.planId, steps: event.data.steps } : event.data.plan;
    if (plan === null || plan.steps.length === 0) return;
    const run = this.#known(event.aggregate, plan.id);
    run.sequence = sequence;
    run.release = event.data.release;
    run.decidedMs = timeMs(event.time);
    run.steps = plan.steps.length;
    if (run.release === 'released') run.releasedMs = run.decidedMs;
  }

  #known(aggregate: string, planId: string): Known {
    const found = this.#runs.get(planId);
    if (found !== undefined) return found;
    const run = emptyRun(planId);
    const own = this.#byAggregate.get(aggregate) ?? [];
    this.#byAggregate.set(aggregate, own);
    own.push(run);
    this.#runs.set(planId, run);
    for (const { planId: oldest } of own.splice(0, own.length - this.#most)) this.#runs.delete(oldest);
    return run;
  }
}

const emptyRun = (planId: string): Known => ({
  planId,
  sequence: null,
  release: 'none',
  decidedMs: null,
  releasedMs: null,
  steps: null,
  started: [],
  completed: [],
  failed: [],
  skipped: [],
  tasks: new Set(),
  approvedMs: null,
});

/** Something of it is done: it was released, though an answer alone may come too late. */
function began(run: Known, atMs: number): void {
  run.releasedMs ??= run.approvedMs ?? atMs;
}

function ended(run: Known, event: LogEventOf<'migration.completed' | 'migration.failed' | 'migration.skipped'>): void {
  if (event.type === 'migration.failed' && event.data.retryPending) return;
  const atMs = timeMs(event.time);
  if (event.type === 'migration.completed') run.completed.push(atMs);
  else if (run.tasks.has(event.data.taskId)) run.failed.push(atMs);
  else run.skipped.push(atMs);
  began(run, atMs);
}

const upTo = (times: readonly number[], atMs: number): number => times.filter((ms) => ms <= atMs).length;

/** When the last move of a released plan ended; null: it has not. Where its moves were not counted, those that were seen are all. */
export function runEndMs({ steps, started, completed, failed, skipped }: PlanRun): number | null {
  const ends = [...completed, ...failed, ...skipped];
  const total = steps ?? started.length + skipped.length;
  return ends.length === 0 || ends.length < total ? null : Math.max(...ends);
}

/** A moment of the past of an aggregate. */
export type Moment = {
  /** Of the plan that was made then; else of what was measured. Ms. */
  readonly atMs: number;
  /** Plans that were released and not over, the oldest first. */
  readonly running: readonly PlanRun[];
  /** The plan that was made then. */
  readonly made: PlanRun | null;
  /** When a move ended last; null: none is known. */
  readonly lastEndMs: number | null;
  /** The plan that was released next. */
  readonly next: PlanRun | null;
  /** When the last move of what ran, or was released then, ended; null: nothing did, or it has not ended. */
  readonly endMs: number | null;
};

/** @param cycle a decision: its snapshot, and the time of that */
export function momentAt(
  runs: readonly PlanRun[],
  { snapshotId, timeMs }: { readonly snapshotId: string; readonly timeMs: number },
): Moment {
  const made = runs.find(({ planId }) => planId === snapshotId) ?? null;
  const atMs = made?.decidedMs ?? timeMs;
  const running = runs.filter((run) => {
    if (run === made || run.releasedMs === null || run.releasedMs > atMs) return false;
    const endMs = runEndMs(run);
    return endMs === null || endMs > atMs;
  });
  const ends = runs.flatMap(({ completed, failed }) => [...completed, ...failed]).filter((ms) => ms <= atMs);
  const later = runs
    .filter(({ releasedMs }) => releasedMs !== null && releasedMs > atMs)
    .toSorted((a, b) => (a.releasedMs ?? 0) - (b.releasedMs ?? 0));
  const under = made?.release === 'released' ? [...running, made] : running;
  const underEnds = under.flatMap((run) => runEndMs(run) ?? []);
  return {
    atMs,
    running,
    made,
    lastEndMs: ends.length === 0 ? null : Math.max(...ends),
    next: later[0] ?? null,
    endMs: under.length === 0 || underEnds.length < under.length ? null : Math.max(...underEnds),
  };
}

/** The facts beside the plans: the balance then, the balance when they were done, and why nothing was planned. */
export type MomentFacts = {
  /** The policy with the highest multiple of its threshold, as measured; null: not known. */
  readonly worst: { readonly policy: string; readonly ratio: number } | null;
  /** The same policy, measured after {@link Moment.endMs}; null: not known. */
  readonly later: { readonly atMs: number; readonly ratio: number } | null;
  /** Why the decision made no plan; null: it made one, or the reason is not known. */
  readonly reason: string | null;
};

/** The policy with the highest multiple of its threshold; null: none has one. */
export function worstOf(policies: readonly (Scored & { readonly policy: string })[]): MomentFacts['worst'] {
  let worst: MomentFacts['worst'] = null;
  for (const one of policies) {
    const ratio = ratioOf(one);
    if (ratio !== null && ratio > (worst?.ratio ?? Number.NEGATIVE_INFINITY)) worst = { policy: one.policy, ratio };
  }
  return worst;
}

/** How times and multiples of thresholds are written. */
export type Wording = { readonly clock: (ms: number) => string; readonly ratio: (ratio: number) => string };

const sum = (runs: readonly PlanRun[], of: (run: PlanRun) => number): number =>
  runs.reduce((total, run) => total + of(run), 0);

/** The moves of plans that run: how many are done, under way and lost. */
function progressText(runs: readonly PlanRun[], atMs: number): string {
  const steps = sum(runs, (run) => run.steps ?? run.started.length + run.skipped.length);
  const done = sum(runs, ({ completed }) => upTo(completed, atMs));
  const failed = sum(runs, (run) => upTo(run.failed, atMs));
  const skipped = sum(runs, (run) => upTo(run.skipped, atMs));
  const underWay = sum(runs, ({ started }) => upTo(started, atMs)) - done - failed;
  return [
    `${done} of ${count(steps, 'move')} ${steps === 1 ? 'was' : 'were'} done`,
    ...(underWay > 0 ? [`${underWay} under way`] : []),
    ...(failed > 0 ? [`${failed} had failed`] : []),
    ...(skipped > 0 ? [`${skipped} ${skipped === 1 ? 'was' : 'were'} skipped`] : []),
  ].join(', ');
}

const MADE: Readonly<Record<PlanRun['release'], string>> = {
  released: 'was released',
  proposed: 'was made and waited for approval',
  dryRun: 'was made in dry run',
  none: 'was made and not released',
};

function madeText({ steps, release, releasedMs }: PlanRun, atMs: number): string {
  const later = releasedMs !== null && releasedMs > atMs ? `; it was released ${span(releasedMs - atMs)} later` : '';
  return `a plan of ${count(steps ?? 0, 'move')} ${MADE[release]}${later}`;
}

/** The sentence about the moves at that moment. */
function movedText({ atMs, running, made, lastEndMs, next }: Moment, { clock }: Wording): string {
  const at = `At ${clock(atMs)}`;
  if (running.length > 0) {
    const [first, ...others] = running.map(({ releasedMs, decidedMs }) => clock(releasedMs ?? decidedMs ?? atMs));
    const plans = others.length === 0 ? `the plan of ${first}` : `the plans of ${[first, ...others].join(' and ')}`;
    return `${at} ${plans} ran: ${progressText(running, atMs)}.${made === null ? '' : ` Beside it ${madeText(made, atMs)}.`}`;
  }
  if (made !== null) return `${at} ${madeText(made, atMs)}. Nothing moved${made.release === 'released' ? ' yet' : ''}.`;
  const around = [
    ...(lastEndMs === null ? [] : [`the last move ended at ${clock(lastEndMs)}`]),
    ...(next?.releasedMs == null
      ? []
      : [`the next plan (${count(next.steps ?? 0, 'move')}) was released ${span(next.releasedMs - atMs)} later`]),
  ].join('; ');
  return `${at} nothing moved.${around === '' ? '' : ` ${around.charAt(0).toUpperCase()}${around.slice(1)}.`}`;
}

/** How balanced it was; nothing where that is not known. */
function balanceText({ worst, later }: MomentFacts, { clock, ratio }: Wording): string {
  if (worst === null) return '';
  const then = later === null ? '' : `; at ${clock(later.atMs)} it was ${ratio(later.ratio)}`;
  return worst.ratio > 1
    ? ` ${worst.policy} was ${ratio(worst.ratio)} its threshold${then}.`
    : ` No policy was above its threshold (${worst.policy} ${ratio(worst.ratio)}${then}).`;
}

/** One moment in one to three short sentences: what moved, how balanced it was, and why nothing was planned. */
export function momentText(moment: Moment, facts: MomentFacts, wording: Wording): string {
  const waits = moment.running.length === 0 && moment.made === null && (facts.worst?.ratio ?? 0) > 1;
  const why = waits && facts.reason !== null ? ` No plan was made: ${clause(facts.reason)}.` : '';
  return `${movedText(moment, wording)}${balanceText(facts, wording)}${why}`;
}
