/** Kronos' decisions about a {@link World} over days: the pure core, a memory kept by hand, and moves that take their time. */
import { type CompleteEngineOptions, DAY_MS, defaultEngineOptions, type Step } from '@kronos/contracts';
import { decide, emptyMemory, type Memory } from '@kronos/placement';
import { type SketchVm, snapshotOf } from '@kronos/placement/testing';
import { afterDecision, aggregateCooldown, isAbove, noWaits, PACES_KEPT, paceOf, paceOfMove } from '@kronos/rules';
import { type BenchVm, HOUR_MS, MINUTE_MS, type Scenario, type Size, START_MS, World } from './world.ts';

export type Variant = {
  readonly name: string;
  readonly options: Partial<CompleteEngineOptions>;
};

export const variants: readonly Variant[] = [
  { name: 'greedy', options: { planner: 'greedy' } },
  { name: 'search, threshold', options: { planner: 'search', targetRatio: 1 } },
  { name: 'search, target', options: { planner: 'search' } },
];

export type Outcome = {
  readonly cycles: number;
  readonly moves: number;
  /** Moves that brought a VM back to a host that it had left within the hour before. */
  readonly takenBack: number;
  /** Cycles in which a policy was above its threshold, without the noise of the measurement. */
  readonly above: number;
  /** The time at which each of these moves ended, ms since {@link START_MS}. */
  readonly movedAt: readonly number[];
  /** Cycles in which the forecast left a plan out. */
  readonly waits: number;
};

/** The default with a forecast from what was measured on former days. */
export const forecasting: Variant = {
  name: 'search, target, forecast',
  options: { planner: 'search', forecast: true },
};

export type RunInput = {
  readonly scenario: Scenario;
  readonly variant: Variant;
  readonly seed: number;
  readonly days: number;
  readonly size?: Size;
  /** Cycles at the start that nothing is counted of: the first plans balance what was placed by chance. */
  readonly warmUpCycles?: number;
  /**
   * Decide every cycle. Otherwise those are left out that end without a plan by one comparison: within a cooldown, in the time after a
   * move, or with every policy within its threshold. A test holds both to the same moves.
   */
  readonly everyCycle?: boolean;
};

/** Thresholds as in deploy/policies. */
const POLICIES = { cpu: { threshold: 0.2, weight: 0.6 }, memory: { threshold: 0.2, weight: 0.4 } } as const;
const THRESHOLDS = [POLICIES.cpu.threshold, POLICIES.memory.threshold];
/** A larger limit costs more and moves no less. */
export const WORK_LIMIT = 50_000;
const SMALL: Size = { hosts: 8, vmsPerHost: 8 };
const HOST_MB = 1024 * 768;
/** A migration takes this, and this for each GiB: a link that carries 100 MiB/s. */
const MOVE = { fixedMs: 20_000, perGibMs: 10_000 };
const MOST_AT_ONCE = 4;
/** The history that the scorer requests. */
const STEP_MS = 300_000;
const POINTS = 13;
const DAYS_BACK = 14;
const POLICY_NAMES = ['cpu', 'memory'] as const;
/** Six hours. */
const WARM_UP = 360;

type Flight = { readonly step: Step; readonly startMs: number; readonly endMs: number };

export function run(input: RunInput): Outcome {
  return new Run(input).outcome();
}

class Run {
  readonly #world: World;
  readonly #size: Size;
  readonly #options: CompleteEngineOptions;
  readonly #cycles: number;
  readonly #warmUpCycles: number;
  readonly #everyCycle: boolean;
  readonly #seen: Float64Array;
  readonly #index: ReadonlyMap<string, number>;
  readonly #releases = new Map<string, number[]>();
  readonly #left = new Map<string, { host: number; ms: number }>();
  readonly #measuredThen = new Map<string, number[]>();
  readonly #movedAt: number[] = [];
  readonly #paces: number[] = [];
  #flights: Flight[] = [];
  #lastRelease: Memory['lastRelease'] = null;
  #lastMoveEndMs: number | null = null;
  #lastDecidedMs: number | null = null;
  #sustained: Record<string, number> = {};
  #waits = 0;
  #waited = noWaits;
  #takenBack = 0;

  constructor({ scenario, variant, seed, days, size = SMALL, warmUpCycles = WARM_UP, everyCycle = false }: RunInput) {
    this.#world = new World(scenario, seed, size);
    this.#size = size;
    this.#options = { ...defaultEngineOptions, dryRun: false, searchWorkLimit: WORK_LIMIT, ...variant.options };
    this.#cycles = days * 1440;
    this.#warmUpCycles = warmUpCycles;
    this.#everyCycle = everyCycle;
    this.#seen = new Float64Array(size.hosts * 2);
    this.#index = new Map(this.#world.hosts.map((name, h) => [name, h]));
  }

