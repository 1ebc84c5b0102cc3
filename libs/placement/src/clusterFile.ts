import { defaultEngineOptions, type EngineOptions, groupPolicySchema, type Policy, type Step } from '@kronos/contracts';
import { buildCluster, type Cluster, type GroupPart, type HostPart, type VmPart } from './cluster.ts';
import { Draft } from './draft.ts';
import { ClusterFileError } from './errors.ts';
import { combinedOf, imbalances } from './measure.ts';
import { enforceAffinity } from './passes/affinity.ts';
import { evacuate } from './passes/evacuate.ts';
import { type Drain, pack } from './passes/pack.ts';
import type { SearchEnd } from './passes/search/search.ts';
import { spread } from './passes/spread.ts';
import { complete, quality } from './plan.ts';
import type { ReasonCode } from './reasons.ts';

/** A cluster as `kronos plan --cluster` reads it. Unknown fields are errors. */
export type ClusterFile = {
  readonly policies: readonly string[];
  /** One per policy; normalised to sum 1. */
  readonly weights: readonly number[];
  /** One per policy; 0 where not given. */
  readonly thresholds?: readonly number[];
  readonly hosts: readonly {
    readonly id: string;
    /** One per policy; the sum of its VMs' weights where not given. */
    readonly score?: readonly number[];
    /** Unlimited where not given. */
    readonly memFreeMb?: number;
    readonly vcpusFree?: number;
    readonly status?: 'enabled' | 'disabled';
    readonly state?: 'up' | 'down';
    readonly az?: string;
  }[];
  readonly vms: readonly {
    readonly id: string;
    readonly host: string;
    /** Share of its host, one per policy. */
    readonly w: readonly number[];
    readonly vcpus?: number;
    readonly memMb?: number;
  }[];
  readonly groups?: readonly { readonly id: string; readonly policy: string; readonly vms: readonly string[] }[];
};

export type PlanClusterOptions = {
  readonly maxMigrations: number;
  readonly mode?: Policy['mode'];
  /** Pack mode: hosts are filled below this value of each policy; 1 where not given. */
  readonly capacityThreshold?: number;
} & Partial<
  Pick<
    EngineOptions,
    | 'planner'
    | 'minGain'
    | 'searchWorkLimit'
    | 'alternates'
    | 'allowParking'
    | 'packHeadroomHosts'
    | 'packReachCycles'
    | 'evacuateDisabledHosts'
    | 'enforceHardAffinity'
    | 'enforceSoftAffinity'
    | 'restrictToAz'
  >
>;

export type PlannedMove = Pick<Step, 'step' | 'phase' | 'parking' | 'from' | 'to' | 'alternates'> & {
  readonly vm: string;
  /** Steps that must have completed before this one starts. */
  readonly dependsOn: readonly number[];
};

export type ClusterScores = { readonly combined: number; readonly perPolicy: Readonly<Record<string, number>> };

export type PlannedCluster = {
  readonly moves: readonly PlannedMove[];
  readonly before: ClusterScores;
  readonly after: ClusterScores;
  /** No plan with this budget can bring the combined imbalance below this; null where none is known. */
  readonly lowerBound: number | null;
  readonly shareOfPossible: number | null;
  readonly stats: {
    readonly candidatesEvaluated: number;
    readonly refusals: Readonly<Record<string, number>>;
    /** `done`: nothing more was found. `budget`, `work`: more moves, or more work, might have found more. */
    readonly endedBy: SearchEnd;
  };
};

/**
 * Plans on a cluster file, with the passes that decisions use.
 *
 * @param file parsed JSON.
 * @throws ClusterFileError that names the field that does not fit.
 */
export function planCluster(file: unknown, options: PlanClusterOptions): PlannedCluster {
  return planParsed(clusterOf(parseClusterFile(file), options), options);
}

/** {@link planCluster} on a cluster that is built already. */
export function planParsed(cluster: Cluster, options: PlanClusterOptions): PlannedCluster {
  const settings: EngineOptions = { ...defaultEngineOptions, minGain: 0, ...options };
  const draft = new Draft(cluster, options.maxMigrations);
  let drains: readonly Drain[] = [];
  let endedBy: SearchEnd = 'done';
  if (settings.evacuateDisabledHosts) evacuate(draft);
  enforceAffinity(draft, settings);
  if (draft.budget > 0)
    if (options.mode === 'pack') drains = pack(draft, options.maxMigrations, settings);
    else endedBy = spread(draft, options.maxMigrations, settings);
  const { steps, after } = complete('plan', draft, drains, settings);
  const before = scoresOf(cluster, imbalances(cluster, cluster.score));
  const reached = scoresOf(cluster, after);
  const { lowerBound, shareOfPossible } =
    options.mode === 'pack'
      ? { lowerBound: null, shareOfPossible: null }
      : quality(cluster, options.maxMigrations, before.combined, reached.combined);
  const number = new Map(steps.map((step) => [step.taskId, step.step]));
  return {
    moves: steps.map((step) => ({
      step: step.step,
      vm: step.serverId,
      from: step.from,
      to: step.to,
      phase: step.phase,
      parking: step.parking,
      alternates: step.alternates,
      dependsOn: step.dependsOn.map((task) => number.get(task) ?? 0),
    })),
    before,
    after: reached,
    lowerBound,
    shareOfPossible,
    stats: { candidatesEvaluated: draft.evaluated, refusals: draft.refusals.toRecord(), endedBy },
  };
}

