/**
 * Histories for tests: a log written by hand, event by event, and random realistic ones. Deterministic: a seed is all
 * the chance there is.
 */
import {
  type Actor,
  ALL,
  type Attempt,
  type ControlType,
  type Course,
  capacityPlanId,
  cellsPlanId,
  cycleSnapshotId,
  defaultEngineOptions,
  disabledReasonOf,
  type EngineOptions,
  type HostAct,
  type LogEvent,
  type LogEventOf,
  type LogEventType,
  messageId,
  type Phase,
  type PlanLoads,
  type PolicyImbalance,
  planOfTask,
  type Reason,
  type Step,
  type StoredEvent,
  taskId,
  type UnreadableEvent,
} from '@kronos/contracts';
import { fold } from '../src/evolve.ts';
import { type AggregateState, aggregateState, type LogState } from '../src/state.ts';

export { foldAll } from './foldAll.ts';

type DecisionData = LogEventOf<'cycle.decided'>['data'];

/** Fields of a decision that are absent where nothing was found. */
type FoundBeside = Pick<DecisionData, 'novaRefusals' | 'course' | 'searchWorkLimit'>;
const foundBeside = ({ course, novaRefusals, searchWorkLimit }: FoundBeside): FoundBeside => ({
  ...(searchWorkLimit === undefined ? {} : { searchWorkLimit }),
  ...(course === undefined ? {} : { course }),
  ...(novaRefusals === undefined ? {} : { novaRefusals }),
});

/** A plan of several moves is the first half of a course. */
const courseOf = (moves: number): { readonly course?: Course } =>
  moves < 2
    ? {}
    : {
        course: {
          reaches: true,
          moves: 2 * moves,
          costGib: 8 * moves,
          cycles: 2,
          seconds: 900,
          after: { combined: 0.1, policies: [] },
        },
      };

/** A course of several cycles that reaches its targets. */
export const testCourse: Course = {
  reaches: true,
  moves: 5,
  costGib: 20,
  cycles: 3,
  seconds: 1500,
  after: { combined: 0.1, policies: [] },
};

/** 2026-01-05T00:00:00Z, a Monday: where test logs begin. */
export const TEST_START_MS = 1_767_571_200_000;

export type StepInput = {
  readonly serverId: string;
  /** Absent: `name-of-` and its id. */
  readonly serverName?: string;
  readonly from: string;
  readonly to: string;
  readonly dependsOn?: readonly number[];
  readonly groups?: Step['groups'];
  readonly delaySeconds?: number;
  readonly startBefore?: string;
  readonly alternates?: readonly string[];
  readonly phase?: Phase;
  readonly ramMb?: number;
  readonly gain?: number;
  readonly weights?: Step['weights'];
  /** Of a move between cells: the aggregate that it goes to. */
  readonly target?: string;
};

export type AttemptInput = { readonly task: string; readonly attempt?: number; readonly destination?: string };

export type FailureInput = AttemptInput & {
  readonly reason?: Reason;
  readonly errorType?: string;
  readonly retry?: { readonly destination?: string; readonly notBeforeSeconds?: number };
  readonly hostAtFault?: string | null;
  readonly cause?: string;
  readonly started?: boolean;
  /** Nova's report about it; absent: nothing is known. */
  readonly nova?: { readonly runningMs: number };
};

/** Steps that a log remembers to fill in later events about them. */
const REMEMBERED_STEPS = 10_000;

const planner: Actor = { service: 'planner', instance: 'planner-1', version: '1.0.0' };
const executor: Actor = { service: 'executor', instance: 'executor-1', version: '1.0.0' };

/** A log of one or more aggregates, written by calling it. Times go by `at` and `pass` alone. */
export const testLog = (aggregate = 'gpu', startMs = TEST_START_MS): TestLog => new TestLog(aggregate, startMs);

export class TestLog {
  readonly events: StoredEvent[] = [];
  readonly #aggregate: string;
  readonly #startMs: number;
  readonly #steps = new Map<string, Step>();
  #count = 0;
  #nowMs: number;
  #cycle: number;
  #commands = 0;
  #configurations = 0;
  #current: string;

  constructor(aggregate: string, startMs: number) {
    this.#aggregate = aggregate;
    this.#current = aggregate;
    this.#startMs = startMs;
    this.#nowMs = startMs;
    this.#cycle = Math.floor(startMs / 60_000);
  }

