import { type Config, defaultConfig, parsePolicies, Secret } from '@kronos/config';
import { DAY_MS, type Policy } from '@kronos/contracts';
import { type GenerateOptions, generate, type Scenario } from '@kronos/simcloud';
import { type Asked, type InventoryMode, inventoryModes, type NumaMode, numaModes } from './asked.ts';
import { Chance } from './chance.ts';
import { type KnownCells, withNuma } from './numa.ts';
import { TRANSPORT_URL } from './rabbit.ts';
import { type DrawnWindows, drawWindows, serverSettings, windowOptions } from './windows.ts';
import { EPOCH_MS } from './world.ts';

export interface Drawn {
  readonly intervalSeconds: number;
  readonly cooldownSeconds: number;
  readonly instanceCooldownSeconds: number;
  readonly quarantineSeconds: number;
  readonly planTtlSeconds: number;
  readonly settleSeconds: number;
  readonly approval: 'auto' | 'manual';
  readonly planner: 'search' | 'greedy';
  readonly alternates: number;
  readonly evacuate: boolean;
  readonly ackWaitSeconds: number;
  /** How long the server holds an executor's request for a task. */
  readonly taskPollMs: number;
  readonly pollSeconds: number;
  readonly maxConcurrent: number;
  readonly maxOutbound: number;
  readonly maxInbound: number;
  readonly maxPerGroup: number;
  readonly maxRetries: number;
  readonly retryBackoffSeconds: number;
  readonly checkpointSeconds: number;
  /** Message ids before expectations, as in nats-server 2.9, or after them, as in 2.15. */
  readonly idsFirst: boolean;
  /** How often faults come, relative to their usual rates. */
  readonly trouble: number;
  readonly grouped: number;
  readonly varying: number;
  /** Most hosts are nearly full. */
  readonly tight: boolean;
  readonly approvalTtlSeconds: number;
  readonly inventory: InventoryMode;
  /** `[inventory] sync_interval`. */
  readonly syncSeconds: number;
  /** Share of the hosts whose nova-compute sends only unversioned notifications at first. */
  readonly unversioned: number;
  readonly numa: NumaMode;
  /** How many intervals a planner works on a decision with the whole `search_work_limit`. */
  readonly decideIntervals: number;
  /** Commit of the other release; null: there is none. */
  readonly beside: string | null;
}

export function draw(asked: Asked): Drawn {
  const chance = new Chance(`options/${asked.seed}`);
  // A large cloud is looked at less often: most of what a run costs is looking.
  const interval = chance.pick(asked.vms > 200 ? [600, 900] : [60, 120, 180, 300]);
  const planTtlSeconds = chance.pick([900, 1800, 3600]);
  const trouble = chance.pick([0.3, 1, 1, 2, 3]);
  const lists = chance.fork('inventory');
  const inventory = asked.inventory ?? lists.pick(inventoryModes);
  return {
    intervalSeconds: asked.interval ?? interval,
    cooldownSeconds: chance.pick([120, 300, 600]),
    // Shorter than some moves take.
    instanceCooldownSeconds: chance.pick([120, 600, 1200, 1800]),
    quarantineSeconds: chance.pick([1200, 3600]),
    planTtlSeconds,
    settleSeconds: chance.pick([0, 60, 120]),
    approval: chance.flip(0.3) ? 'manual' : 'auto',
    planner: chance.pick(['search', 'greedy']),
    alternates: chance.int(0, 2),
    evacuate: chance.flip(0.5),
    ackWaitSeconds: chance.pick([10, 20, 30]),
    // 1 s in production; an idle request each second is most of what an idle cloud costs.
    taskPollMs: chance.pick(asked.vms > 200 ? [10_000, 20_000] : [5_000, 10_000]),
    pollSeconds: chance.pick([2, 5, 10]),
    maxConcurrent: chance.int(1, 4),
    maxOutbound: chance.int(1, 2),
    maxInbound: chance.int(1, 2),
    maxPerGroup: 1,
    maxRetries: chance.int(0, 3),
    retryBackoffSeconds: chance.pick([5, 30]),
    checkpointSeconds: chance.pick([120, 600, 3600]),
    idsFirst: chance.flip(0.7),
    trouble: asked.trouble ?? trouble,
    grouped: chance.between(0.1, 0.5),
    varying: chance.between(0.2, 0.8),
    // Then moves wait for one another.
    tight: chance.flip(0.4),
    approvalTtlSeconds: chance.pick([300, 900, 3600]),
    inventory,
    syncSeconds: lists.pick([120, 300, 900]),
    unversioned: lists.pick([0, 0.2, 0.5]),
    numa: asked.numa ?? chance.fork('numa').pick(numaModes),
    // With a longer interval, the phase without faults could end before a planner that has just started has lowered its work.
    decideIntervals: chance.fork('decide').pick((asked.interval ?? interval) > 120 ? [0] : [0, 0, 0, 3, 6]),
    beside: asked.beside,
  };
}

const AGGREGATE = (index: number): string => `aggregate-${index + 1}`;

export interface Setting {
  readonly aggregates: readonly string[];
  readonly config: Config;
  readonly policies: readonly Policy[];
  readonly scenario: Scenario;
  /** Null: moves may start at any time. */
  readonly windows: DrawnWindows | null;
  /** NUMA cells of the hosts, as from the file of `[nova] host_topology`; null: from the exporter. */
  readonly hostCells: KnownCells | null;
}

