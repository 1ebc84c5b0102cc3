import {
  type Actor,
  ALL,
  type CycleDecided,
  cycleSnapshotId,
  type Decision,
  defaultEngineOptions,
  type EndedMigration,
  type EngineOptions,
  type LogEvent,
  messageId,
  parseMessage,
  type Snapshot,
  type StoredEvent,
} from '@kronos/contracts';
import { configuredEvent, decidedEvent, digest, optionsOfDecision, runCycle } from '@kronos/cycle';
import { plannerVersion } from '@kronos/placement';
import { type SketchHost, type SketchVm, snapshotOf } from '@kronos/placement/testing';
import {
  type AggregateState,
  aggregateState,
  createFolder,
  type LogState,
  mayStart,
  type TaskFacts,
  undispatched,
  waitingPlan,
} from '@kronos/projections';
import { random } from '@kronos/projections/testing';
import { storedDigest } from './memory.ts';

export type OperationOptions = {
  readonly seed: number;
  /** Cycles of a minute. */
  readonly cycles: number;
  readonly aggregates?: readonly string[];
  readonly hosts?: number;
  readonly vmsPerHost?: number;
  /** From this cycle on the planner is the one under test; before, an older version that plans otherwise. */
  readonly upgradeAt?: number;
  /** Share of attempts that fail. */
  readonly failures?: number;
  /** Share of cycles in which an operator does something. */
  readonly commands?: number;
  readonly startMs?: number;
  /** Default: search for the first aggregate, greedy for the others. */
  readonly planner?: EngineOptions['planner'];
  /** Candidates that a search may evaluate. Default 5000: plans are quick, and not the best. */
  readonly searchWorkLimit?: number;
  /** With 5, every fifth cycle is decided with a tenth of that work, as by a planner whose decisions took too long. Default: none. */
  readonly slowEvery?: number;
  /** Snapshots hold what the VMs did on former days: in every other hour most of their load was over after 5 minutes. VMs are large. */
  readonly history?: boolean;
  /** Snapshots hold what the VMs write, which makes their moves cost more, by the rate of former moves. VMs are large. */
  readonly moveCosts?: boolean;
  /**
   * The factor by which Prometheus shows a CPU load: of a VM on this host (its number), or of the host beside the sum of its VMs (`vm` null).
   * Default: 1.
   */
  readonly shown?: (of: { readonly host: number; readonly vm: string | null; readonly cycle: number }) => number;
  /** Prometheus' answer for a load of a host or VM. Default: the load. */
  readonly reading?: (load: number) => number;
  /** Snapshots list the migrations that have ended. */
  readonly ended?: boolean;
  /** Options of the planners beside these. */
  readonly engine?: Partial<EngineOptions>;
};

/** The events and snapshots of a cycle. */
export type OperationCycle = { readonly events: readonly StoredEvent[]; readonly snapshots: readonly Snapshot[] };

export type Operation = {
  readonly events: readonly StoredEvent[];
  readonly snapshots: readonly Snapshot[];
  readonly end: LogState;
};

/** 2026-01-05T00:00:00Z. */
const START_MS = 1_767_571_200_000;
const DEFAULTS = { upgradeAt: 0, failures: 0.15, commands: 0.03, startMs: START_MS };
const CAPS = { maxConcurrentMigrations: 4, maxOutboundPerHost: 1, maxInboundPerHost: 2, maxConcurrentPerGroup: 1 };
const OLDER_PLANNER = '0';

/** 64 GiB in 10 minutes. */
const copied = {
  migrationId: null,
  requestId: null,
  status: 'completed',
  reason: null,
  queuedMs: 0,
  runningMs: 600_000,
  totalMs: 600_000,
  memoryBytes: 64 * 1024 ** 3,
  diskBytes: 0,
};

type Vm = {
  readonly id: string;
  readonly name: string;
  host: string;
  readonly cpu: number;
  readonly memory: number;
  phase: number;
};

type Site = {
  readonly aggregate: string;
  readonly hosts: readonly string[];
  readonly vms: Vm[];
  /** Migrations that have ended, the newest first. */
  readonly ended: EndedMigration[];
  options: EngineOptions;
  version: string;
};

