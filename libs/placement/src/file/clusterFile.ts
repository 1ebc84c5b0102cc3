import {
  byText,
  type CompleteEngineOptions,
  type Decision,
  defaultEngineOptions,
  type GroupPolicy,
  type Policy,
  type Reason,
  type Step,
  type Stuck,
} from '@kronos/contracts';
import { entry, float, item } from '../base/array.ts';
import { buildCluster, type GroupPart, type HostPart, type VmPart } from '../cluster/build.ts';
import { type Cluster, idleAims, type PolicyModel } from '../cluster/cluster.ts';
import { LARGEST } from '../cluster/grid.ts';
import { combinedOf, imbalances } from '../cluster/measure.ts';
import { Draft } from '../draft/draft.ts';
import { enforceAffinity } from '../passes/affinity.ts';
import { evacuate, evacuationEnds } from '../passes/evacuate.ts';
import { type Drain, pack } from '../passes/pack.ts';
import { restore } from '../passes/restore.ts';
import { type FoundCourse, nothingSaid, type Spread, spread } from '../passes/spread.ts';
import { completePlan, quality } from '../plan/plan.ts';
import type { ReasonCode } from '../reasons.ts';
import { type CarryOut, inTurn } from '../search/anneal/runs.ts';
import type { SearchEnd } from '../search/search.ts';
import { checkForm, checkUnique, clusterFileSchema } from './clusterSchema.ts';
import { ClusterFileError } from './errors.ts';

/** A cluster as `kronos plan --cluster` reads it; {@link clusterFileSchema} describes the fields. */
export type ClusterFile = {
  readonly policies: readonly string[];
  readonly weights: readonly number[];
  readonly thresholds?: readonly number[];
  readonly targets?: readonly number[];
  readonly capacityThresholds?: readonly number[];
  readonly actAbove?: readonly number[];
  readonly hosts: readonly {
    readonly id: string;
    readonly score?: readonly number[];
    readonly size?: readonly number[];
    readonly memFreeMb?: number;
    readonly vcpusFree?: number;
    readonly free?: Readonly<Record<string, number>>;
    readonly costGib?: number;
    readonly status?: 'enabled' | 'disabled';
    readonly state?: 'up' | 'down';
    readonly az?: string;
    readonly traits?: readonly string[];
    readonly cells?: readonly {
      readonly dedicatedCpus?: number;
      readonly sharedCpus?: number;
      readonly memMb: number;
      readonly pages?: Readonly<Record<string, number>>;
    }[];
  }[];
  readonly vms: readonly {
    readonly id: string;
    readonly host: string;
    readonly w: readonly number[];
    readonly vcpus?: number;
    readonly memMb?: number;
    readonly resources?: Readonly<Record<string, number>>;
    readonly pin?: string;
    readonly immovable?: boolean;
    readonly hosts?: readonly string[];
    readonly cells?: readonly {
      readonly hostCell?: number;
      readonly dedicatedCpus?: number;
      readonly sharedCpus?: number;
      readonly memMb: number;
      readonly pageKb?: number;
    }[];
    readonly costGib?: number;
    readonly costGibTo?: Readonly<Record<string, number>>;
    readonly recentMoves?: number;
  }[];
  readonly groups?: readonly {
    readonly id: string;
    readonly policy: GroupPolicy;
    readonly vms: readonly string[];
    readonly maxServerPerHost?: number;
  }[];
};

export type PlanClusterOptions = {
  readonly maxMigrations: number;
  readonly mode?: Policy['mode'];
  /** Pack mode: hosts are filled below this value of each policy; 1 where not given. */
  readonly capacityThreshold?: number;
  /** Moves that are left of a course that earlier plans began: it goes on below the thresholds. Absent: none. */
  readonly courseMoves?: number;
} & Partial<
  Pick<
    CompleteEngineOptions,
    | 'planner'
    | 'minGain'
    | 'searchWorkLimit'
    | 'alternates'
    | 'allowParking'
    | 'packHeadroomHosts'
    | 'packReachCycles'
    | 'evacuateDisabledHosts'
    | 'evacuationThresholds'
    | 'enforceHardAffinity'
    | 'enforceSoftAffinity'
    | 'restrictToAz'
    | 'targetRatio'
    | 'moveOverheadGib'
    | 'softRules'
    | 'softPenalty'
    | 'moveUnknownTopology'
    | 'cpuCompatibility'
  >