  outcome(): Outcome {
    const truth = new Float64Array(this.#seen.length);
    let above = 0;
    for (let cycle = 0; cycle < this.#cycles; cycle++) {
      const ms = START_MS + cycle * MINUTE_MS;
      for (const gone of this.#world.churn(ms))
        this.#flights = this.#flights.filter(({ step }) => step.serverId !== gone.id);
      this.#land(ms);
      this.#world.valuesAt(ms, truth);
      if (cycle >= this.#warmUpCycles && this.#detected(truth)) above++;
      for (let i = 0; i < this.#seen.length; i++) this.#seen[i] = this.#world.measured(truth[i] ?? 0, ms, i);
      this.#plan(ms, cycle);
    }
    return {
      cycles: this.#cycles - this.#warmUpCycles,
      moves: this.#movedAt.length,
      takenBack: this.#takenBack,
      above,
      movedAt: this.#movedAt,
      waits: this.#waits,
    };
  }

  #detected(values: Float64Array): boolean {
    for (const [p, threshold] of THRESHOLDS.entries()) {
      let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
      for (let h = 0; h < this.#size.hosts; h++) {
        const value = values[h * 2 + p] ?? 0;
        if (value < low) low = value;
        if (value > high) high = value;
      }
      if (isAbove(high - low, threshold)) return true;
    }
    return false;
  }

  /** Ends the moves whose time has come. */
  #land(ms: number): void {
    if (this.#flights.length === 0) return;
    for (const { step, startMs, endMs } of this.#flights.filter((flight) => flight.endMs <= ms)) {
      this.#paces.push(paceOfMove({ ms: endMs - startMs, gib: step.ramMb / 1024 }) ?? 0);
      const vm = this.#world.vms.find(({ id }) => id === step.serverId);
      this.#lastMoveEndMs = Math.max(this.#lastMoveEndMs ?? 0, endMs);
      if (vm === undefined) continue;
      const to = this.#index.get(step.to) ?? vm.host;
      const counts = endMs >= START_MS + this.#warmUpCycles * MINUTE_MS;
      const before = this.#left.get(vm.id);
      if (counts && before !== undefined && before.host === to && endMs - before.ms <= HOUR_MS) this.#takenBack++;
      this.#left.set(vm.id, { host: vm.host, ms: endMs });
      vm.host = to;
      if (counts) this.#movedAt.push(endMs - START_MS);
    }
    this.#flights = this.#flights.filter((flight) => flight.endMs > ms);
  }

  #plan(ms: number, cycle: number): void {
    if (!this.#everyCycle) {
      if (!this.#detected(this.#seen)) {
        this.#waited = afterDecision(this.#waited, { atMs: ms, waits: null, above: false });
        return;
      }
      if (
        aggregateCooldown({ lastRelease: this.#lastRelease, lastRefusal: null, waiting: null }, ms, this.#options) !==
        null
      )
        return;
      if (this.#lastMoveEndMs !== null && ms < this.#lastMoveEndMs + this.#options.settleSeconds * 1000) return;
    }
    const memory = this.#memory(ms);
    const decision = decide({ snapshot: this.#snapshotAt(ms, cycle), memory, options: this.#options });
    this.#lastDecidedMs = ms;
    this.#sustained = Object.fromEntries(decision.before.policies.map((one) => [one.policy, one.sustainedCycles]));
    const waitsFor = decision.reason.code.startsWith('expected-to-');
    if (waitsFor) this.#waits++;
    const above = decision.outcome === 'gated' ? null : decision.before.policies.some((one) => one.detected);
    const { until, secondsWithPlan } = decision.reason.detail ?? {};
    const wait = waitsFor ? { untilMs: Date.parse(String(until)), plannedMs: 1000 * Number(secondsWithPlan) } : null;
    this.#waited = afterDecision(this.#waited, { atMs: ms, waits: wait, above });
    if (decision.plan === null) return;
    this.#lastRelease = { planId: decision.plan.id, atMs: ms };
    for (const { serverId } of decision.plan.steps)
      this.#releases.set(serverId, [...(this.#releases.get(serverId) ?? []).slice(-15), ms]);
    this.#flights.push(...schedule(decision.plan.steps, ms));
  }

  /** The facts of earlier cycles. */
  #memory(ms: number): Memory {
    return {
      ...emptyMemory,
      lastDecidedMs: this.#lastDecidedMs,
      lastRelease: this.#lastRelease,
      lastMoveEndMs: this.#lastMoveEndMs,
      releases: Object.fromEntries(this.#releases),
      inFlight: this.#flights.map(({ step, startMs }) => ({
        taskId: step.taskId,
        serverId: step.serverId,
        from: step.from,
        destination: step.to,
        resources: step.resources,
        weights: step.weights,
        ramMb: step.ramMb,
        startedAtMs: startMs <= ms ? startMs : null,
      })),
      sustained: this.#sustained,
      movePaces: {
        others: paceOf({ pair: [], aggregate: this.#paces.slice(-PACES_KEPT), all: [] })?.median ?? null,
        pairs: {},
      },
      waits: this.#waited,
    };
  }

  #snapshotAt(ms: number, cycle: number) {
    const used = this.#world.usedMb();
    const moving = new Set(this.#flights.filter(({ startMs }) => startMs <= ms).map(({ step }) => step.serverId));
    const sketchOf = (vm: BenchVm): SketchVm => ({
      host: this.#world.hosts[vm.host] ?? '',
      ramMb: vm.ramMb,
      w: {
        cpu: this.#world.measuredCpu(vm, ms),
        memory: vm.memory,
      },
      ...(moving.has(vm.id) ? { set: { status: 'MIGRATING', taskState: 'migrating' } } : {}),
    });
    return snapshotOf({
      time: new Date(ms).toISOString(),
      policies: { cpu: { ...POLICIES.cpu }, memory: { ...POLICIES.memory } },
      hosts: Object.fromEntries(
        this.#world.hosts.map((name, h) => [
          name,
          {
            score: { cpu: this.#seen[h * 2] ?? 0, memory: this.#seen[h * 2 + 1] ?? 0 },
            free: { MEMORY_MB: HOST_MB - (used[h] ?? 0) },
          },
        ]),
      ),
      vms: Object.fromEntries(this.#world.vms.map((vm) => [vm.id, sketchOf(vm)])),
      snapshot: {
        id: `bench-${cycle}`,
        cycle,
        ...(this.#options.forecast
          ? {
              forecast: {
                stepSeconds: STEP_MS / 1000,
                points: POINTS,
                readings: [...POLICY_NAMES.entries()].map((one) => this.#historyOf(one, ms)),
              },
            }
          : {}),
      },
    });
  }

  /** The measured load at a time. Each is read on many days. */
  #cpuThen(vm: BenchVm, ms: number): number {
    const step = (ms - START_MS) / STEP_MS;
    const known = this.#measuredThen.get(vm.id) ?? [];
    this.#measuredThen.set(vm.id, known);
    known[step] ??= Math.round(this.#world.measuredCpu(vm, ms) * 1e4) / 1e4;
    return known[step];
  }

  /** Prometheus' answer about this time of former days. */
  #historyOf([p, name]: readonly [number, string], ms: number) {
    const firstMs = Math.floor(ms / STEP_MS) * STEP_MS;
    const days = Array.from({ length: DAYS_BACK }, (_, d) => d + 1)
      .filter((ago) => firstMs - ago * DAY_MS >= START_MS)
      .map((ago) => ({
        ago,
        servers: Object.fromEntries(
          this.#world.vms
            .filter((vm) => vm.bornMs <= firstMs - ago * DAY_MS)
            .map((vm) => [
              vm.id,
              Array.from({ length: POINTS }, (_, k) =>
                p === 0 ? this.#cpuThen(vm, firstMs - ago * DAY_MS + k * STEP_MS) : Math.round(vm.memory * 1e4) / 1e4,
              ),
            ]),
        ),
      }));
    const text = days.length === 0 ? 'no history' : '';
    return { query: `${name}_vm`, label: 'vm', labelType: 'nova_instance_uuid' as const, text, days };
  }
}

/** Schedules the steps: each after those that it depends on, one from a host at a time, a few at once. */
function schedule(steps: readonly Step[], releasedMs: number): Flight[] {
  const ends = new Map<string, number>();
  const free = new Map<string, number>();
  const slots = Array.from({ length: MOST_AT_ONCE }, () => releasedMs);
  return steps.map((step) => {
    const slot = slots.indexOf(Math.min(...slots));
    const startMs = Math.max(
      slots[slot] ?? releasedMs,
      free.get(step.from) ?? releasedMs,
      ...step.dependsOn.map((id) => ends.get(id) ?? releasedMs),
    );
    const endMs = startMs + MOVE.fixedMs + (step.ramMb / 1024) * MOVE.perGibMs;
    slots[slot] = endMs;
    free.set(step.from, endMs);
    ends.set(step.taskId, endMs);
    return { step, startMs, endMs };
  });
}
