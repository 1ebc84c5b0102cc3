/** A simulated cloud with a scripted life of hours, observed as the scorer does while it lasts. */
import { systemClock } from '@kronos/clock';
import { parsePolicies } from '@kronos/config';
import { cycleSnapshotId, type Policy, type Snapshot } from '@kronos/contracts';
import { assemble, CapacityReader, type ObserveOptions, readCloud, topologyOf } from '@kronos/observation';
import { createNova, createPlacement, createSession, type Nova, type Placement } from '@kronos/openstack';
import { createPrometheus, type Prometheus } from '@kronos/prometheus';
import { type ActInput, demoPolicies, manualClock, type ScenarioInput, type Sim, startSim } from '@kronos/simcloud';

export const policies: readonly Policy[] = parsePolicies({ file: 'policies.yaml', text: demoPolicies }).policies;
export const AGGREGATE = 'general';
export const observeOptions: ObserveOptions = {
  hypervisorTypes: ['QEMU', 'KVM'],
  optOut: ['kronos:exclude'],
  cells: [],
};
const HOUR_MS = 3_600_000;
export const STEP_MS = 300_000;

/** Something that happens this long after the start. */
export type Scene = { readonly atMs: number; readonly act: ActInput | ((cloud: Clients) => Promise<void>) };

type Clients = {
  readonly sim: Sim;
  readonly nova: Nova;
  readonly placement: Placement;
  readonly prometheus: Prometheus;
};

export type Scripted = Clients & {
  readonly startMs: number;
  readonly endMs: number;
  /** The scorer's snapshot of each step. */
  readonly recorded: readonly Snapshot[];
  readonly close: () => Promise<void>;
};

/** Six hosts, the first two busy, and 24 VMs. */
export const smallCloud = (more: Partial<ScenarioInput> = {}): ScenarioInput => {
  const hosts = Array.from({ length: 6 }, (_, i) => `h${i + 1}`);
  return {
    hosts: hosts.map((name) => ({ name, vcpus: 64, memoryMb: 262_144 })),
    flavors: [
      { name: 'small', vcpus: 4, memoryMb: 8192, diskGb: 20 },
      { name: 'large', vcpus: 8, memoryMb: 16_384, diskGb: 40 },
    ],
    aggregates: [{ name: AGGREGATE, hosts }],
    tokenSeconds: 100 * 24 * 3600,
    scrapeSeconds: 15,
    servers: Array.from({ length: 24 }, (_, i) => ({
      name: `vm-${i + 1}`,
      host: hosts[i % (i < 12 ? 2 : 6)] ?? '',
      flavor: 'small',
      demand: { cpuCores: 2 + (i % 5), memoryMb: 4096 + 512 * (i % 7) },
    })),
    ...more,
  };
};

/** The moves of people, creates, deletes, a stop, a resize, a host that dies and comes back. */
export const script: readonly Scene[] = [
  { atMs: 7 * 60_000, act: { act: 'migrateServer', server: 'vm-1', host: 'h4' } },
  { atMs: 13 * 60_000, act: { act: 'createServer', server: { name: 'late', host: 'h3', flavor: 'small' } } },
  { atMs: 17 * 60_000, act: { act: 'setServer', server: 'vm-2', vmState: 'stopped' } },
  { atMs: 22 * 60_000, act: { act: 'migrateServer', server: 'vm-3', host: 'h5' } },
  { atMs: 31 * 60_000, act: { act: 'deleteServer', server: 'vm-3' } },
  { atMs: 36 * 60_000, act: { act: 'deleteServer', server: 'vm-20' } },
  { atMs: 41 * 60_000, act: (clients) => resize(clients, 'vm-6', 'large') },
  { atMs: 43 * 60_000, act: (clients) => confirm(clients, 'vm-6') },
  { atMs: 52 * 60_000, act: { act: 'killHost', host: 'h6' } },
  { atMs: 66 * 60_000, act: { act: 'migrateServer', server: 'vm-8', host: 'h3' } },
  { atMs: 71 * 60_000, act: { act: 'startHost', host: 'h6' } },
  { atMs: 82 * 60_000, act: { act: 'migrateServer', server: 'vm-1', host: 'h2' } },
  { atMs: 91 * 60_000, act: { act: 'setServer', server: 'vm-2', vmState: 'active' } },
  { atMs: 96 * 60_000, act: { act: 'migrateServer', server: 'late', host: 'h1' } },
  // Under way at a step.
  { atMs: 99.9 * 60_000, act: { act: 'migrateServer', server: 'vm-12', host: 'h3' } },
];

const now = () => ({ signal: new AbortController().signal, checkSend: () => null });

async function resize({ nova, sim }: Clients, name: string, flavor: string): Promise<void> {
  const found = (await nova.listFlavors()).find((one) => one.name === flavor);
  if (found === undefined) throw new Error(`no flavor ${flavor}`);
  await nova.resize({ serverId: sim.cloud.server(name).uuid, flavorId: found.id }, now());
}

async function confirm({ nova, sim }: Clients, name: string): Promise<void> {
  await nova.settleResize({ serverId: sim.cloud.server(name).uuid, act: 'confirm' }, now());
}