/** The cloud of a run before its windows and Nova's settings. */
function cloudOf(asked: Asked, drawn: Drawn): Pick<Setting, 'scenario' | 'hostCells'> {
  const generated: GenerateOptions = {
    hosts: asked.hosts,
    vms: asked.vms,
    seed: asked.seed,
    aggregates: asked.aggregates,
    grouped: drawn.grouped,
    skew: 0.6,
    varying: drawn.varying,
    ...(drawn.tight ? { room: 1, memoryRatio: 1.05 } : {}),
  };
  const plain = generate(generated);
  return drawn.numa === 'none' ? { scenario: plain, hostCells: null } : withNuma(plain, drawn.numa, asked.seed);
}

/** The options of all services. */
function configOf(drawn: Drawn, aggregates: readonly string[], windows: DrawnWindows | null): Config {
  return {
    ...defaultConfig,
    overrides: new Map([...(windows?.own ?? [])].map(([name, hours]) => [name, windowOptions(hours)])),
    engine: engineOf(drawn, aggregates, windows),
    executor: {
      ...defaultConfig.executor,
      maxConcurrentMigrations: drawn.maxConcurrent,
      maxOutboundPerHost: drawn.maxOutbound,
      maxInboundPerHost: drawn.maxInbound,
      maxConcurrentPerGroup: drawn.maxPerGroup,
      maxRetries: drawn.maxRetries,
      retryBackoff: drawn.retryBackoffSeconds,
      pollInterval: drawn.pollSeconds,
      deadlineMin: 600,
    },
    nats: { ...defaultConfig.nats, ackWait: drawn.ackWaitSeconds },
    inventory: {
      ...defaultConfig.inventory,
      mode: drawn.inventory,
      ...(drawn.inventory === 'api' ? {} : { syncInterval: drawn.syncSeconds }),
      ...(drawn.inventory === 'notifications' ? { transportUrl: new Secret(TRANSPORT_URL) } : {}),
    },
    // No files: what the machine reads and when is not of the seed.
    ledger: {
      ...defaultConfig.ledger,
      checkpointInterval: drawn.checkpointSeconds,
      checkpointEvents: 500,
      console: false,
      archiveDir: null,
    },
  };
}

/** `[engine]`. */
function engineOf(drawn: Drawn, aggregates: readonly string[], windows: DrawnWindows | null): Config['engine'] {
  return {
    ...defaultConfig.engine,
    aggregates,
    dryRun: false,
    evaluationInterval: drawn.intervalSeconds,
    cooldown: drawn.cooldownSeconds,
    instanceCooldown: drawn.instanceCooldownSeconds,
    instanceQuarantineSeconds: drawn.quarantineSeconds,
    planTtl: drawn.planTtlSeconds,
    settleSeconds: drawn.settleSeconds,
    approval: drawn.approval,
    approvalTtl: drawn.approvalTtlSeconds,
    planner: drawn.planner,
    alternates: drawn.alternates,
    evacuateDisabledHosts: drawn.evacuate,
    enforceHardAffinity: true,
    searchWorkLimit: 200_000,
    // Then Nova refuses what does not fit.
    moveUnknownTopology: drawn.numa === 'unknown',
    ...(windows === null
      ? {}
      : { ...windowOptions(windows.usual), evacuationIgnoresWindows: windows.evacuationIgnoresWindows }),
  };
}

export function settingOf(asked: Asked, drawn: Drawn): Setting {
  const aggregates = Array.from({ length: asked.aggregates }, (_, index) => AGGREGATE(index));
  const { scenario, hostCells } = cloudOf(asked, drawn);
  const servers = scenario.servers.map(({ name }) => name);
  const windows = drawWindows(asked.seed, { aggregates, servers }, EPOCH_MS, asked.days * DAY_MS);
  return {
    aggregates,
    config: configOf(drawn, aggregates, windows),
    policies: policiesOf(scenario),
    windows,
    hostCells,
    scenario: {
      ...scenario,
      servers: scenario.servers.map((server) => {
        const own = windows?.servers.get(server.name);
        return own === undefined ? server : { ...server, ...serverSettings(own.spans, own.how) };
      }),
      scrapeSeconds: 15,
      maxConcurrentLiveMigrations: drawn.maxOutbound,
      schedulers: 2,
    },
  };
}

/** The options of a planner that was configured otherwise: only such as no rule of the checker depends on. */
export const otherwise = (config: Config): Config => ({
  ...config,
  engine: {
    ...config.engine,
    planner: config.engine.planner === 'search' ? 'greedy' : 'search',
    alternates: config.engine.alternates === 0 ? 2 : config.engine.alternates - 1,
  },
});

function policiesOf(scenario: Scenario): readonly Policy[] {
  const { vcpus, memoryMb } = scenario.hosts[0] ?? { vcpus: 1, memoryMb: 1 };
  const text = `policies:
  - name: cpu
    mode: spread
    weight: 0.6
    imbalance_query: host_cpu_utilisation
    host_label: host
    vm_profile_query: vm_cpu_cores / ${vcpus}
    vm_profile_label: instance_uuid
    vm_profile_label_type: nova_instance_uuid
    threshold: 0.12
    max_migrations_per_cycle: 5
  - name: memory
    mode: spread
    weight: 0.4
    imbalance_query: host_mem_utilisation
    host_label: host
    vm_profile_query: vm_mem_mb / ${memoryMb}
    vm_profile_label: instance_uuid
    vm_profile_label_type: nova_instance_uuid
    threshold: 0.15
    max_migrations_per_cycle: 5
`;
  const { policies, problems } = parsePolicies({ file: 'policies.yaml', text });
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  return policies;
}