/** Each VM writes up to what links carry, all but the first. */
function moveCostsOf(site: Site): NonNullable<Snapshot['moveCostReadings']>[number] {
  const values = site.vms.slice(1).map((vm, i) => [vm.id, 20_000_000 * (i % 6)]);
  return {
    query: 'dirtied',
    label: 'vm',
    labelType: 'nova_instance_uuid',
    health: 'HEALTHY',
    text: '',
    values: Object.fromEntries(values),
    unmatchedLabels: 0,
    ambiguousLabels: 0,
  };
}

/**
 * A day, or less, in the life of Kronos, in one process and without real time: several aggregates whose loads go up and
 * down, decided by the planner's own cycle, moves started by the executor's own rule and ended well or badly, plans that
 * people approve, reject or forget, their other commands, a changed configuration and a planner upgrade.
 */
export function operate(options: OperationOptions): Operation {
  const events: StoredEvent[] = [];
  const snapshots: Snapshot[] = [];
  const cycles = operation(options);
  for (let next = cycles.next(); ; next = cycles.next()) {
    if (next.done === true) return { events, snapshots, end: next.value };
    events.push(...next.value.events);
    snapshots.push(...next.value.snapshots);
  }
}

/** The same, cycle by cycle: for operations that are too long to be held. */
export function* operation(options: OperationOptions): Generator<OperationCycle, LogState, undefined> {
  return yield* new Life(options).cycles();
}

const planner: Actor = { service: 'planner', instance: 'planner-1', version: '0.1.0' };
const executors = ['executor-1', 'executor-2'];
const people = ['ada@desk', 'grace@desk'];

/** The failure of an attempt. Default: before its start, and without a retry. */
type Failing = {
  readonly errorType: string;
  readonly text: string;
  readonly started?: boolean;
  readonly retry?: boolean;
};

