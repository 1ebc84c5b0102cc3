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
  /** When each of these moves ended, ms since {@link START_MS}. */
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
/** As the scorer asks for them. */
const STEP_MS = 300_000;
const POINTS = 13;
const DAYS_BACK = 14;
const POLICY_NAMES = ['cpu', 'memory'] as const;
/** Six hours. */
const WARM_UP = 360;

type Flight = { readonly step: Step; readonly startMs: number; readonly endMs: number };

export function run({
  scenario,
  variant,
  seed,
  days,
  size = SMALL,
  warmUpCycles = WARM_UP,
  everyCycle = false,
}: RunInput): Outcome {
  const world = new World(scenario, seed, size);
  const options: CompleteEngineOptions = {
    ...defaultEngineOptions,
    dryRun: false,
    searchWorkLimit: WORK_LIMIT,
    ...variant.options,
  };
  const cycles = days * 1440;
  const truth = new Float64Array(size.hosts * 2);
  const seen = new Float64Array(size.hosts * 2);
  const index = new Map(world.hosts.map((name, h) => [name, h]));
  const releases = new Map<string, number[]>();
  const left = new Map<string, { host: number; ms: number }>();
  const measuredThen = new Map<string, number[]>();
  const movedAt: number[] = [];
  let flights: Flight[] = [];
  let lastRelease: Memory['lastRelease'] = null;
  let lastMoveEndMs: number | null = null;
  let lastDecidedMs: number | null = null;
  let sustained: Record<string, number> = {};
  let waits = 0;
  let waited = noWaits;
  const paces: number[] = [];
  let takenBack = 0;
  let above = 0;

  for (let cycle = 0; cycle < cycles; cycle++) {
    const ms = START_MS + cycle * MINUTE_MS;
    for (const gone of world.churn(ms)) flights = flights.filter(({ step }) => step.serverId !== gone.id);
    land(ms);
    world.valuesAt(ms, truth);
    if (cycle >= warmUpCycles && detected(truth)) above++;
    for (let i = 0; i < seen.length; i++) seen[i] = world.measured(truth[i] ?? 0, ms, i);
    plan(ms, cycle);
  }
  return { cycles: cycles - warmUpCycles, moves: movedAt.length, takenBack, above, movedAt, waits };

  function detected(values: Float64Array): boolean {
    for (const [p, threshold] of THRESHOLDS.entries()) {
      let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
      for (let h = 0; h < size.hosts; h++) {
        const value = values[h * 2 + p] ?? 0;
        if (value < low) low = value;
        if (value > high) high = value;
      }
      if (isAbove(high - low, threshold)) return true;
    }
    return false;
  }

  /** Ends the moves whose time has come. */
  function land(ms: number): void {
    if (flights.length === 0) return;
    for (const { step, startMs, endMs } of flights.filter((flight) => flight.endMs <= ms)) {
      paces.push(paceOfMove({ ms: endMs - startMs, gib: step.ramMb / 1024 }) ?? 0);
      const vm = world.vms.find(({ id }) => id === step.serverId);
      lastMoveEndMs = Math.max(lastMoveEndMs ?? 0, endMs);
      if (vm === undefined) continue;
      const to = index.get(step.to) ?? vm.host;
      const counts = endMs >= START_MS + warmUpCycles * MINUTE_MS;
      const before = left.get(vm.id);
      if (counts && before !== undefined && before.host === to && endMs - before.ms <= HOUR_MS) takenBack++;
      left.set(vm.id, { host: vm.host, ms: endMs });
      vm.host = to;
      if (counts) movedAt.push(endMs - START_MS);
    }
    flights = flights.filter((flight) => flight.endMs > ms);
  }

  function plan(ms: number, cycle: number): void {
    if (!everyCycle) {
      if (!detected(seen)) {
        waited = afterDecision(waited, { atMs: ms, waits: null, above: false });
        return;
      }
      if (aggregateCooldown({ lastRelease, lastRefusal: null, waiting: null }, ms, options) !== null) return;
      if (lastMoveEndMs !== null && ms < lastMoveEndMs + options.settleSeconds * 1000) return;
    }
    const memory: Memory = {
      ...emptyMemory,
      lastDecidedMs,
      lastRelease,
      lastMoveEndMs,
      releases: Object.fromEntries(releases),
      inFlight: flights.map(({ step, startMs }) => ({
        taskId: step.taskId,
        serverId: step.serverId,
        from: step.from,
        destination: step.to,
        resources: step.resources,
        weights: step.weights,
        ramMb: step.ramMb,
        startedAtMs: startMs <= ms ? startMs : null,
      })),
      sustained,
      movePaces: {
        others: paceOf({ pair: [], aggregate: paces.slice(-PACES_KEPT), all: [] })?.median ?? null,
        pairs: {},
      },
      waits: waited,
    };
    const decision = decide({ snapshot: snapshotAt(ms, cycle), memory, options });
    lastDecidedMs = ms;
    sustained = Object.fromEntries(decision.before.policies.map((one) => [one.policy, one.sustainedCycles]));
    const waitsFor = decision.reason.code.startsWith('expected-to-');
    if (waitsFor) waits++;
    const above = decision.outcome === 'gated' ? null : decision.before.policies.some((one) => one.detected);
    const { until, secondsWithPlan } = decision.reason.detail ?? {};
    const wait = waitsFor ? { untilMs: Date.parse(String(until)), plannedMs: 1000 * Number(secondsWithPlan) } : null;
    waited = afterDecision(waited, { atMs: ms, waits: wait, above });
    if (decision.plan === null) return;
    lastRelease = { planId: decision.plan.id, atMs: ms };
    for (const { serverId } of decision.plan.steps)
      releases.set(serverId, [...(releases.get(serverId) ?? []).slice(-15), ms]);
    flights.push(...schedule(decision.plan.steps, ms));
  }

  function snapshotAt(ms: number, cycle: number) {
    const used = world.usedMb();
    const moving = new Set(flights.filter(({ startMs }) => startMs <= ms).map(({ step }) => step.serverId));
    const sketchOf = (vm: BenchVm): SketchVm => ({
      host: world.hosts[vm.host] ?? '',
      ramMb: vm.ramMb,
      w: {
        cpu: world.measuredCpu(vm, ms),
        memory: vm.memory,
      },
      ...(moving.has(vm.id) ? { set: { status: 'MIGRATING', taskState: 'migrating' } } : {}),
    });
    return snapshotOf({
      time: new Date(ms).toISOString(),
      policies: { cpu: { ...POLICIES.cpu }, memory: { ...POLICIES.memory } },
      hosts: Object.fromEntries(
        world.hosts.map((name, h) => [
          name,
          {
            score: { cpu: seen[h * 2] ?? 0, memory: seen[h * 2 + 1] ?? 0 },
            free: { MEMORY_MB: HOST_MB - (used[h] ?? 0) },
          },
        ]),
      ),
      vms: Object.fromEntries(world.vms.map((vm) => [vm.id, sketchOf(vm)])),
      snapshot: {
        id: `bench-${cycle}`,
        cycle,
        ...(options.forecast
          ? {
              forecast: {
                stepSeconds: STEP_MS / 1000,
                points: POINTS,
                readings: [...POLICY_NAMES.entries()].map((one) => historyOf(one, ms)),
              },
            }
          : {}),
      },
    });
  }

  /** What was measured at a time; each is asked for on many days. */
  function cpuThen(vm: BenchVm, ms: number): number {
    const step = (ms - START_MS) / STEP_MS;
    const known = measuredThen.get(vm.id) ?? [];
    measuredThen.set(vm.id, known);
    known[step] ??= Math.round(world.measuredCpu(vm, ms) * 1e4) / 1e4;
    return known[step];
  }

  /** What Prometheus would answer about this time of former days. */
  function historyOf([p, name]: readonly [number, string], ms: number) {
    const firstMs = Math.floor(ms / STEP_MS) * STEP_MS;
    const days = Array.from({ length: DAYS_BACK }, (_, d) => d + 1)
      .filter((ago) => firstMs - ago * DAY_MS >= START_MS)
      .map((ago) => ({
        ago,
        servers: Object.fromEntries(
          world.vms
            .filter((vm) => vm.bornMs <= firstMs - ago * DAY_MS)
            .map((vm) => [
              vm.id,
              Array.from({ length: POINTS }, (_, k) =>
                p === 0 ? cpuThen(vm, firstMs - ago * DAY_MS + k * STEP_MS) : Math.round(vm.memory * 1e4) / 1e4,
              ),
            ]),
        ),
      }));
    const text = days.length === 0 ? 'no history' : '';
    return { query: `${name}_vm`, label: 'vm', labelType: 'nova_instance_uuid' as const, text, days };
  }
}

/** When each step runs: after those that it depends on, one from a host at a time, a few at once. */
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