function scoresOf(cluster: Cluster, imbalance: Float64Array): ClusterScores {
  return {
    combined: combinedOf(cluster, imbalance),
    perPolicy: Object.fromEntries(cluster.policies.map((policy, p) => [policy.name, imbalance[p] ?? 0])),
  };
}

/** The planner's arrays for a cluster file. */
export function clusterOf(file: ClusterFile, options: PlanClusterOptions): Cluster {
  let total = 0;
  for (const weight of file.weights) total += weight;
  const P = file.policies.length;
  const sums = new Map(file.hosts.map((host) => [host.id, new Float64Array(P)]));
  for (const vm of file.vms) {
    const sum = sums.get(vm.host);
    if (sum !== undefined) for (let p = 0; p < P; p++) sum[p] = (sum[p] ?? 0) + (vm.w[p] ?? 0);
  }
  return buildCluster({
    policies: file.policies.map((name, p) => ({
      name,
      weight: total > 0 ? (file.weights[p] ?? 0) / total : 1 / P,
      threshold: file.thresholds?.[p] ?? 0,
      capacityThreshold: options.mode === 'pack' ? (options.capacityThreshold ?? 1) : Number.POSITIVE_INFINITY,
    })),
    hosts: file.hosts.map((host): HostPart => {
      const up = host.state !== 'down';
      const enabled = host.status !== 'disabled';
      const refusal: ReasonCode | null = up ? (enabled ? null : 'host-disabled') : 'host-down';
      const score = host.score ?? [...(sums.get(host.id) ?? [])];
      return {
        name: host.id,
        zone: host.az ?? null,
        cell: null,
        hypervisorType: '',
        hypervisorVersion: 0,
        traits: null,
        score,
        size: file.policies.map(() => 1),
        fullness: score,
        counted: up && enabled,
        refusal,
        leaving: up && !enabled,
        inventory: { MEMORY_MB: free(host.memFreeMb), VCPU: free(host.vcpusFree) },
      };
    }),
    vms: file.vms.map(
      (vm): VmPart => ({
        id: vm.id,
        name: vm.id,
        host: vm.host,
        alsoOn: [],
        weight: vm.w,
        resources: { VCPU: vm.vcpus ?? 0, MEMORY_MB: vm.memMb ?? 0 },
        refusal: null,
        pin: null,
        requiredTraits: [],
        forbiddenTraits: [],
        ramMb: vm.memMb ?? 0,
        diskGb: 0,
        vcpus: vm.vcpus ?? 0,
      }),
    ),
    groups: (file.groups ?? []).map((group): GroupPart => {
      const policy = groupPolicySchema.parse(group.policy);
      return { id: group.id, policy, maxServerPerHost: 1, members: group.vms };
    }),
    restrictToAz: options.restrictToAz ?? false,
  });
}

const free = (amount: number | undefined) => ({
  capacity: amount ?? Number.POSITIVE_INFINITY,
  used: 0,
  minUnit: null,
  maxUnit: null,
  stepSize: null,
});

/**
 * Checks that parsed JSON is a cluster file.
 *
 * @throws ClusterFileError that names the field that does not fit.
 */