>;

type PlannedMove = Pick<Step, 'step' | 'phase' | 'parking' | 'from' | 'to' | 'alternates'> & {
  readonly vm: string;
  /** Steps that must have completed before this one starts. */
  readonly dependsOn: readonly number[];
};

type ClusterScores = { readonly combined: number; readonly perPolicy: Readonly<Record<string, number>> };

export type PlannedCluster = {
  readonly moves: readonly PlannedMove[];
  readonly before: ClusterScores;
  readonly after: ClusterScores;
  /** No plan with this budget can bring the combined imbalance below this; null when no bound is known. */
  readonly lowerBound: number | null;
  readonly shareOfPossible: number | null;
  readonly stats: {
    readonly candidatesEvaluated: number;
    readonly refusals: Readonly<Record<string, number>>;
    /** `done`: the search found nothing more. `budget`, `work`: a larger number of moves, or more work, may find a better plan. */
    readonly endedBy: SearchEnd;
  };
  /** The plan is its first part. Null: the plan reaches every target, or no course was found. */
  readonly course: FoundCourse | null;
  /** VMs that had to leave their hosts, or their groups' state, and could not. */
  readonly stuck: readonly Stuck[];
  readonly warnings: readonly Reason[];
  /** Of each disabled host that is up, with `engine.evacuate_disabled_hosts`. */
  readonly evacuations: Decision['evacuations'];
};

/**
 * Plans on a cluster file, with the passes that decisions use.
 *
 * @param file parsed JSON.
 * @param carryOut how runs of the search are carried out; it changes no plan.
 * @throws ClusterFileError that names the field that does not fit.
 */
export function planCluster(file: unknown, options: PlanClusterOptions, carryOut?: CarryOut): PlannedCluster {
  return planParsed(clusterOf(parseClusterFile(file), options), options, carryOut);
}

/** {@link planCluster} on a cluster that is built already. */
export function planParsed(cluster: Cluster, options: PlanClusterOptions, carryOut: CarryOut = inTurn): PlannedCluster {
  const settings: CompleteEngineOptions = { ...defaultEngineOptions, minGain: 0, ...options };
  const draft = new Draft(cluster, options.maxMigrations);
  let drains: readonly Drain[] = [];
  let found: Spread = nothingSaid;
  if (settings.evacuateDisabledHosts) evacuate(draft, settings);
  restore(draft, settings);
  enforceAffinity(draft, settings);
  if (draft.budget > 0)
    if (options.mode === 'pack') drains = pack(draft, options.maxMigrations, settings);
    else found = spread(draft, options.maxMigrations, settings, carryOut);
  const evacuations = settings.evacuateDisabledHosts ? evacuationEnds(draft) : [];
  const { steps, after } = completePlan('plan', draft, drains, settings);
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
      dependsOn: step.dependsOn.map((task) => entry(number, task)),
    })),
    before,
    after: reached,
    lowerBound,
    shareOfPossible,
    stats: { candidatesEvaluated: draft.evaluated, refusals: draft.refusals.toRecord(), endedBy: found.end },
    course: found.course,
    stuck: draft.stuck,
    warnings: draft.warnings,
    evacuations,
  };
}

function scoresOf(cluster: Cluster, imbalance: Float64Array): ClusterScores {
  return {
    combined: combinedOf(cluster, imbalance),
    perPolicy: Object.fromEntries(cluster.policies.map((policy, p) => [policy.name, float(imbalance, p)])),
  };
}

