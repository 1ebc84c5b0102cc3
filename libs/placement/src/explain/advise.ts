import {
  byText,
  clause,
  hostQueryOf,
  hostQueryUses,
  hostReadingOf,
  type Policy,
  type Snapshot,
  timeMs,
} from '@kronos/contracts';
import { remedyOfReason } from '@kronos/facts';
import { checkMove } from '../cluster/constraints.ts';
import type { DecideInput } from '../decide.ts';
import { meaningOf, type ReasonCode } from '../reasons.ts';
import { unreachableIn } from '../search/problem/unreachable.ts';
import { decisionMs, emptyMemory } from '../snapshot/memory.ts';
import { observe } from '../snapshot/observe.ts';

/** The history of one policy in a range of the log. */
type PolicyHistory = {
  readonly policy: string;
  readonly threshold: number;
  readonly highest: number | null;
  /** Time above the threshold, ms: as it was, and if each plan had been carried out in full. */
  readonly aboveMs: number;
  readonly aboveAfterPlansMs: number;
};

/** A completed move. */
export type PastMove = {
  readonly serverId: string;
  readonly serverName: string;
  readonly from: string;
  readonly to: string;
  /** ms since the epoch */
  readonly atMs: number;
};

/** The settings of Nova and Placement for one aggregate. */
export type NovaSettings = {
  /** Metadata of the aggregate; empty for the unassigned hosts. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Allocation ratio by host and resource class. */
  readonly ratios: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Claims of servers on hosts on which they are not, and from which nothing moves them. */
  readonly leaked: readonly LeakedAllocation[];
};

/** A claim in Placement that nothing frees: that of an evacuated server is freed when nova-compute starts on its former host. */
export type LeakedAllocation = {
  readonly serverId: string;
  readonly serverName: string;
  /** The host on which it is. */
  readonly host: string;
  /** The host of which it claims resources. */
  readonly of: string;
  /** Uuid of that host's resource provider. */
  readonly providerId: string;
  /** By resource class. */
  readonly resources: Readonly<Record<string, number>>;
};

export type AdviceInput = DecideInput & {
  readonly history: {
    /** Time that the decisions of the range cover. */
    readonly observedMs: number;
    readonly policies: readonly PolicyHistory[];
    readonly moves: readonly PastMove[];
  };
  /** Null: they could not be read, and there is no advice about them. */
  readonly settings: NovaSettings | null;
};

type AdviceCode =
  | 'host-without-metrics'
  | 'allocation-leaked'
  | 'nova-stacks'
  | 'nova-spreads'
  | 'ratios-differ'
  | 'ratio-too-high'
  | 'ratio-too-low'
  | 'threshold-never-reached'
  | 'threshold-always-exceeded'
  | 'moves-taken-back'
  | 'never-moves';

export type Advice = {
  readonly code: AdviceCode;
  /** The finding. */
  readonly text: string;
  /** The remedy. */
  readonly remedy: string;
  /** The policy, if it is about one. */
  readonly policy?: string;
  readonly hosts?: readonly string[];
  readonly servers?: readonly { readonly serverId: string; readonly serverName: string }[];
};

/** Changes that an operator could make, most pressing first. Pure. */
export const advise = (input: AdviceInput): Advice[] => [
  ...withoutMetrics(input.snapshot),
  ...(input.settings === null
    ? []
    : [...leaks(input.settings), ...weights(input, input.settings), ...ratios(input, input.settings)]),
  ...thresholds(input),
  ...takenBack(input),
  ...neverMoves(input),
];

const enabled = ({ policies }: Snapshot): Policy[] => policies.filter((policy) => policy.enabled);
const percent = (share: number): string => `${Math.round(share * 100)} %`;
const figure = (value: number): string => String(Number(value.toFixed(2)));

function withoutMetrics(snapshot: Snapshot): Advice[] {
  const missing = new Map<string, string[]>();
  for (const policy of enabled(snapshot)) {
    if (policy.allocation !== undefined) continue;
    const readings = hostQueryUses.map((use) => hostReadingOf(snapshot.hostReadings, hostQueryOf(policy, use)));
    const hosts = new Set(readings.flatMap((one) => one?.missing ?? []));
    for (const host of hosts) missing.set(host, [...(missing.get(host) ?? []), policy.name]);
  }
  const alike = Map.groupBy([...missing.keys()].sort(byText), (host) => (missing.get(host) ?? []).join(', '));
  return [...alike].map(([policies, hosts]) => ({
    code: 'host-without-metrics',
    text: `Prometheus has no value of ${policies} for ${hosts.length === 1 ? 'a host' : `${hosts.length} hosts`}`,
    remedy:
      'Run the exporter there and let Prometheus scrape it. While a value of a host is missing, its policy takes no part in the aggregate.',
    hosts,
  }));
}