export function parseClusterFile(file: unknown): ClusterFile {
  const top = fields(file, '', ['policies', 'weights', 'hosts', 'vms'], ['thresholds', 'groups']);
  const policies = list(top.policies, 'policies').map((name, i) => text(name, `policies[${i}]`));
  unique(policies, (i) => `policies[${i}]`);
  if (policies.length === 0) throw new ClusterFileError('policies', 'must name at least one policy');
  const P = policies.length;
  const weights = numbers(top.weights, 'weights', P);
  const thresholds = top.thresholds === undefined ? undefined : numbers(top.thresholds, 'thresholds', P);
  const hosts = list(top.hosts, 'hosts').map((item, i): ClusterFile['hosts'][number] => {
    const at = `hosts[${i}]`;
    const host = fields(item, at, ['id'], ['score', 'memFreeMb', 'vcpusFree', 'status', 'state', 'az']);
    return {
      id: text(host.id, `${at}.id`),
      ...(host.score === undefined ? {} : { score: numbers(host.score, `${at}.score`, P) }),
      ...(host.memFreeMb === undefined ? {} : { memFreeMb: number(host.memFreeMb, `${at}.memFreeMb`) }),
      ...(host.vcpusFree === undefined ? {} : { vcpusFree: number(host.vcpusFree, `${at}.vcpusFree`) }),
      ...(host.status === undefined ? {} : { status: oneOf(host.status, `${at}.status`, ['enabled', 'disabled']) }),
      ...(host.state === undefined ? {} : { state: oneOf(host.state, `${at}.state`, ['up', 'down']) }),
      ...(host.az === undefined ? {} : { az: text(host.az, `${at}.az`) }),
    };
  });
  const hostIds = unique(
    hosts.map((host) => host.id),
    (i) => `hosts[${i}].id`,
  );
  const vms = list(top.vms, 'vms').map((item, i): ClusterFile['vms'][number] => {
    const at = `vms[${i}]`;
    const vm = fields(item, at, ['id', 'host', 'w'], ['vcpus', 'memMb']);
    const host = text(vm.host, `${at}.host`);
    if (!hostIds.has(host)) throw new ClusterFileError(`${at}.host`, `names ${JSON.stringify(host)}, which is no host`);
    return {
      id: text(vm.id, `${at}.id`),
      host,
      w: numbers(vm.w, `${at}.w`, P),
      ...(vm.vcpus === undefined ? {} : { vcpus: number(vm.vcpus, `${at}.vcpus`, 0) }),
      ...(vm.memMb === undefined ? {} : { memMb: number(vm.memMb, `${at}.memMb`, 0) }),
    };
  });
  const vmIds = unique(
    vms.map((vm) => vm.id),
    (i) => `vms[${i}].id`,
  );
  if (top.groups === undefined) return { policies, weights, ...(thresholds ? { thresholds } : {}), hosts, vms };
  const groups = list(top.groups, 'groups').map((item, i) => {
    const at = `groups[${i}]`;
    const group = fields(item, at, ['id', 'policy', 'vms'], []);
    const members = list(group.vms, `${at}.vms`).map((id, j) => text(id, `${at}.vms[${j}]`));
    for (const [j, id] of members.entries())
      if (!vmIds.has(id)) throw new ClusterFileError(`${at}.vms[${j}]`, `names ${JSON.stringify(id)}, which is no VM`);
    const policy = oneOf(group.policy, `${at}.policy`, groupPolicySchema.options);
    return { id: text(group.id, `${at}.id`), policy, vms: members };
  });
  unique(
    groups.map((group) => group.id),
    (i) => `groups[${i}].id`,
  );
  return { policies, weights, ...(thresholds ? { thresholds } : {}), hosts, vms, groups };
}

function fields(
  value: unknown,
  at: string,
  required: readonly string[],
  optional: readonly string[],
): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ClusterFileError(at === '' ? 'file' : at, 'must be an object');
  const dot = at === '' ? '' : `${at}.`;
  for (const key of Object.keys(value))
    if (!required.includes(key) && !optional.includes(key))
      throw new ClusterFileError(`${dot}${key}`, `is unknown; known are ${[...required, ...optional].join(', ')}`);
  for (const key of required) if (!Object.hasOwn(value, key)) throw new ClusterFileError(`${dot}${key}`, 'is missing');
  return { ...value };
}

function list(value: unknown, at: string): unknown[] {
  if (!Array.isArray(value)) throw new ClusterFileError(at, 'must be a list');
  return value;
}

function text(value: unknown, at: string): string {
  if (typeof value !== 'string' || value === '') throw new ClusterFileError(at, 'must be a text');
  return value;
}

function number(value: unknown, at: string, least = Number.NEGATIVE_INFINITY): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new ClusterFileError(at, 'must be a number');
  if (value < least) throw new ClusterFileError(at, `must be at least ${least}`);
  return value;
}

function numbers(value: unknown, at: string, length: number): number[] {
  const items = list(value, at);
  if (items.length !== length) throw new ClusterFileError(at, `must hold ${length} numbers, one per policy`);
  return items.map((item, i) => number(item, `${at}[${i}]`, 0));
}

function oneOf<T extends string>(value: unknown, at: string, known: readonly T[]): T {
  const found = known.find((item) => item === value);
  if (found === undefined) throw new ClusterFileError(at, `must be one of ${known.join(', ')}`);
  return found;
}

function unique(ids: readonly string[], at: (i: number) => string): Set<string> {
  const seen = new Set<string>();
  for (const [i, id] of ids.entries()) {
    if (seen.has(id)) throw new ClusterFileError(at(i), `repeats ${JSON.stringify(id)}`);
    seen.add(id);
  }
  return seen;
}