/** The planner's arrays for a cluster file. */
export function clusterOf(file: ClusterFile, options: PlanClusterOptions): Cluster {
  const { targetRatio, softRules, softPenalty } = { ...defaultEngineOptions, ...options };
  let total = 0;
  for (const weight of file.weights) total += weight;
  const P = file.policies.length;
  const sums = sumsOf(file);
  const ofHosts = new Map(file.hosts.flatMap(({ id, costGib = 0 }) => (costGib === 0 ? [] : [[id, costGib]])));
  const down = new Set(file.hosts.flatMap((host) => (host.state === 'down' ? [host.id] : [])));
  const scoreOf = (host: ClusterFile['hosts'][number]) => host.score ?? [...(sums.get(host.id) ?? [])];
  const serving = file.hosts.filter(({ state, status }) => state !== 'down' && status !== 'disabled').map(scoreOf);
  // Only the ratios of sizes count.
  const largest = file.policies.map((_, p) => Math.max(...file.hosts.map((host) => host.size?.[p] ?? 1)));
  return buildCluster({
    policies: file.policies.map((name, p) => ({
      name,
      weight: total > 0 ? item(file.weights, p) / total : 1 / P,
      ...aimsOf(file, targetRatio, serving, p),
      capacityThreshold: capacityThreshold(file, options, p),
    })),
    hosts: file.hosts.map((host): HostPart => {
      const up = host.state !== 'down';
      const enabled = host.status !== 'disabled';
      const refusal: ReasonCode | null = up ? (enabled ? null : 'host-disabled') : 'host-down';
      const score = scoreOf(host);
      return {
        name: host.id,
        zone: host.az ?? null,
        cell: null,
        hypervisorType: '',
        hypervisorVersion: 0,
        ...hardwareOf(host),
        score,
        size: file.policies.map((_, p) => (host.size?.[p] ?? 1) / item(largest, p)),
        fullness: score,
        counted: up && enabled,
        refusal,
        leaving: up && !enabled,
        inventory: {
          ...Object.fromEntries(Object.entries(host.free ?? {}).map(([name, amount]) => [name, free(amount)])),
          MEMORY_MB: free(host.memFreeMb),
          VCPU: free(host.vcpusFree),
        },
      };
    }),
    vms: file.vms.map(
      (vm): VmPart => ({
        id: vm.id,
        name: vm.id,
        host: vm.host,
        alsoOn: [],
        weight: vm.w,
        resources: { ...vm.resources, VCPU: vm.vcpus ?? 0, MEMORY_MB: vm.memMb ?? 0 },
        refusal: down.has(vm.host) ? 'vm-source-down' : vm.immovable === true ? 'vm-immovable' : null,
        ...limitsOf(file, vm),
        pin: vm.pin ?? null,
        requiredTraits: [],
        forbiddenTraits: [],
        ramMb: vm.memMb ?? 0,
        diskGb: 0,
        vcpus: vm.vcpus ?? 0,
        ...costsOf(file, vm, ofHosts),
        recentMoves: vm.recentMoves ?? 0,
        evacuationOnly: null,
      }),
    ),
    groups: (file.groups ?? []).map(groupPart),
    ...rulesOf(options),
    softPenalty: softRules === 'penalty' ? softPenalty : null,
  });
}

/** By host: the values of its VMs, added up by policy. */
function sumsOf({ policies: { length: P }, hosts, vms }: ClusterFile): ReadonlyMap<string, Float64Array> {
  const sums = new Map(hosts.map((host) => [host.id, new Float64Array(P)]));
  for (const vm of vms) {
    const sum = sums.get(vm.host);
    if (sum !== undefined) for (let p = 0; p < P; p++) sum[p] = float(sum, p) + item(vm.w, p);
  }
  return sums;
}

/** @param serving values of the hosts that are up and enabled */
function aimsOf(
  { thresholds, targets, actAbove }: ClusterFile,
  targetRatio: number,
  serving: readonly (readonly number[])[],
  p: number,
): Pick<PolicyModel, 'threshold' | 'target'> {
  const threshold = thresholds?.[p] ?? 0;
  const level = actAbove?.[p] ?? Number.NEGATIVE_INFINITY;
  if (!serving.some((values) => item(values, p) > level)) return idleAims(threshold);
  return { threshold, target: targets?.[p] ?? targetRatio * threshold };
}

const capacityThreshold = (file: ClusterFile, options: PlanClusterOptions, p: number): number =>
  options.mode === 'pack' ? (file.capacityThresholds?.[p] ?? options.capacityThreshold ?? 1) : Number.POSITIVE_INFINITY;

