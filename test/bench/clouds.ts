import { parseArgs } from 'node:util';
import { defaultEngineOptions, type Snapshot, type Step } from '@kronos/contracts';
import { markOf, refusalHolds, shapeOf } from '@kronos/facts';
import { decide, emptyMemory, type Memory } from '@kronos/placement';
import { random as seeded } from '@kronos/projections/testing';
import { Cloud, NovaRefusal, parseScenario } from '@kronos/simcloud';
import { createVm, observeCloud, placeAll, scenarioOf } from './clouds/estate.ts';
import { withoutRefuge } from './clouds/refuge.ts';
import { cpuMs } from './cpuTime.ts';

/**
 * A simulated cloud of two CPU generations with NUMA cells, a fifth of whose VMs need cells: a cycle an hour, moves one after the other, VMs
 * that come and go. Prints, as JSON, the POSTs, those that Nova refused, POSTs that repeat a refusal while it counts, the VMs that run on newer hosts
 * than some others, and the states between moves in which the VMs of one failed host would find no room. A destination that Nova refused since the
 * plan was made is not asked again, as by the executor's pre-flight (`notAsked`). Exits with 1 where a refusal is repeated, and without
 * `--unknown` where more than 1 % of the POSTs is refused.
 *
 * `--unknown`: Kronos knows neither NUMA cells nor CPU traits. `--pack`: Nova fills cells, where it spreads by default. `--seconds`: the
 * run ends after this time.
 *
 *   npm run bench:clouds -- [--days 2] [--hosts 40] [--vms 800] [--seed 1] [--failover 1] [--unknown] [--pack] [--seconds 600]
 */
const { values } = parseArgs({
  options: {
    days: { type: 'string', default: '2' },
    hosts: { type: 'string', default: '40' },
    vms: { type: 'string', default: '800' },
    seed: { type: 'string', default: '1' },
    failover: { type: 'string', default: '1' },
    unknown: { type: 'boolean', default: false },
    pack: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '600' },
  },
});

const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 0, 5);
const size = { hosts: Number(values.hosts), vms: Number(values.vms), seed: Number(values.seed) };
const known = { cells: !values.unknown, traits: !values.unknown };
const options = {
  ...defaultEngineOptions,
  dryRun: false,
  searchWorkLimit: 20_000,
  failoverHosts: Number(values.failover),
  moveUnknownTopology: values.unknown,
  cpuCompatibility: values.unknown ? ('ignore' as const) : ('traits' as const),
};

const cloud = new Cloud(parseScenario(scenarioOf(size, values.pack)), { startMs: START_MS });
placeAll(cloud, START_MS, size);
const draw = seeded(size.seed + 1);
let refusals: NonNullable<Memory['refusals']>[number][] = [];
const counts = { cycles: 0, plans: 0, posts: 0, refused: 0, notAsked: 0, repeated: 0, states: 0, statesWithoutRoom: 0 };
const until = performance.now() + 1000 * Number(values.seconds);
const cpuBefore = cpuMs();

for (let cycle = 0; cycle < 24 * Number(values.days) && performance.now() < until; cycle++) {
  const nowMs = START_MS + cycle * HOUR_MS;
  cloud.advance(nowMs);
  churn(nowMs, cycle);
  const snapshot = observeCloud(cloud, nowMs, cycle, known);
  refusals = refusals.map((one) => marked(one, snapshot));
  const decision = decide({ snapshot, memory: { ...emptyMemory, refusals }, options });
  counts.cycles++;
  if (decision.plan === null) continue;
  counts.plans++;
  const ended = new Set<string>();
  // One after the other, in the order of the plan: all that a step depends on has ended before it.
  for (const step of decision.plan.steps)
    if (step.dependsOn.every((id) => ended.has(id)) && carryOut(step, snapshot)) ended.add(step.taskId);
}

/** A few VMs are deleted and created. */
function churn(nowMs: number, cycle: number): void {
  for (let i = 0; i < Math.ceil(size.vms / 400); i++) {
    const all = [...cloud.servers.keys()];
    cloud.deleteServer(nowMs, all[Math.floor(draw() * all.length)] ?? '');
    createVm(cloud, nowMs, `new-${cycle}-${i}`, draw);
  }
}