const leaks = ({ leaked }: NovaSettings): Advice[] =>
  leaked.map(({ serverId, serverName, host, of, providerId, resources }) => {
    const amounts = Object.entries(resources)
      .sort(([a], [b]) => byText(a, b))
      .map(([name, amount]) => `${amount} ${name}`);
    return {
      code: 'allocation-leaked',
      text: `Placement has ${amounts.join(', ')} of ${serverName} (${serverId}) on ${of}, and the VM is on ${host}: ${of} takes less than it could`,
      remedy: `If the VM was evacuated, nova-compute on ${of} frees them when it starts. Else run: openstack resource provider allocation unset --provider ${providerId} ${serverId}`,
      hosts: [of],
      servers: [{ serverId, serverName }],
    };
  });

/** Weighers of Nova's scheduler that place new VMs by free resources, by their key in the metadata of an aggregate. */
const WEIGHTS = ['cpu_weight_multiplier', 'ram_weight_multiplier'] as const;
/** The defaults of nova.conf. */
const NOVA_DEFAULT = 1;

/** Nova's weighers against the mode: a VM that Nova places where Kronos takes VMs away is moved again. */
function weights({ snapshot }: AdviceInput, { metadata }: NovaSettings): Advice[] {
  const mode = enabled(snapshot)[0]?.mode;
  if (mode === undefined || !snapshot.hosts.some(({ service }) => service.status === 'enabled')) return [];
  const given = WEIGHTS.map((key) => ({
    key,
    set: Object.hasOwn(metadata, key),
    value: Number(metadata[key] ?? NOVA_DEFAULT),
  }));
  const wrong = given.filter(({ value }) => (mode === 'spread' ? !(value > 0) : !(value < 0)));
  if (wrong.length === 0) return [];
  const wanted = mode === 'spread' ? '1.0' : '-1.0';
  const as = wrong.map(({ key, set, value }) => (set ? `${key} is ${value}` : `${key} is not set (default 1.0)`));
  const properties = wrong.map(({ key }) => `--property ${key}=${wanted}`).join(' ');
  return [
    {
      code: mode === 'spread' ? 'nova-stacks' : 'nova-spreads',
      text:
        mode === 'spread'
          ? `Nova fills hosts with new VMs that Kronos spreads: ${as.join(', ')}`
          : `Nova spreads new VMs over hosts that Kronos empties: ${as.join(', ')}`,
      remedy: `openstack aggregate set ${properties} ${quoted(snapshot.aggregate)}. [filter_scheduler] of nova.conf has the defaults of all aggregates.`,
    },
  ];
}