/** The hosts that the file does not allow a VM on. */
function closedTo({ hosts }: ClusterFile, vm: ClusterFile['vms'][number]): Pick<VmPart, 'refusedBy' | 'refusedFor'> {
  const { hosts: allowed } = vm;
  if (allowed === undefined) return {};
  const closed = hosts.flatMap(({ id }) => (allowed.includes(id) ? [] : [id]));
  return { refusedBy: closed.sort(byText), refusedFor: 'host-not-allowed' };
}

/** The cost of a move of a VM. @param ofHosts added cost of each move to or from a host, in GiB */
function costsOf(
  { hosts }: ClusterFile,
  { host, memMb = 0, costGib = memMb / 1024, costGibTo }: ClusterFile['vms'][number],
  ofHosts: ReadonlyMap<string, number>,
): Pick<VmPart, 'copyGib' | 'copyGibTo'> {
  if (ofHosts.size === 0 && costGibTo === undefined) return { copyGib: costGib };
  const ofMove = new Map(Object.entries(costGibTo ?? {}));
  const more = ofHosts.get(host) ?? 0;
  const costTo = (id: string): number => (ofMove.get(id) ?? costGib) + more + (ofHosts.get(id) ?? 0);
  return { copyGib: costGib + more, copyGibTo: Object.fromEntries(hosts.map(({ id }) => [id, costTo(id)])) };
}

/** Hosts and NUMA cells that a VM may go to. */
const limitsOf = (file: ClusterFile, vm: ClusterFile['vms'][number]) => ({ ...closedTo(file, vm), ...vmCells(vm) });

const rulesOf = ({ restrictToAz = false, moveUnknownTopology = false, cpuCompatibility }: PlanClusterOptions) => ({
  restrictToAz,
  allowUnknownCells: moveUnknownTopology,
  anyCpu: cpuCompatibility === 'ignore',
});

const hardwareOf = ({ traits: known, cells }: ClusterFile['hosts'][number]): Pick<HostPart, 'traits' | 'cells'> => {
  const traits = known ?? null;
  if (cells === undefined) return { traits };
  return {
    traits,
    cells: cells.map(({ dedicatedCpus = 0, sharedCpus = 0, memMb, pages = {} }, id) => ({
      id,
      dedicatedCpus,
      sharedCpus,
      memoryMb: memMb,
      pages: Object.entries(pages).map(([sizeKb, total]) => ({ sizeKb: Number(sizeKb), total })),
    })),
  };
};

const vmCells = ({ cells }: ClusterFile['vms'][number]): Pick<VmPart, 'cells'> => {
  if (cells === undefined) return {};
  return {
    cells: cells.map(({ hostCell = null, dedicatedCpus = 0, sharedCpus = 0, memMb, pageKb = null }) => ({
      hostCell,
      dedicatedCpus,
      sharedCpus,
      memoryMb: memMb,
      pageSizeKb: pageKb,
      smallPages: false,
    })),
  };
};