/** Lives the script, taking a snapshot at each step as the scorer would. */
export async function liveScript({
  scenario,
  scenes,
  hours,
}: {
  readonly scenario: ScenarioInput;
  readonly scenes: readonly Scene[];
  readonly hours: number;
}): Promise<Scripted> {
  const startMs = Math.floor((Date.now() - hours * HOUR_MS) / STEP_MS) * STEP_MS;
  const clock = manualClock(startMs);
  const sim = await startSim({ scenario, clock });
  const auth = {
    authUrl: sim.urls.identity,
    username: 'admin',
    password: 'secret',
    projectName: 'admin',
    userDomainId: 'default',
    projectDomainId: 'default',
  };
  const session = createSession({ auth });
  const prometheus = createPrometheus({ url: sim.urls.prometheus, maxRetries: 0, timeoutMs: 5_000 });
  const clients: Clients = { sim, nova: createNova(session), placement: createPlacement(session), prometheus };
  const recorded: Snapshot[] = [];
  const endMs = startMs + hours * HOUR_MS;
  const left = [...scenes];
  for (let atMs = startMs + STEP_MS; atMs <= endMs; atMs += STEP_MS) {
    while ((left[0]?.atMs ?? Number.POSITIVE_INFINITY) < atMs - startMs) {
      const scene = left.shift();
      if (scene === undefined) break;
      clock.set(startMs + scene.atMs);
      if (typeof scene.act === 'function') await scene.act(clients);
      else sim.act(scene.act);
    }
    clock.set(atMs);
    recorded.push(await snapshotNow(clients, atMs));
  }
  return {
    ...clients,
    startMs,
    endMs,
    recorded,
    async close() {
      await Promise.all([session.close(), prometheus.close(), sim.close()]);
    },
  };
}

async function snapshotNow({ nova, placement, prometheus }: Clients, atMs: number): Promise<Snapshot> {
  const { signal } = new AbortController();
  const clock = { ...systemClock, now: () => atMs };
  const observation = await readCloud({
    nova,
    prometheus,
    policies,
    stalenessMs: STEP_MS,
    queryDeadlineMs: 10_000,
    concurrency: 4,
    known: [],
    clock,
    signal,
  });
  const topology = topologyOf(observation.lists, AGGREGATE, [AGGREGATE], observeOptions);
  const capacity = await new CapacityReader(placement, 4, clock).read(topology, signal);
  const time = new Date(atMs).toISOString();
  const cycle = Math.floor(atMs / STEP_MS);
  return assemble({
    identity: {
      id: cycleSnapshotId(AGGREGATE, cycle),
      purpose: 'cycle',
      cycle,
      intervalSeconds: STEP_MS / 1000,
      observedFrom: time,
      time,
    },
    aggregate: AGGREGATE,
    scope: [AGGREGATE],
    options: observeOptions,
    policies,
    balance: true,
    lists: observation.lists,
    index: observation.index,
    listings: new Map(),
    capacity,
    answers: observation.answers,
    known: [],
    fates: observation.fates,
  });
}

/** One thing that a rebuilt snapshot shows otherwise. */
export type Difference = {
  readonly time: string;
  readonly what: string;
  readonly recorded: unknown;
  readonly rebuilt: unknown;
};

/** The differences in what decisions are made of: placements, states, groups, services, capacity and readings. */
export function differencesOf(recorded: Snapshot, rebuilt: Snapshot): Difference[] {
  const found: Difference[] = [];
  const see = (what: string, one: unknown, other: unknown): void => {
    if (JSON.stringify(one) !== JSON.stringify(other))
      found.push({ time: recorded.time, what, recorded: one, rebuilt: other });
  };
  const seeEach = <T extends object>(name: string, one: T, other: T): void => {
    // How a list of servers was read is a fact about the reader.
    for (const key of new Set([...Object.keys(one), ...Object.keys(other)]) as Set<keyof T & string>)
      if (key !== 'listing') see(`${key} of ${name}`, one[key], other[key]);
  };
  const others = new Map(rebuilt.servers.map((server) => [server.id, server]));
  for (const server of recorded.servers) {
    const other = others.get(server.id);
    others.delete(server.id);
    if (other === undefined) see(`server ${server.name}`, server.host, null);
    else seeEach(server.name, server, other);
  }
  for (const { name, host } of others.values()) see(`server ${name}`, null, host);
  for (const [i, host] of recorded.hosts.entries()) {
    const other = rebuilt.hosts[i];
    if (other === undefined) see(`host ${host.name}`, host.name, null);
    else seeEach(host.name, host, other);
  }
  for (const [i, reading] of recorded.hostReadings.entries()) {
    const other = rebuilt.hostReadings[i];
    see(`health of ${reading.query}`, reading.health, other?.health);
    see(`values of ${reading.query}`, rounded(reading.values), rounded(other?.values ?? {}));
  }
  for (const [i, reading] of recorded.vmReadings.entries())
    see(`values of ${reading.query}`, rounded(reading.values), rounded(rebuilt.vmReadings[i]?.values ?? {}));
  see('server groups', recorded.serverGroups, rebuilt.serverGroups);
  return found;
}

const rounded = (values: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, Number(value.toPrecision(12))]));