const quoted = (name: string): string => (/^[\w.@-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`);

/** The resource class whose use a policy measures, as its query and name say; null where they do not. */
function classOf({ allocation, name, imbalanceQuery }: Policy): string | null {
  if (allocation !== undefined) return null;
  for (const text of [name, imbalanceQuery]) {
    const [cpu, memory] = [/cpu/i.test(text), /mem|ram/i.test(text)];
    if (cpu !== memory) return cpu ? 'VCPU' : 'MEMORY_MB';
  }
  return null;
}

/** Fewer allocations than this are too few for an estimate. */
const LEAST_ALLOCATED = 0.3;
/** From this share on, allocations fill a host. */
const FULL = 0.85;
/** Load that hosts which are full by their allocations should reach. */
const WANTED_LOAD = 0.8;

function ratios({ snapshot }: AdviceInput, { ratios: of }: NovaSettings): Advice[] {
  const found: Advice[] = [];
  const classes = [...new Set(Object.values(of).flatMap((one) => Object.keys(one)))].sort(byText);
  for (const name of classes.filter((one) => one === 'VCPU' || one === 'MEMORY_MB')) {
    const byRatio = Map.groupBy(
      snapshot.hosts.map((host) => host.name).filter((host) => of[host]?.[name] !== undefined),
      (host) => of[host]?.[name] ?? 0,
    );
    if (byRatio.size > 1) {
      const [most = [0, []], ...rest] = [...byRatio].sort(([, a], [, b]) => b.length - a.length);
      found.push({
        code: 'ratios-differ',
        text: `The allocation ratio of ${name} differs: ${[most, ...rest].map(([ratio, hosts]) => `${ratio} on ${hosts.length}`).join(', ')}`,
        remedy: `Give all hosts one ratio (${ratioSetting(name, most[0])}): with different ones, a VM that one host takes does not fit another that is as loaded.`,
        hosts: rest.flatMap(([, hosts]) => hosts),
      });
    }
  }
  for (const policy of enabled(snapshot)) {
    const name = classOf(policy);
    if (name !== null) found.push(...overcommit(snapshot, policy, name, of));
  }
  return found;
}

const ratioSetting = (name: string, ratio: number): string =>
  `${name === 'VCPU' ? 'cpu' : 'ram'}_allocation_ratio = ${figure(ratio)} in nova.conf of nova-compute`;

/** Sums over the hosts of which all is known. */
function sumsOf(
  snapshot: Snapshot,
  values: Readonly<Record<string, number>>,
  name: string,
  of: NovaSettings['ratios'],
) {
  const sums = { load: 0, allocated: 0, ratio: 0, hosts: 0 };
  for (const host of snapshot.hosts) {
    const value = values[host.name];
    const inventory = host.inventory?.[name];
    const own = of[host.name]?.[name];
    if (value === undefined || inventory === undefined || own === undefined || inventory.capacity <= 0) continue;
    sums.load += value;
    sums.allocated += inventory.used / inventory.capacity;
    sums.ratio += own;
    sums.hosts += 1;
  }
  return sums;
}

/** The load that hosts would have if everything that Placement offers were allocated, against the ratio. */
function overcommit(snapshot: Snapshot, policy: Policy, name: string, of: NovaSettings['ratios']): Advice[] {
  const reading = hostReadingOf(snapshot.hostReadings, hostQueryOf(policy, 'imbalance'));
  if (reading?.health !== 'HEALTHY') return [];
  const { load, allocated, ratio, hosts } = sumsOf(snapshot, reading.values, name, of);
  if (hosts === 0 || allocated / hosts < LEAST_ALLOCATED || load === 0) return [];
  const full = load / allocated;
  const mean = ratio / hosts;
  const better = (mean * WANTED_LOAD) / full;
  const now = `At ${percent(allocated / hosts)} of ${name} allocated the hosts are at ${percent(load / hosts)} (${policy.name})`;
  if (full > 1)
    return [
      {
        code: 'ratio-too-high',
        policy: policy.name,
        text: `${now}: all allocated, they would be overloaded (ratio ${figure(mean)})`,
        remedy: `Lower the ratio: ${ratioSetting(name, better)} leads to ${percent(WANTED_LOAD)}.`,
      },
    ];
  if (allocated / hosts >= FULL && full < WANTED_LOAD / 2)
    return [
      {
        code: 'ratio-too-low',
        policy: policy.name,
        text: `${now}: Nova refuses VMs and moves for which there is room (ratio ${figure(mean)})`,
        remedy: `Raise the ratio: ${ratioSetting(name, better)} leads to ${percent(WANTED_LOAD)}.`,
      },
    ];
  return [];
}

/** Advice on thresholds needs a history of this length. */
const LEAST_OBSERVED_MS = 24 * 3_600_000;
/** A policy that is above its threshold for this share of the time counts as always above it. */
const ALWAYS = 0.95;

function thresholds(input: AdviceInput): Advice[] {
  const { snapshot, history } = input;
  const { observedMs } = history;
  if (observedMs < LEAST_OBSERVED_MS) return [];
  const inForce = new Map(enabled(snapshot).map(({ name, threshold }) => [name, threshold]));
  return history.policies.flatMap((one): Advice[] => {
    const { policy, threshold, highest, aboveMs, aboveAfterPlansMs } = one;
    // A threshold that was changed since has no history yet.
    if (inForce.get(policy) !== threshold || highest === null) return [];
    if (aboveMs === 0 && highest <= threshold)
      return [
        {
          code: 'threshold-never-reached',
          policy,
          text: `The imbalance of ${policy} never reached its threshold ${figure(threshold)}: the highest was ${figure(highest)}`,
          remedy: `Lower the threshold below ${figure(highest)} if that is too much imbalance; else nothing is wrong.`,
        },
      ];
    if (aboveMs < ALWAYS * observedMs) return [];
    const inReach = aboveAfterPlansMs < (1 - ALWAYS) * observedMs;
    return [
      {
        code: 'threshold-always-exceeded',
        policy,
        text: `The imbalance of ${policy} was above its threshold ${figure(threshold)} for ${percent(aboveMs / observedMs)} of the time`,
        remedy: inReach
          ? 'The plans would hold it below: release them (dry_run, approval), or see kronos report for the moves that failed.'
          : (outOfReach(input, policy) ??
            'No plan reached it: raise the threshold, or see kronos explain cycle for what prevents moves.'),
      },
    ];
  });
}

/** The words of the bound when no moves reach the threshold; null when some may. */
function outOfReach({ snapshot, memory, options }: AdviceInput, policy: string): string | null {
  const now = decisionMs(snapshot, memory);
  const { cluster } = observe(snapshot, memory, options, now);
  const text = unreachableIn(cluster).find(({ detail }) => detail?.policy === policy)?.text;
  return text === undefined ? null : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function takenBack({ history, options }: AdviceInput): Advice[] {
  const servers = [...Map.groupBy(history.moves, ({ serverId }) => serverId)].flatMap(([serverId, all]) => {
    const moves = all.toSorted((a, b) => a.atMs - b.atMs);
    const backs = moves.filter((move, i) => moves[i - 1]?.from === move.to && moves[i - 1]?.to === move.from);
    return backs.length === 0
      ? []
      : [{ serverId, serverName: moves.at(-1)?.serverName ?? serverId, backs: backs.length }];
  });
  if (servers.length === 0) return [];
  const total = servers.reduce((sum, { backs }) => sum + backs, 0);
  return [
    {
      code: 'moves-taken-back',
      text: `${servers.length === 1 ? 'A VM' : `${servers.length} VMs`} moved back to the host that the move before had left (${total === 1 ? 'once' : `${total} times`})`,
      remedy: `Raise instance_cooldown (now ${options.instanceCooldownSeconds} s) or min_sustained_cycles: the load changes faster than Kronos can follow.`,
      servers: servers.sort((a, b) => b.backs - a.backs || byText(a.serverName, b.serverName)),
    },
  ];
}

/** Reasons that keep a VM from moving and do not end by themselves. */
const lasting: readonly ReasonCode[] = [
  'vm-locked',
  'vm-opted-out',
  'vm-vtpm',
  'vm-encrypted-memory',
  'vm-accelerator',
  'vm-pci-device',
  'vm-vgpu',
  'vm-sriov-port',
  'vm-window-unreadable',
  'vm-no-profile',
];

/** VMs that no host would take even if all were up, enabled and empty, by the reason. */
function neverMoves({ snapshot, options }: AdviceInput): Advice[] {
  if (snapshot.hosts.length < 2) return [];
  const now = timeMs(snapshot.time);
  const best: Snapshot = {
    ...snapshot,
    hosts: snapshot.hosts.map((host) => ({
      ...host,
      service: { status: 'enabled', state: 'up', forcedDown: false, disabledReason: null },
      inventory:
        host.inventory === null
          ? null
          : Object.fromEntries(Object.entries(host.inventory).map(([name, one]) => [name, { ...one, used: 0 }])),
    })),
    servers: snapshot.servers.map((server) => ({ ...server, taskState: null, alsoOn: [] })),
    migrations: [],
  };
  const { cluster, vmGrounds } = observe(best, emptyMemory, options, now);
  const reasons = new Map<string, { serverId: string; serverName: string }[]>();
  for (const { id, name, host: source } of snapshot.servers) {
    const ground = vmGrounds.get(id)?.code;
    let why: string | null = null;
    if (ground !== undefined) why = lasting.includes(ground) ? ground : null;
    else if (cluster.vmIndex.has(id)) {
      const codes = new Set<string>();
      const taken = snapshot.hosts.some((host) => {
        if (host.name === source) return false;
        const verdict = checkMove(cluster, id, host.name);
        if (!('ok' in verdict)) codes.add(verdict.code);
        return 'ok' in verdict;
      });
      // An unknown value is no reason for advice.
      if (!taken && !codes.has('host-capacity-unknown')) why = [...codes].sort(byText).join(', ');
    }
    if (why === null || why === '') continue;
    reasons.set(why, [...(reasons.get(why) ?? []), { serverId: id, serverName: name }]);
  }
  return [...reasons]
    .sort(([a, x], [b, y]) => y.length - x.length || byText(a, b))
    .map(([codes, servers]) => ({
      code: 'never-moves',
      text: `${servers.length === 1 ? '1 VM never moves' : `${servers.length} VMs never move`}: ${codes
        .split(', ')
        .map((code) => clause(meaningOf(code)))
        .join('; ')} (${codes})`,
      remedy: remedyOf(codes),
      servers,
    }));
}

/** A VM that itself forbids its move has one code. Hosts may refuse it for several, and no one act ends them all. */
const remedyOf = (codes: string): string =>
  codes.startsWith('vm-')
    ? remedyOfReason(codes)
    : 'Before maintenance of its host, stop such a VM or move it by hand. `kronos explain vm VM` shows the refusal of each host.';