/** The aggregates at the start, with the options of their planners. @param uniform the only source of randomness */
function sitesOf(options: OperationOptions, uniform: () => number): Site[] {
  const { aggregates = ['gpu', 'general', 'web eu/1'], hosts = 6, vmsPerHost = 6, upgradeAt = 0 } = options;
  /** However many VMs a host has, their loads fit. */
  const share = Math.min(1, 6 / vmsPerHost);
  return aggregates.map((aggregate, a): Site => {
    const names = Array.from({ length: hosts }, (_, h) => `${aggregate.replaceAll(/\W/g, '')}-compute-${h + 1}`);
    const vms = names.flatMap((host, h) =>
      Array.from({ length: vmsPerHost }, (_, v): Vm => {
        const n = h * vmsPerHost + v;
        return {
          id: `d${a}000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
          name: `vm-${a}-${n}`,
          host,
          cpu: Math.round((0.02 + uniform() * 0.1) * share * 1000) / 1000,
          memory: Math.round((0.02 + uniform() * 0.08) * share * 1000) / 1000,
          phase: Math.floor(uniform() * 24),
        };
      }),
    );
    const engine: EngineOptions = {
      ...defaultEngineOptions,
      dryRun: false,
      approval: a === 1 ? 'manual' : 'auto',
      settleSeconds: 60,
      planner: options.planner ?? (a === 0 ? 'search' : 'greedy'),
      searchWorkLimit: options.searchWorkLimit ?? 5000,
      ...options.engine,
      cooldownSeconds: 600,
    };
    return {
      aggregate,
      hosts: names,
      vms,
      ended: [],
      options: engine,
      version: upgradeAt > 0 ? OLDER_PLANNER : plannerVersion,
    };
  });
}

class Life {
  readonly #options: OperationOptions & typeof DEFAULTS;
  readonly #uniform: () => number;
  readonly #folder = createFolder();
  readonly #sites: readonly Site[];
  #events: StoredEvent[] = [];
  #snapshots: Snapshot[] = [];
  #nowMs: number;
  #commandCount = 0;

  constructor(options: OperationOptions) {
    this.#options = { ...DEFAULTS, ...options };
    this.#nowMs = this.#options.startMs;
    this.#uniform = random(options.seed);
    this.#sites = sitesOf(options, this.#uniform);
  }

  #chance(p: number): boolean {
    return this.#uniform() < p;
  }

  #int(n: number): number {
    return Math.floor(this.#uniform() * n);
  }

  #state(site: Site): AggregateState {
    return aggregateState(this.#folder.snapshot(), site.aggregate);
  }

  *cycles(): Generator<OperationCycle, LogState, undefined> {
    for (let cycle = 0; cycle < this.#options.cycles; cycle++) {
      const cycleMs = this.#options.startMs + cycle * 60_000;
      for (const [i, site] of this.#sites.entries()) {
        this.#nowMs = cycleMs + i * 5000;
        if (cycle === this.#options.upgradeAt) site.version = plannerVersion;
        if (cycle === Math.floor(this.#options.cycles / 2) && i === 0)
          site.options = { ...site.options, cooldownSeconds: 300 };
        this.#configure(site);
        const snapshot = this.#observe(site, cycle);
        this.#snapshots.push(snapshot);
        this.#nowMs += 1500;
        this.#decideOn(site, snapshot);
        this.#dispatch(site);
      }
      for (const [i, site] of this.#sites.entries()) {
        this.#nowMs = cycleMs + 20_000 + i * 10_000;
        this.#answer(site);
        this.#dispatch(site);
        if (this.#chance(this.#options.commands)) this.#command(site);
        if (this.#chance(0.2)) this.#resume(site);
        this.#execute(site);
      }
      yield { events: this.#events, snapshots: this.#snapshots };
      this.#events = [];
      this.#snapshots = [];
    }
    return this.#folder.snapshot();
  }

  #push(event: LogEvent): void {
    const parsed = parseMessage(event);
    if (!parsed.ok) throw new Error(`${event.type}: ${parsed.problem}`);
    const stored: StoredEvent = {
      sequence: this.#folder.sequence + 1,
      storedAt: this.#nowMs + 2,
      event: parsed.message as LogEvent,
    };
    this.#events.push(stored);
    this.#folder.apply(stored);
    this.#nowMs += 1;
  }
  #configure(site: Site): void {
    const { aggregate, options, version: plannerVersion } = site;
    const { configured } = this.#state(site);
    if (configured?.optionsDigest === digest(options) && configured.plannerVersion === plannerVersion) return;
    const made = { basis: this.#folder.sequence, by: planner, nowMs: this.#nowMs };
    this.#push(configuredEvent({ aggregate, options, plannerVersion, ...made }));
  }

  #observe(site: Site, cycle: number): Snapshot {
    const { shown, reading, ended, history, moveCosts } = this.#options;
    const moving = new Map(
      [...this.#state(site).tasks.values()].filter((t) => t.slot !== null).map((t) => [t.step.serverId, t]),
    );
    const vms = site.vms.map((vm): [string, SketchVm] => {
      const away = moving.get(vm.id);
      const set = { name: vm.name, projectId: 'acme', flavor: 'm1.small' };
      return [
        vm.id,
        {
          host: vm.host,
          w: { cpu: shownCpu(site, cycle, vm, shown), memory: vm.memory },
          ...(history === true || moveCosts === true ? { ramMb: 64 * 1024 } : {}),
          set: away === undefined ? set : { ...set, status: 'MIGRATING', taskState: 'migrating' },
        },
      ];
    });
    const members = (from: number, n: number) => site.vms.slice(from, from + n).map((vm) => vm.id);
    const snapshot = snapshotOf({
      time: iso(this.#nowMs),
      policies: {
        cpu: {
          threshold: 0.09,
          weight: 0.6,
          maxMigrationsPerCycle: 4,
          ...(moveCosts === true ? { moveCostQuery: 'dirtied' } : {}),
        },
        memory: { threshold: 0.12, weight: 0.4, maxMigrationsPerCycle: 4 },
      },
      hosts: Object.fromEntries(site.hosts.map((name) => [name, shownHost(site, cycle, name, shown)])),
      vms: Object.fromEntries(vms),
      groups: {
        apart: { policy: 'soft-anti-affinity', maxServerPerHost: 1, members: members(0, 3) },
        few: { policy: 'anti-affinity', maxServerPerHost: 2, members: members(4, 5) },
      },
      migrations: [...moving.values()].map((task) => ({
        serverId: task.step.serverId,
        sourceHost: task.step.from,
        destHost: task.destination,
      })),
      snapshot: {
        id: cycleSnapshotId(site.aggregate, Math.floor(this.#nowMs / 60_000)),
        aggregate: site.aggregate,
        cycle: Math.floor(this.#nowMs / 60_000),
        ...(ended === true ? { endedMigrations: [...site.ended] } : {}),
        ...(history === true ? { forecast: this.#historyOf(site, cycle) } : {}),
        ...(moveCosts === true ? { moveCostReadings: [moveCostsOf(site)] } : {}),
      },
    });
    return reading === undefined ? snapshot : shownAs(snapshot, reading);
  }

  #historyOf(site: Site, cycle: number): NonNullable<Snapshot['forecast']> {
    const head = { label: 'vm', labelType: 'nova_instance_uuid' as const, text: '' };
    const points = Array.from({ length: 13 }, (_, k) => cycle + 5 * k);
    const days = (at: (vm: Vm, point: number) => number) =>
      [1, 2, 3].map((ago) => ({
        ago,
        servers: Object.fromEntries(
          site.vms.map((vm) => [vm.id, points.map((point) => Math.round(at(vm, point) * (1 - ago / 100) * 1e4) / 1e4)]),
        ),
      }));
    return {
      stepSeconds: 300,
      points: points.length,
      readings: [
        {
          query: 'cpu_vm',
          ...head,
          days: days((vm, point) => load(vm, cycle, vm.cpu) * (point > cycle && cycle % 120 < 60 ? 0.2 : 1)),
        },
        { query: 'memory_vm', ...head, days: days((vm) => vm.memory) },
      ],
    };
  }

  #decideOn(site: Site, snapshot: Snapshot): void {
    const basis = this.#folder.sequence;
    const { slowEvery } = this.#options;
    const slow = slowEvery !== undefined && snapshot.cycle % slowEvery === 0;
    const searchWorkLimit = slow ? site.options.searchWorkLimit / 10 : undefined;
    const options = optionsOfDecision(site.options, { searchWorkLimit });
    const cycle = runCycle({ snapshot, state: this.#state(site), options });
    const decision = site.version === OLDER_PLANNER ? planOlder(cycle.decision) : cycle.decision;
    // Events between the basis and the decision are no part of it.
    if (this.#chance(0.05)) this.#execute(site);
    if (this.#chance(0.02)) this.#command(site);
    if (this.#chance(0.1)) this.#execute(this.#sites[this.#int(this.#sites.length)] ?? site);
    this.#push(
      decidedEvent(decision, {
        snapshot,
        basis,
        plannerVersion: site.version,
        options,
        searchWorkLimit,
        digests: { ...cycle.digests, snapshot: storedDigest(snapshot), decision: digest(decision) },
        absence: cycle.absence,
        loads: cycle.loads,
        details: null,
        by: planner,
        nowMs: this.#nowMs,
      }),
    );
  }

  #dispatch(site: Site): void {
    for (const plan of undispatched(this.#state(site))) {
      if (this.#chance(0.05)) continue;
      this.#push({
        type: 'plan.dispatched',
        version: 1,
        id: messageId.dispatched(plan.id),
        time: iso(this.#nowMs),
        aggregate: site.aggregate,
        by: planner,
        correlationId: plan.id,
        causationId: messageId.decided(plan.id),
        data: { planId: plan.id, tasks: plan.tasks.length },
      });
    }
  }

  #answer(site: Site): void {
    const waiting = waitingPlan(this.#state(site), this.#nowMs);
    if (waiting === null || !waiting.open || !this.#chance(0.3)) return;
    const { plan } = waiting;
    const steps = this.#chance(0.3) ? [plan.proposed[0]?.step ?? 1] : null;
    this.#ask(this.#chance(0.7) ? 'plan.approved' : 'plan.rejected', site.aggregate, { planId: plan.id, steps });
  }

  #command(site: Site): void {
    const serverId = site.vms[this.#int(site.vms.length)]?.id ?? '';
    const task = [...this.#state(site).tasks.values()].find((t) => t.end === null);
    const address = this.#chance(0.2) ? ALL : site.aggregate;
    const kind = this.#int(8);
    if (kind === 0) this.#ask('aggregate.paused', address, {});
    else if (kind < 3)
      this.#ask('instance.quarantined', site.aggregate, { serverId, seconds: this.#chance(0.3) ? -1 : 3600 });
    else if (kind === 3) this.#ask('instance.unquarantined', address, { serverId });
    else if (kind === 4)
      this.#ask('evaluation.requested', address, { purpose: this.#chance(0.5) ? 'evaluate' : 'record' });
    else if (task !== undefined)
      this.#ask(this.#chance(0.5) ? 'migration.cancelled' : 'migration.aborted', site.aggregate, { taskId: task.id });
  }

  /** Nobody leaves a pause for long. */
  #resume(site: Site): void {
    const { here, everywhere } = this.#state(site).paused;
    if (here !== null) this.#ask('aggregate.resumed', site.aggregate, {});
    if (everywhere !== null) this.#ask('aggregate.resumed', ALL, {});
  }

  #ask(type: LogEvent['type'], aggregate: string, data: object): void {
    this.#commandCount += 1;
    const commandId = `00000000-0000-4000-9000-${String(this.#commandCount).padStart(12, '0')}`;
    this.#push({
      type,
      version: 1,
      id: messageId.control(commandId),
      time: iso(this.#nowMs),
      aggregate,
      by: { service: 'operator', instance: people[this.#int(people.length)] ?? '', version: '0.1.0' },
      correlationId: commandId,
      causationId: null,
      data: { commandId, comment: null, ...data },
    } as LogEvent);
  }

  /** Every task of the aggregate a step further, by the rule that executors start moves by. */
  #execute(site: Site): void {
    for (const { id } of [...this.#state(site).tasks.values()]) {
      const now = this.#state(site);
      const task = now.tasks.get(id);
      if (task === undefined || task.end !== null) continue;
      if (task.slot !== null) {
        if (this.#nowMs - task.slot.startedAtMs > 30_000 || task.abortAsked !== null || task.cancelAsked !== null)
          this.#end(site, task);
        continue;
      }
      const attempt = { taskId: id, attempt: task.attempt, destination: task.destination };
      const may = mayStart(now, attempt, this.#nowMs, { caps: CAPS });
      if (may.verdict === 'end') this.#fail(site, task, { errorType: 'Cancelled', text: may.reason.text });
      if (may.verdict !== 'start') continue;
      const vm = site.vms.find((candidate) => candidate.id === task.step.serverId);
      if (vm?.host !== task.step.from) {
        this.#fail(site, task, { errorType: 'Cancelled', text: 'the server was moved by others' });
        continue;
      }
      if (this.#chance(this.#options.failures / 4)) {
        this.#fail(site, task, { errorType: 'PreFlightError', text: 'the destination has no room' });
        continue;
      }
      this.#push({
        ...this.#envelope(site, task, messageId.started(task.id, task.attempt)),
        type: 'migration.started',
        data: {
          ...about(task),
          groups: task.step.groups.map((g) => g.id),
          newestMigrationId: this.#folder.sequence,
          forced: false,
          ramMb: task.step.ramMb,
          diskGb: task.step.diskGb,
        },
      });
      if (this.#chance(0.8))
        this.#push({
          ...this.#envelope(site, task, messageId.observed(task.id, task.attempt)),
          type: 'migration.observed',
          data: { ...about(task), migrationId: this.#folder.sequence, requestId: `req-nova-${this.#folder.sequence}` },
        });
    }
  }

  #end(site: Site, task: TaskFacts): void {
    if (task.abortAsked !== null || task.cancelAsked !== null)
      this.#fail(site, task, { errorType: 'Cancelled', text: 'aborted by an operator', started: true });
    else if (this.#chance(this.#options.failures)) {
      const type = ['MigrationFailed', 'MigrationTimeout', 'NovaClientError'][this.#int(3)] ?? 'MigrationFailed';
      const retry = task.attempt < 3 && this.#chance(0.6);
      this.#fail(site, task, { errorType: type, text: `${type} of the simulation`, started: true, retry });
    } else this.#complete(site, task);
  }

  #complete(site: Site, task: TaskFacts): void {
    const vm = site.vms.find((candidate) => candidate.id === task.step.serverId);
    if (vm !== undefined) vm.host = task.destination;
    const { slot, step, destination: to } = task;
    const id = slot?.migrationId ?? (slot?.newestMigrationId ?? 0) + 1;
    site.ended.unshift({ id, serverId: step.serverId, from: step.from, to, at: iso(this.#nowMs) });
    this.#push({
      ...this.#envelope(site, task, messageId.ended(task.id, task.attempt)),
      type: 'migration.completed',
      data: {
        ...about(task),
        outcome: 'migrated',
        host: task.destination,
        retries: task.attempt - 1,
        nova: this.#options.moveCosts === true ? copied : null,
        warnings: [],
      },
    });
  }

  #fail(site: Site, task: TaskFacts, { errorType, text, started = false, retry = false }: Failing): void {
    const destination = task.step.alternates[0] ?? task.destination;
    this.#push({
      ...this.#envelope(site, task, messageId.ended(task.id, task.attempt)),
      type: 'migration.failed',
      data: {
        ...about(task),
        errorType,
        reason: { code: 'simulated', text },
        retries: task.attempt - 1,
        retryPending: retry,
        next: retry ? { attempt: task.attempt + 1, destination, notBefore: iso(this.#nowMs + 30_000) } : null,
        hostAtFault: errorType === 'MigrationFailed' ? task.destination : null,
        started,
        nova: null,
      },
    });
  }

  #envelope(site: Site, task: TaskFacts, id: string) {
    return {
      version: 1 as const,
      id,
      time: iso(this.#nowMs),
      aggregate: site.aggregate,
      by: { service: 'executor' as const, instance: executors[this.#int(2)] ?? '', version: '0.1.0' },
      correlationId: task.planId,
      causationId: messageId.requested(task.id, task.attempt),
    };
  }
}

/** Load of a VM: a wave over the day, so that balance does not last. */
const load = (vm: Vm, cycle: number, base: number): number =>
  Math.round(base * (0.4 + 1.2 * Math.sin((Math.PI * (cycle / 60 + vm.phase)) / 8) ** 2) * 10_000) / 10_000;

function shownAs(snapshot: Snapshot, reading: (load: number) => number): Snapshot {
  const through = <T extends { readonly values: Readonly<Record<string, number>> }>(readings: readonly T[]): T[] =>
    readings.map((one) => ({
      ...one,
      values: Object.fromEntries(Object.entries(one.values).map(([key, value]) => [key, reading(value)])),
    }));
  return { ...snapshot, hostReadings: through(snapshot.hostReadings), vmReadings: through(snapshot.vmReadings) };
}

function shownCpu(site: Site, cycle: number, vm: Vm, shown: OperationOptions['shown']): number {
  const host = site.hosts.indexOf(vm.host);
  return load(vm, cycle, vm.cpu) * (shown?.({ host, vm: vm.id, cycle }) ?? 1);
}

function shownHost(site: Site, cycle: number, name: string, shown: OperationOptions['shown']): SketchHost {
  if (shown === undefined) return {};
  const sum = site.vms.reduce((cpu, vm) => (vm.host === name ? cpu + shownCpu(site, cycle, vm, shown) : cpu), 0);
  return { score: { cpu: sum * shown({ host: site.hosts.indexOf(name), vm: null, cycle }) } };
}

const iso = (ms: number): string => new Date(ms).toISOString();

const about = (task: TaskFacts) => ({
  taskId: task.id,
  planId: task.planId,
  serverId: task.step.serverId,
  attempt: task.attempt,
  from: task.step.from,
  destination: task.destination,
});

/** The decision of the older planner: the same, but without alternates, which it did not know. */
function planOlder(decision: Decision): Decision {
  if (decision.plan === null) return decision;
  return { ...decision, plan: { ...decision.plan, steps: decision.plan.steps.map((s) => ({ ...s, alternates: [] })) } };
}

/** A planted difference: the decision at this place of the log with one step sent elsewhere. */
export function tamper(events: readonly StoredEvent[], sequence: number): StoredEvent[] {
  return events.map((stored) => {
    const { event } = stored;
    if (stored.sequence !== sequence || event.type !== 'cycle.decided') return stored;
    const data: CycleDecided['data'] = { ...event.data, refusals: { ...event.data.refusals, planted: 1 } };
    return { ...stored, event: { ...event, data } };
  });
}