/** Moves the VM like the executor: to the destination, or to an alternate. True: the move ended there. */
function carryOut(step: Step, snapshot: Snapshot): boolean {
  for (const host of [step.to, ...step.alternates]) {
    if (cloud.server(step.serverId).host !== step.from) return false;
    if (refusedSincePlan(step.serverId, host, snapshot)) {
      counts.notAsked++;
      continue;
    }
    if (isKnown(step.serverId, host, snapshot)) counts.repeated++;
    counts.posts++;
    const caller = { userId: cloud.admin.id, projectId: cloud.admin.projectId, requestId: `req-${counts.posts}` };
    const at = new Date(cloud.nowMs).toISOString();
    try {
      cloud.liveMigrate(cloud.nowMs, caller, step.serverId, { host, force: false, async: true });
    } catch (error) {
      if (!(error instanceof NovaRefusal)) throw error;
    }
    cloud.advance(cloud.nowMs + 120_000);
    counts.states++;
    if (options.failoverHosts > 0 && withoutRefuge(cloud).length > 0) counts.statesWithoutRoom++;
    if (cloud.server(step.serverId).host === host) return true;
    counts.refused++;
    refusals.push({ serverId: step.serverId, host, atMs: Date.parse(at), text: 'refused', shape: null, mark: null });
  }
  return false;
}

/** The executor's pre-flight: Nova refused this destination for a server of the same shape since the plan was made. */
function refusedSincePlan(serverId: string, host: string, { servers, time }: Snapshot): boolean {
  const shape = shapeOfServer(serverId, servers);
  return refusals.some(
    (one) => one.host === host && one.atMs >= Date.parse(time) && shapeOfServer(one.serverId, servers) === shape,
  );
}

/** Was this destination refused for servers of this shape, and does that still count by the snapshot of this cycle? */
function isKnown(serverId: string, host: string, { hosts, servers, time }: Snapshot): boolean {
  const shape = shapeOfServer(serverId, servers);
  const seen = hosts.find(({ name }) => name === host);
  return refusals.some(
    (one) =>
      one.host === host &&
      (one.shape ?? shapeOfServer(one.serverId, servers)) === shape &&
      seen !== undefined &&
      refusalHolds({ atMs: one.atMs, mark: one.mark }, markOf(seen, servers), Date.parse(time)),
  );
}

function shapeOfServer(id: string, servers: Snapshot['servers']): string | null {
  const server = servers.find((one) => one.id === id);
  return server === undefined ? null : shapeOf(server);
}

/** A refusal as the first decision after it records it; one that counts no more is dropped. */
function marked(one: (typeof refusals)[number], { hosts, servers }: Snapshot): (typeof refusals)[number] {
  if (one.mark !== null) return one;
  const host = hosts.find(({ name }) => name === one.host);
  return {
    ...one,
    shape: shapeOfServer(one.serverId, servers),
    mark: host === undefined ? null : markOf(host, servers),
  };
}

const newer = [...cloud.hosts.values()].filter(({ traits }) => traits.includes('HW_CPU_X86_AVX512F'));
const caught = [...cloud.servers.values()].filter(({ host }) => newer.some(({ name }) => name === host));
const refusedShare = counts.posts === 0 ? 0 : counts.refused / counts.posts;
const ok =
  refusedShare <= 0.01 && counts.repeated === 0 && (options.failoverHosts === 0 || counts.statesWithoutRoom === 0);
console.log(
  JSON.stringify(
    {
      ...size,
      days: Number(values.days),
      ...counts,
      refusedShare,
      caughtVms: caught.length,
      newerHosts: newer.length,
      cpuSeconds: (cpuMs() - cpuBefore) / 1000,
      ok,
    },
    null,
    2,
  ),
);
if (counts.repeated > 0 || (!ok && !values.unknown)) process.exitCode = 1;