const groupPart = ({
  id,
  policy,
  maxServerPerHost = 1,
  vms: members,
}: NonNullable<ClusterFile['groups']>[number]): GroupPart => ({ id, name: id, policy, maxServerPerHost, members });

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
  checkForm(file, clusterFileSchema);
  const cluster = file as ClusterFile;
  const { policies, hosts, vms, groups = [], thresholds } = cluster;
  const perPolicy = (at: string, items: readonly number[] | undefined): void => {
    if (items !== undefined && items.length !== policies.length)
      throw new ClusterFileError(at, `must hold ${policies.length} numbers, one per policy`);
  };
  perPolicy('weights', cluster.weights);
  perPolicy('thresholds', thresholds);
  perPolicy('targets', cluster.targets);
  perPolicy('capacityThresholds', cluster.capacityThresholds);
  perPolicy('actAbove', cluster.actAbove);
  cluster.targets?.forEach((target, p) => {
    const most = thresholds?.[p] ?? 0;
    if (target > most) throw new ClusterFileError(`targets[${p}]`, `must be at most the threshold, ${most}`);
  });
  hosts.forEach((host, i) => {
    perPolicy(`hosts[${i}].score`, host.score);
    perPolicy(`hosts[${i}].size`, host.size);
    for (const [name, field] of Object.entries(OWN_FIELDS))
      if (Object.hasOwn(host.free ?? {}, name))
        throw new ClusterFileError(`hosts[${i}].free.${name}`, `is given by ${field.free}`);
    for (const [c, { pages = {} }] of (host.cells ?? []).entries())
      for (const sizeKb of Object.keys(pages))
        if (!/^[1-9]\d*$/.test(sizeKb))
          throw new ClusterFileError(`hosts[${i}].cells[${c}].pages.${sizeKb}`, 'is no size in KiB');
  });
  checkUnique(
    hosts.map((host) => host.id),
    (i) => `hosts[${i}].id`,
  );
  const hostIds = new Set(hosts.map((host) => host.id));
  vms.forEach((vm, i) => {
    perPolicy(`vms[${i}].w`, vm.w);
    if (!hostIds.has(vm.host))
      throw new ClusterFileError(`vms[${i}].host`, `names ${JSON.stringify(vm.host)}, which is no host`);
    for (const [j, id] of (vm.hosts ?? []).entries())
      if (!hostIds.has(id))
        throw new ClusterFileError(`vms[${i}].hosts[${j}]`, `names ${JSON.stringify(id)}, which is no host`);
    for (const id of Object.keys(vm.costGibTo ?? {}))
      if (!hostIds.has(id))
        throw new ClusterFileError(`vms[${i}].costGibTo`, `names ${JSON.stringify(id)}, which is no host`);
    for (const [name, field] of Object.entries(OWN_FIELDS))
      if (Object.hasOwn(vm.resources ?? {}, name))
        throw new ClusterFileError(`vms[${i}].resources.${name}`, `is given by ${field.claim}`);
  });
  checkUnique(
    vms.map((vm) => vm.id),
    (i) => `vms[${i}].id`,
  );
  const vmIds = new Set(vms.map((vm) => vm.id));
  groups.forEach((group, i) => {
    for (const [j, id] of group.vms.entries())
      if (!vmIds.has(id))
        throw new ClusterFileError(`groups[${i}].vms[${j}]`, `names ${JSON.stringify(id)}, which is no VM`);
  });
  checkUnique(
    groups.map((group) => group.id),
    (i) => `groups[${i}].id`,
  );
  checkLoads(cluster);
  return cluster;
}

/** Resource classes that have fields of their own. */
const OWN_FIELDS: Readonly<Record<string, { readonly free: string; readonly claim: string }>> = {
  MEMORY_MB: { free: 'memFreeMb', claim: 'memMb' },
  VCPU: { free: 'vcpusFree', claim: 'vcpus' },
};

/** Sums that are too large for exact arithmetic would give wrong plans. */
function checkLoads({ policies, hosts, vms }: ClusterFile): void {
  const sizes = new Map(hosts.map((host) => [host.id, host.size]));
  policies.forEach((name, p) => {
    const all = hosts.map((host) => host.size?.[p] ?? 1);
    const [least, most] = [Math.min(...all), Math.max(...all)];
    if (most > least * LARGEST)
      throw new ClusterFileError(
        `hosts[${all.indexOf(least)}].size[${p}]`,
        `is ${least}: more than ${LARGEST} times smaller than the largest, ${most}`,
      );
    const sums = new Map<string, number>();
    vms.forEach((vm, i) => {
      const sum = (sums.get(vm.host) ?? 0) + (vm.w[p] ?? 0);
      sums.set(vm.host, sum);
      if (sum > LARGEST)
        throw new ClusterFileError(
          `vms[${i}].w[${p}]`,
          `brings the sum of ${name} on ${vm.host} to ${sum}; it must be at most ${LARGEST}`,
        );
      const shareOfSmallest = ((vm.w[p] ?? 0) * (sizes.get(vm.host)?.[p] ?? 1)) / least;
      if (shareOfSmallest > LARGEST)
        throw new ClusterFileError(
          `vms[${i}].w[${p}]`,
          `would be ${shareOfSmallest} on the smallest host; it must be at most ${LARGEST}`,
        );
    });
  });
}