  #push<E extends LogEvent | UnreadableEvent>(event: E): E {
    this.#count += 1;
    this.events.push({ sequence: this.#count, storedAt: this.#nowMs + 3, event });
    return event;
  }

  #envelope<T extends LogEventType>(type: T, id: string, by: Actor) {
    const time = new Date(this.#nowMs).toISOString();
    const correlationId = cycleSnapshotId(this.#current, this.#cycle);
    return { type, version: 1 as const, id, time, aggregate: this.#current, by, correlationId, causationId: null };
  }

  #write<T extends LogEventType>(type: T, id: string, by: Actor, data: LogEventOf<T>['data']) {
    return this.#push({ ...this.#envelope(type, id, by), data } as unknown as LogEventOf<T>);
  }

  /** Writes an executor's event about an attempt. @param id of the event, from the task and the number of the attempt */
  #of<T extends LogEventType>(
    type: T,
    input: AttemptInput,
    id: (task: string, attempt: number) => string,
    own: Omit<LogEventOf<T>['data'], keyof Attempt>,
  ) {
    const attempt = this.#attemptOf(input);
    return this.#write(type, id(input.task, attempt.attempt), executor, {
      ...attempt,
      ...own,
    } as unknown as LogEventOf<T>['data']);
  }

  #command<T extends LogEventType>(type: T, person: string) {
    this.#commands += 1;
    const commandId = `c${this.#commands}`;
    const by: Actor = { service: 'operator', instance: person, version: '1.0.0' };
    const head = { ...this.#envelope(type, messageId.control(commandId), by), correlationId: commandId };
    return { head, data: { commandId, comment: null } };
  }

  #attemptOf(input: AttemptInput): Attempt {
    const step = this.#steps.get(input.task);
    return {
      taskId: input.task,
      planId: planOfTask(input.task),
      serverId: step?.serverId ?? `server-of-${input.task}`,
      attempt: input.attempt ?? 1,
      from: step?.from ?? 'h1',
      destination: input.destination ?? step?.to ?? 'h2',
    };
  }

  #nova(seconds: number) {
    return {
      migrationId: this.#count,
      requestId: `req-${this.#count}`,
      status: 'completed',
      reason: null,
      queuedMs: 900,
      runningMs: seconds * 1000,
      totalMs: seconds * 1000 + 900,
      memoryBytes: 4_294_967_296,
      diskBytes: null,
    };
  }

  get nowMs() {
    return this.#nowMs;
  }

  /** Seconds since the start. */
  at(seconds: number) {
    this.#nowMs = this.#startMs + seconds * 1000;
    return this;
  }

  pass(seconds: number) {
    this.#nowMs += seconds * 1000;
    return this;
  }

  /** The following events are about this aggregate. */
  about(name: string) {
    this.#current = name;
    return this;
  }

  fold(): LogState {
    return fold(this.events);
  }

  state(name = this.#aggregate): AggregateState {
    return aggregateState(this.fold(), name);
  }

  configured(options: Partial<EngineOptions> = {}, plannerVersion = '1.0.0') {
    this.#configurations += 1;
    const optionsDigest = `sha256:${JSON.stringify(options).length.toString(16).padStart(4, '0')}${this.#configurations}`;
    const data = { plannerVersion, optionsDigest, options: { ...defaultEngineOptions, dryRun: false, ...options } };
    const id = messageId.configured(this.#current, optionsDigest, this.#count);
    return this.#write('planner.configured', id, planner, data);
  }

  /** One decision; with steps it carries a plan. Gives the plan's id. */
  decided(
    release: LogEventOf<'cycle.decided'>['data']['release'] = 'none',
    moves: readonly StepInput[] = [],
    more: {
      readonly snapshotMs?: number;
      readonly reason?: Reason;
      readonly outcome?: 'quiet' | 'gated';
      /** The snapshot's id; absent: of the next cycle. */
      readonly snapshotId?: string;
      readonly evacuations?: LogEventOf<'cycle.decided'>['data']['evacuations'];
      readonly stuck?: LogEventOf<'cycle.decided'>['data']['stuck'];
      readonly window?: { readonly open: boolean; readonly until: string | null };
      readonly loads?: PlanLoads;
    } & Found &
      FoundBeside = {},
  ): string {
    this.#cycle += 1;
    const snapshotId = more.snapshotId ?? cycleSnapshotId(this.#current, this.#cycle);
    const planSteps = moves.map((move, i) => testStep(snapshotId, i + 1, move));
    for (const step of planSteps) this.#steps.set(step.taskId, step);
    for (const id of this.#steps.keys()) {
      if (this.#steps.size <= REMEMBERED_STEPS) break;
      this.#steps.delete(id);
    }
    const { policies, after } = found(more);
    this.#push({
      ...this.#envelope('cycle.decided', messageId.decided(snapshotId), planner),
      data: {
        ...outcomeOf(moves.length > 0, more),
        before: { combined: 0.3, policies },
        plan: moves.length === 0 ? null : planOf(snapshotId, planSteps, after, more),
        refusals: { 'host-full': 3 },
        warnings: [],
        stuck: more.stuck ?? [],
        evacuations: more.evacuations ?? [],
        snapshotId,
        snapshotTime: new Date(more.snapshotMs ?? this.#nowMs).toISOString(),
        cycle: this.#cycle,
        basis: this.#count,
        release,
        plannerVersion: '1.0.0',
        digests: {
          snapshot: `sha256:${this.#cycle}`,
          policies: 'sha256:1',
          state: `sha256:${this.#count}`,
          options: 'sha256:3',
          decision: `sha256:${this.#cycle}d`,
        },
        ...foundBeside(more),
        details: null,
      },
    });
    return snapshotId;
  }

  released(moves: readonly StepInput[]): string {
    return this.decided('released', moves);
  }

  proposed(moves: readonly StepInput[]): string {
    return this.decided('proposed', moves);
  }

  withdrawn(planId: string, snapshotId = 'gpu-1') {
    const reason = { code: 'reason-gone', text: 'h1 is enabled again: its VMs stay' };
    return this.#write('plan.withdrawn', messageId.withdrawn(planId), planner, { planId, snapshotId, reason });
  }

  dispatched(planId: string, tasks = 1) {
    return this.#write('plan.dispatched', messageId.dispatched(planId), planner, { planId, tasks });
  }

  started(input: AttemptInput & { readonly diskGb?: number; readonly forced?: boolean }, instance = 'executor-1') {
    const step = this.#steps.get(input.task);
    const attempt = this.#attemptOf(input);
    return this.#push({
      ...this.#envelope('migration.started', messageId.started(input.task, attempt.attempt), { ...executor, instance }),
      data: {
        ...attempt,
        groups: step?.groups.map((g) => g.id) ?? [],
        newestMigrationId: this.#count,
        forced: input.forced ?? false,
        ramMb: step?.ramMb ?? 4096,
        diskGb: input.diskGb ?? step?.diskGb ?? 20,
        ...(step?.cell === undefined ? {} : { cell: startedCell(step.cell) }),
      },
    });
  }

  observed(input: AttemptInput & { readonly migrationId?: number | null; readonly requestId?: string | null }) {
    const { migrationId = this.#count, requestId = `req-${this.#count}` } = input;
    return this.#of('migration.observed', input, messageId.observed, { migrationId, requestId });
  }

  completed(input: AttemptInput & { readonly host?: string }, seconds = 30, warnings: readonly Reason[] = []) {
    const { attempt, destination } = this.#attemptOf(input);
    return this.#of('migration.completed', input, messageId.ended, {
      outcome: 'migrated',
      host: input.host ?? destination,
      retries: attempt - 1,
      nova: this.#nova(seconds),
      warnings: [...warnings],
    });
  }

  failed(input: FailureInput) {
    const { attempt, destination } = this.#attemptOf(input);
    const { retry, errorType = 'MigrationFailed' } = input;
    const notBefore = new Date(this.#nowMs + (retry?.notBeforeSeconds ?? 0) * 1000).toISOString();
    return this.#of('migration.failed', input, messageId.ended, {
      errorType,
      reason: input.reason ?? { code: 'test', text: `${errorType} by the test` },
      ...(input.cause === undefined ? {} : { cause: input.cause }),
      retries: attempt - 1,
      retryPending: retry !== undefined,
      next:
        retry === undefined ? null : { attempt: attempt + 1, destination: retry.destination ?? destination, notBefore },
      hostAtFault: input.hostAtFault ?? null,
      started: input.started ?? true,
      nova: input.nova === undefined ? null : this.#nova(input.nova.runningMs / 1000),
    });
  }

  skipped(input: AttemptInput) {
    const reason = { code: 'dry-run', text: 'dry run of the executor' };
    return this.#of('migration.skipped', input, messageId.ended, { reason });
  }

  paused(person = 'ada') {
    return this.asked('aggregate.paused', {}, person);
  }

  resumed(person = 'ada') {
    return this.asked('aggregate.resumed', {}, person);
  }

  approved(planId: string, only: readonly number[] | null = null, person = 'ada') {
    return this.asked('plan.approved', { planId, steps: only === null ? null : [...only] }, person);
  }

  rejected(planId: string, only: readonly number[] | null = null, person = 'ada') {
    return this.asked('plan.rejected', { planId, steps: only === null ? null : [...only] }, person);
  }

  quarantined(serverId: string, seconds = -1, person = 'ada') {
    return this.asked('instance.quarantined', { serverId, seconds }, person);
  }

  unquarantined(serverId: string, person = 'ada') {
    return this.asked('instance.unquarantined', { serverId }, person);
  }

  /** A command of any type: its data besides the id and the comment. */
  asked<T extends ControlType>(type: T, own: Readonly<Record<string, unknown>>, person = 'ada') {
    const { head, data } = this.#command(type, person);
    return this.#push({ ...head, data: { ...data, ...own } } as unknown as LogEventOf<T>);
  }

  hostReleased(host: string, person = 'ada') {
    return this.asked('host.released', { host }, person);
  }

  cancelled(task: string, person = 'ada') {
    return this.asked('migration.cancelled', { taskId: task }, person);
  }

  aborted(task: string, person = 'ada') {
    return this.asked('migration.aborted', { taskId: task }, person);
  }

  closed(task: string, person = 'ada', more: { readonly force?: true } = {}) {
    return this.asked('migration.closed', { taskId: task, ...more }, person);
  }

  /** A plan that a person asked for, between cells unless `capacity` says that it makes room. Gives the plan's id. */
  cellsProposed(
    moves: readonly StepInput[],
    more: {
      readonly capacity?: boolean;
      readonly to?: string;
      readonly approvalTtlSeconds?: number;
      readonly change?: (data: LogEventOf<'plan.proposed'>['data']) => LogEventOf<'plan.proposed'>['data'];
    } = {},
  ): string {
    const { capacity = false, approvalTtlSeconds = 3600, change = (data) => data } = more;
    const { to = capacity ? this.#current : 'new' } = more;
    const { commandId } = this.#command(capacity ? 'capacity.asked' : 'cells.moveAsked', 'ada').data;
    const planId = (capacity ? capacityPlanId : cellsPlanId)(this.#current, commandId);
    const phase = capacity ? 'capacity' : 'cell';
    const planSteps = moves.map((move, i) => testStep(planId, i + 1, { phase, target: to, ...move }));
    for (const step of planSteps) this.#steps.set(step.taskId, step);
    this.#push({
      ...this.#envelope('plan.proposed', messageId.proposed(planId), planner),
      data: change({
        planId,
        commandId,
        to,
        outcome: 'planned',
        reason: { code: 'planned', text: `${moves.length} moves` },
        steps: planSteps,
        refused: [],
        refusals: {},
        left: 0,
        warnings: [],
        release: 'proposed',
        approvalTtlSeconds,
        planTtlSeconds: 7200,
        snapshotId: `${this.#current}-c-${commandId}`,
        snapshotTime: new Date(this.#nowMs).toISOString(),
        basis: 0,
        plannerVersion: '0',
        digests: { snapshot: '', state: '', options: '', decision: '' },
        details: null,
      }),
    });
    return planId;
  }

  verifying(input: AttemptInput, host?: string) {
    const at = host ?? this.#attemptOf(input).destination;
    return this.#of('migration.verifying', input, messageId.verifying, { host: at });
  }

  verified(input: AttemptInput) {
    const { destination: host } = this.#attemptOf(input);
    return this.#of('migration.verified', input, messageId.verified, { host, verifySeconds: 60 });
  }

  settleRequested(act: 'confirm' | 'revert', input: AttemptInput, cause = 'verified') {
    const type = act === 'confirm' ? 'migration.confirmRequested' : 'migration.revertRequested';
    return this.#of(type, input, messageId.settleRequested, { cause, reason: { code: cause, text: cause } });
  }

  settleAsked(act: 'confirm' | 'revert', task: string, person = 'ada') {
    return this.asked(act === 'confirm' ? 'migration.confirmAsked' : 'migration.revertAsked', { taskId: task }, person);
  }

  drainAsked(host: string, person = 'ada') {
    return this.asked('host.drainAsked', { host }, person);
  }

  undrainAsked(host: string, person = 'ada') {
    return this.asked('host.undrainAsked', { host }, person);
  }

  hostClaimed(drainId: string, host: string, act: HostAct = 'disable', attempt = 1) {
    const id = messageId.hostClaimed(drainId, act, attempt);
    return this.#write('host.claimed', id, executor, { drainId, host, act, attempt });
  }

  hostActFailed(drainId: string, host: string, act: HostAct = 'disable', attempt = 1) {
    const data = { drainId, host, act, attempt, status: 403, text: 'forbidden by policy' };
    return this.#write('host.actFailed', messageId.hostActFailed(drainId, act, attempt), executor, data);
  }

  hostDisabled(drainId: string, host: string, byKronos = true) {
    const disabledReason = byKronos ? disabledReasonOf(drainId, 'ada', null) : 'broken disk';
    const data = { drainId, host, byKronos, disabledReason };
    return this.#write('host.disabled', messageId.hostDisabled(drainId), executor, data);
  }

  hostDrained(drainId: string, host: string) {
    return this.#write('host.drained', messageId.hostDrained(drainId), executor, { drainId, host });
  }

  hostEnabled(drainId: string, host: string, byKronos = true) {
    return this.#write('host.enabled', messageId.hostDrainEnded(drainId), executor, { drainId, host, byKronos });
  }

  hostLeftDisabled(drainId: string, host: string) {
    const reason = { code: 'changed', text: 'somebody changed it' };
    const data = { drainId, host, reason, disabledReason: 'broken disk' };
    return this.#write('host.leftDisabled', messageId.hostDrainEnded(drainId), executor, data);
  }

  abortRefused(input: AttemptInput, text = 'by the test') {
    const own = { migrationId: this.#count, status: 409, text };
    return this.#of('migration.abortRefused', input, messageId.abortRefused, own);
  }

  /** @param tries 0: the executor survived */
  suspected(input: AttemptInput, tries: number) {
    const id = (task: string, attempt: number) => messageId.suspected(task, attempt, String(this.#count), tries);
    return this.#of('migration.suspected', input, id, { deliveries: 6, tries });
  }

  evaluationRequested(person = 'ada') {
    return this.asked('evaluation.requested', { purpose: 'evaluate' }, person);
  }

  unreadable(claimedType = 'migration.teleported', claimedVersion: number | null = 7) {
    const named = { aggregate: this.#current, claimedType, claimedVersion };
    return this.#push({ type: 'unreadable', ...named, problem: 'unknown type', remedy: 'upgrade' });
  }

  eventSkipped(sequence: number, through = sequence, person = 'carol') {
    const { head, data } = this.#command('event.skipped', person);
    const by: Actor = { service: 'custodian', instance: person, version: '1.0.0' };
    return this.#push({ ...head, by, data: { ...data, comment: 'garbage', sequence, through } });
  }

  /** The same event again, later: a retry that the server's dedupe window no longer covers. */
  again(event: LogEvent) {
    return this.#push(event);
  }
}

const outcomeOf = (
  planned: boolean,
  more: { readonly reason?: Reason; readonly outcome?: 'quiet' | 'gated' },
): Pick<DecisionData, 'outcome' | 'reason'> => ({
  outcome: planned ? 'planned' : (more.outcome ?? 'quiet'),
  reason: more.reason ?? { code: planned ? 'planned' : 'balanced', text: 'by the test' },
});

/** The plan of a decision, with everything it states. */
const planOf = (
  id: string,
  steps: Step[],
  after: PolicyImbalance[],
  more: { readonly loads?: PlanLoads; readonly window?: { readonly open: boolean; readonly until: string | null } },
): NonNullable<DecisionData['plan']> => ({
  id,
  planner: 'search',
  budget: 10,
  steps,
  after: { combined: 0.1, policies: after },
  lowerBound: 0.05,
  shareOfPossible: 0.8,
  candidatesEvaluated: 1234,
  ...testLoads(steps, more),
  ...(more.window === undefined ? {} : { window: { ...more.window } }),
});

type Found = {
  readonly policies?: readonly PolicyImbalance[];
  /** After the plan; absent: as before it. */
  readonly after?: readonly PolicyImbalance[];
};
/** The imbalances before a plan and after it. */
function found({ policies = [], after = policies }: Found) {
  const copies = (of: readonly PolicyImbalance[]) => of.map((policy) => ({ ...policy }));
  return { policies: copies(policies), after: copies(after) };
}

/** Sources carry much, and all other hosts little. */
const testLoads = (steps: readonly Step[], { loads }: { readonly loads?: PlanLoads }): { loads: PlanLoads } => ({
  loads: loads ?? {
    policies: [{ policy: 'cpu', weight: 1, threshold: 0.2 }],
    hosts: Object.entries({
      ...Object.fromEntries(steps.flatMap(({ to, alternates }) => [to, ...alternates].map((host) => [host, 0.1]))),
      ...Object.fromEntries(steps.map(({ from }) => [from, 0.9])),
    }).map(([host, value]) => ({ host, values: [value] })),
  },
});

/** A step with everything a plan states. */
export function testStep(planId: string, number: number, input: StepInput): Step {
  return {
    step: number,
    taskId: taskId(planId, number),
    phase: input.phase ?? 'spread',
    parking: false,
    serverId: input.serverId,
    serverName: input.serverName ?? `name-of-${input.serverId}`,
    from: input.from,
    to: input.to,
    alternates: [...(input.alternates ?? [])],
    dependsOn: (input.dependsOn ?? []).map((n) => taskId(planId, n)),
    delaySeconds: input.delaySeconds ?? 0,
    ...(input.startBefore === undefined ? {} : { startBefore: input.startBefore }),
    groups: input.groups ?? [],
    resources: { VCPU: 2, MEMORY_MB: input.ramMb ?? 4096 },
    ramMb: input.ramMb ?? 4096,
    diskGb: 20,
    weights: input.weights ?? { cpu: { source: 0.08, destination: 0.08 }, memory: { source: 0.05, destination: 0.05 } },
    ...(input.phase === 'cell' ? { cell: testCell(input.target ?? 'new') } : {}),
    why: { code: 'gain', text: 'lowers the combined imbalance', detail: { gain: input.gain ?? 0.02 } },
  };
}

const testCell = (target: string): NonNullable<Step['cell']> => ({
  method: 'migrate',
  target,
  oldFlavor: 'm1',
  newFlavor: 'm1',
  fromCell: 'cell1',
  toCell: 'cell2',
  downtimeSeconds: 90,
  confirm: 'auto',
  verifySeconds: 60,
});

const startedCell = ({ method, oldFlavor, newFlavor }: NonNullable<Step['cell']>) => ({
  method,
  oldFlavor,
  newFlavor,
  before: { vmState: 'active', powerState: 1, addresses: ['10.0.0.5'], volumes: [] },
  knownMigrations: [],
});

/** Uniform numbers in [0, 1) from a seed (mulberry32). */
export function random(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export type HistoryOptions = {
  readonly seed: number;
  readonly aggregates?: readonly string[];
  /** Evaluations per aggregate. */
  readonly cycles?: number;
  readonly startMs?: number;
  readonly intervalSeconds?: number;
  readonly hosts?: number;
  /** VMs per aggregate. */
  readonly vms?: number;
  /** Largest number of steps of a plan. */
  readonly steps?: number;
  /** Share of events that are followed, soon or late, by themselves. */
  readonly repeats?: number;
  /** Share of cycles in which an operator does something. */
  readonly commands?: number;
  /** Share of attempts that fail. */
  readonly failures?: number;
  /** Share of cycles that end with an event that cannot be read. */
  readonly unreadable?: number;
};

type Running = {
  readonly step: Step;
  attempt: number;
  destination: string;
  status: 'waiting' | 'started' | 'over';
  dueMs: number;
};

/**
 * A random history as a running Kronos would write it: several aggregates, decisions every interval, plans released,
 * proposed, approved in part, rejected or left to expire, dispatch, attempts with retries and every kind of failure,
 * operators' commands, changed options and planner upgrades. Events come in log order, produced as they are asked for.
 */
export function* randomHistory(options: HistoryOptions): Generator<StoredEvent> {
  yield* new History(options).events();
}

/** An aggregate of a random history. */
type Site = ReturnType<typeof sitesOf>[number];

const sitesOf = (aggregates: readonly string[], chance: (p: number) => boolean) =>
  aggregates.map((name, index) => ({
    name,
    running: [] as Running[],
    dispatch: [] as { planId: string; tasks: number }[],
    proposal: null as { planId: string; steps: readonly Step[]; untilMs: number } | null,
    manual: chance(0.4),
    ttlSeconds: 300,
    server: (n: number) => `${index}0000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
    host: (n: number) => `${encodeURIComponent(name)}-host-${n}`,
    sustained: 0,
  }));

class History {
  readonly #options: Required<HistoryOptions>;
  readonly #uniform: () => number;
  readonly #log: TestLog;
  readonly #sites: Site[];
  readonly #repeatable: LogEvent[] = [];
  #emitted = 0;

  constructor(options: HistoryOptions) {
    this.#options = {
      aggregates: ['gpu', 'general', 'web eu/1'],
      cycles: 100,
      startMs: TEST_START_MS,
      intervalSeconds: 60,
      hosts: 8,
      vms: 60,
      steps: 4,
      repeats: 0.02,
      commands: 0.05,
      failures: 0.15,
      unreadable: 0,
      ...options,
    };
    const { seed, aggregates, startMs } = this.#options;
    this.#uniform = random(seed);
    this.#log = testLog(aggregates[0] ?? 'gpu', startMs);
    this.#sites = sitesOf(aggregates, (p) => this.#chance(p));
  }

  #chance(p: number): boolean {
    return this.#uniform() < p;
  }

  #int(n: number): number {
    return Math.floor(this.#uniform() * n);
  }

  #pick<const T extends readonly [unknown, ...unknown[]]>(from: T): T[number] {
    return from[this.#int(from.length)] ?? from[0];
  }

  *events(): Generator<StoredEvent> {
    const { cycles, intervalSeconds } = this.#options;
    for (let cycle = 0; cycle < cycles; cycle++) {
      const fromS = cycle * intervalSeconds;
      for (const site of this.#sites) {
        this.#decide(site, cycle, fromS);
        yield* this.#flush();
      }
      for (const site of this.#sites) {
        this.#carryOn(site, fromS);
        yield* this.#flush();
      }
    }
  }

  /** One decision of an aggregate. */
  #decide(site: Site, cycle: number, fromS: number): void {
    this.#log.about(site.name).at(fromS + this.#uniform() * 2);
    if (cycle === 0 || this.#chance(0.005)) this.#configure(site, cycle);
    const policies = this.#measure(site);
    const busy = site.running.some((t) => t.status !== 'over') || site.proposal !== null;
    const lapsed = site.proposal !== null && this.#log.nowMs > site.proposal.untilMs;
    if (busy && !lapsed && this.#chance(0.8)) {
      this.#log.decided('none', [], { policies, outcome: 'gated', reason: { code: 'cooldown', text: 'cooling down' } });
    } else if (this.#chance(0.5)) {
      this.#log.decided('none', [], { policies });
    } else {
      this.#plan(site, policies);
    }
  }

  /** Writes the events between this decision and the next one. */
  #carryOn(site: Site, fromS: number): void {
    this.#log.about(site.name).at(fromS + 3 + this.#uniform() * 20);
    if (this.#chance(0.9)) for (const { planId, tasks } of site.dispatch.splice(0)) this.#log.dispatched(planId, tasks);
    this.#answer(site);
    if (this.#chance(this.#options.commands)) this.#operate(site);
    for (const task of site.running) this.#advance(task);
    site.running = site.running.filter((t) => t.status !== 'over');
    if (this.#chance(this.#options.unreadable)) this.#log.unreadable();
  }

  #configure(site: Site, cycle: number): void {
    if (this.#chance(0.3)) site.manual = !site.manual;
    site.ttlSeconds = this.#pick([120, 300, 900]);
    this.#log.configured(
      { approval: site.manual ? 'manual' : 'auto', approvalTtlSeconds: site.ttlSeconds, cooldownSeconds: 60 },
      `1.${Math.floor(cycle / 400)}.0`,
    );
  }

  #measure(site: Site): PolicyImbalance[] {
    return ['cpu', 'memory'].map((policy) => {
      const imbalance = this.#uniform();
      site.sustained = imbalance > 0.2 ? site.sustained + 1 : 0;
      return {
        policy,
        imbalance,
        threshold: 0.2,
        participates: true,
        detected: imbalance > 0.2,
        sustainedCycles: site.sustained,
      };
    });
  }

  #plan(site: Site, policies: readonly PolicyImbalance[]): void {
    const moves = this.#moves(site);
    const release = this.#chance(0.1) ? 'dryRun' : site.manual ? 'proposed' : 'released';
    const planId = this.#log.decided(release, moves, { policies, ...courseOf(moves.length) });
    const steps = moves.map((move, i) => testStep(planId, i + 1, move));
    if (release !== 'dryRun') site.proposal = null;
    if (release === 'proposed') site.proposal = { planId, steps, untilMs: this.#log.nowMs + site.ttlSeconds * 1000 };
    if (release === 'released') this.#begin(site, planId, steps, this.#log.nowMs);
  }

  #moves(site: Site): StepInput[] {
    return Array.from({ length: 1 + this.#int(this.#options.steps) }, (_, i): StepInput => {
      const from = this.#int(this.#options.hosts);
      return {
        serverId: site.server(this.#int(this.#options.vms)),
        from: site.host(from),
        to: site.host((from + 1 + this.#int(this.#options.hosts - 1)) % this.#options.hosts),
        alternates: [site.host(this.#int(this.#options.hosts))],
        ...(i > 0 && this.#chance(0.3) ? { dependsOn: [1 + this.#int(i)] } : {}),
        ...(this.#chance(0.2) ? { groups: [{ id: `group-${this.#int(4)}`, policy: 'anti-affinity' as const }] } : {}),
        delaySeconds: this.#chance(0.2) ? 30 : 0,
      };
    });
  }

  /** Yields what was written since, each event sometimes followed by an earlier one again. */
  *#flush(): Generator<StoredEvent> {
    while (this.#log.events.length > 0) {
      const written = this.#log.events.splice(0, this.#log.events.length);
      for (const { event, storedAt } of written) {
        this.#emitted += 1;
        yield { sequence: this.#emitted, storedAt, event };
        if (event.type === 'unreadable' || this.#options.repeats === 0) continue;
        this.#repeatable.push(event);
        if (this.#repeatable.length > 200) this.#repeatable.shift();
        const again = this.#repeatable[this.#int(this.#repeatable.length)];
        if (again === undefined || !this.#chance(this.#options.repeats)) continue;
        this.#emitted += 1;
        yield { sequence: this.#emitted, storedAt, event: again };
      }
    }
  }

  #begin(site: Site, planId: string, steps: readonly Step[], nowMs: number): void {
    for (const step of steps)
      site.running.push({
        step,
        attempt: 1,
        destination: step.to,
        status: 'waiting',
        dueMs: nowMs + step.delaySeconds * 1000,
      });
    site.dispatch.push({ planId, tasks: steps.length });
  }

  #answer(site: Site): void {
    if (site.proposal === null || !this.#chance(0.4)) return;
    const { planId, steps, untilMs } = site.proposal;
    const late = this.#log.nowMs > untilMs;
    const some = this.#chance(0.3) ? steps.filter(() => this.#chance(0.6)).map((s) => s.step) : null;
    if (this.#chance(0.3)) {
      this.#log.rejected(planId, some);
      if (late) return;
      const left = some === null ? [] : steps.filter((s) => !this.#closure(s, (t) => some.includes(t.step), steps));
      site.proposal = left.length === 0 ? null : { planId, steps: left, untilMs };
      return;
    }
    this.#log.approved(planId, some);
    if (late) return;
    const asked = steps.filter((s) => some === null || some.includes(s.step));
    const chosen = steps.filter((s) => asked.some((a) => this.#closure(a, (t) => t === s, steps)));
    if (chosen.length === 0) return;
    site.proposal = null;
    this.#begin(site, planId, chosen, this.#log.nowMs);
  }

  /** Whether the step, or one that it depends on, directly or not, is what is looked for. */
  #closure(step: Step, is: (step: Step) => boolean, steps: readonly Step[]): boolean {
    return is(step) || steps.some((s) => step.dependsOn.includes(s.taskId) && this.#closure(s, is, steps));
  }

  #operate(site: Site): void {
    const server = site.server(this.#int(this.#options.vms));
    const task = site.running[this.#int(Math.max(1, site.running.length))]?.step.taskId ?? `${site.name}-0-s1`;
    if (this.#chance(0.2)) this.#log.about(ALL);
    this.#pick([
      () => this.#log.paused('grace'),
      () => this.#log.resumed('grace'),
      () => this.#log.quarantined(server, this.#pick([-1, 600, 7200])),
      () => this.#log.unquarantined(server),
      () => this.#log.hostReleased(this.#pick(['h1', 'h2'])),
      () => this.#log.cancelled(task),
      () => this.#log.aborted(task),
      () => this.#log.evaluationRequested(),
    ])();
    this.#log.about(site.name);
  }

  #advance(task: Running): void {
    const input = { task: task.step.taskId, attempt: task.attempt, destination: task.destination };
    this.#log.pass(this.#uniform());
    if (task.status === 'waiting') {
      if (this.#log.nowMs < task.dueMs || !this.#chance(0.7)) return;
      if (this.#chance(this.#options.failures / 4)) {
        this.#log.failed({ ...input, errorType: this.#pick(['PreFlightError', 'Cancelled']), started: false });
        task.status = 'over';
        return;
      }
      if (this.#chance(0.02)) {
        this.#log.skipped(input);
        task.status = 'over';
        return;
      }
      this.#log.started(input, this.#pick(['executor-1', 'executor-2']));
      task.status = 'started';
      if (this.#chance(0.9)) this.#log.pass(1).observed(input);
      if (this.#chance(0.5)) return;
    }
    this.#log.pass(5 + this.#uniform() * 20);
    if (!this.#chance(this.#options.failures)) {
      this.#log.completed(input, 5 + this.#int(90));
      task.status = 'over';
      return;
    }
    const errorType = this.#pick([
      'MigrationFailed',
      'MigrationTimeout',
      'NovaClientError',
      'PreFlightError',
      'Cancelled',
      'DeadLetter',
      'SolarFlare',
    ]);
    const hostAtFault = this.#chance(0.5) ? task.destination : null;
    if (task.attempt > 3 || this.#chance(0.4)) {
      this.#log.failed({ ...input, errorType, hostAtFault });
      task.status = 'over';
      return;
    }
    const destination = task.step.alternates[0] ?? task.destination;
    this.#log.failed({ ...input, errorType, hostAtFault, retry: { destination, notBeforeSeconds: 10 } });
    task.attempt += 1;
    task.destination = destination;
    task.status = 'waiting';
    task.dueMs = this.#log.nowMs + 10_000;
  }
}
