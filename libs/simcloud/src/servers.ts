/** Servers: made, changed, deleted. */
import { recordAction } from './actions.ts';
import { ActError, NovaRefusal, ScenarioError } from './errors.ts';
import { setMembership } from './estate.ts';
import { fixedFactsSchema } from './fixedFacts.ts';
import { conflict, currentMove, endMigration } from './migrations.ts';
import type { Port, Server } from './model.ts';
import { placeCells } from './numa.ts';
import { allocate, byFreeMemory, deallocate, flavorClaim, hostHasRoom, serverClaim } from './placement.ts';
import { deleteMoving } from './resize.ts';
import type { ServerInput } from './scenario.ts';
import { demandSchema, serverSchema } from './scenario.ts';
import { NO_HOST } from './scheduler.ts';
import { type Caller, type CloudState, findServer } from './state.ts';

export function placeServer(s: CloudState, input: ServerInput, createdMs: number): Server {
  const parsed = serverSchema.parse(input);
  const flavor = s.flavors.get(parsed.flavor);
  if (flavor === undefined) throw new ActError(`there is no flavor ${parsed.flavor}`);
  const host = s.host(parsed.host);
  const uuid = parsed.id ?? s.random.uuid();
  if (s.servers.has(uuid) || s.deleted.has(uuid)) throw new ActError(`there is already a server ${uuid}`);
  const cells = placeCells(s, host, flavor);
  if (cells === null) throw new ScenarioError(`${parsed.name}: the NUMA cells of ${host.name} do not take it`);
  const states = {
    ACTIVE: ['active', 1],
    PAUSED: ['paused', 3],
    SHUTOFF: ['stopped', 4],
    ERROR: ['error', 1],
  } as const;
  const [vmState, powerState] = states[parsed.status];
  const server: Server = {
    uuid,
    id: ++s.ids.server,
    name: parsed.name,
    projectId: s.project(parsed.project).id,
    userId: s.admin.id,
    flavor,
    imageId: parsed.bootFromVolume ? null : s.imageId,
    reservationId: `r-${s.random.word(8)}`,
    metadata: parsed.metadata,
    tags: parsed.tags,
    pinnedZone: parsed.pinnedZone,
    fixed: fixedFactsSchema.parse(parsed),
    ports: portsOf(uuid, parsed.ports),
    host: host.name,
    cpuTraits: host.traits.filter((trait) => trait.startsWith('HW_CPU_')),
    guestHost: host.name,
    vmState,
    oldVmState: 'active',
    taskState: null,
    powerState,
    locked: parsed.locked,
    lockedReason: parsed.lockedReason,
    fault:
      vmState === 'error' ? { code: 500, message: 'Unexpected hypervisor error', createdMs: createdMs + 8000 } : null,
    demand: demandSchema.parse(
      parsed.demand ?? { cpuCores: 0.3 * flavor.vcpus, memoryMb: 0.5 * flavor.memoryMb },
    ) as Server['demand'],
    createdMs,
    updatedMs: createdMs + 8000,
    launchedMs: createdMs + 8000,
    deletedMs: null,
    placements: [{ fromMs: createdMs, host: host.name }],
    formerLoads: [],
    views: new Map(),
  };
  s.servers.set(uuid, server);
  s.order = null;
  allocate(s, uuid, host, { ...serverClaim(server), cells });
  recordAction(s, server, 'create', { caller: null, atMs: createdMs });
  if (parsed.group !== undefined) setMembership(s, uuid, parsed.group);
  server.updatedMs = createdMs + 8000;
  return server;
}

/** Their ids and MAC addresses follow from the server's id and their places. */
const portsOf = (uuid: string, ports: readonly Omit<Port, 'id' | 'mac'>[]): readonly Port[] =>
  ports.map((port, i) => {
    const id = `${uuid.slice(0, -2)}${String(i).padStart(2, '0')}`;
    return { id, mac: ['fa:16:3e', ...(id.slice(-6).match(/../g) ?? [])].join(':'), ...port };
  });

export function createServer(s: CloudState, input: ServerInput): Server {
  const server = placeServer(s, input, s.nowMs);
  server.updatedMs = s.nowMs;
  server.launchedMs = s.nowMs;
  s.changed(server);
  return server;
}

/** POST /servers: placed at once, `BUILD` for a moment. Throws NovaRefusal when nothing can take it. */
export function bootServer(
  s: CloudState,
  caller: Caller,
  wanted: {
    name: string;
    flavor: string;
    host: string | null;
    pinnedZone: string | null;
    group: string | null;
    metadata: Record<string, string>;
    tags: readonly string[];
  },
): Server {
  const flavor = s.flavors.get(wanted.flavor);
  if (flavor === undefined) throw new NovaRefusal(400, `Flavor ${wanted.flavor} could not be found.`);
  const fitting = [...s.hosts.values()].filter(
    (host) =>
      (wanted.host === null || host.name === wanted.host) &&
      (wanted.pinnedZone === null || s.zoneOf(host.name) === wanted.pinnedZone) &&
      s.isUp(host) &&
      !host.disabled &&
      hostHasRoom(host, flavorClaim(flavor, { imageId: s.imageId })) &&
      placeCells(s, host, flavor) !== null,
  );
  const [host] = fitting.sort(byFreeMemory);
  if (host === undefined) throw new NovaRefusal(400, NO_HOST);
  const cores = Number(wanted.metadata.cpu ?? 0.3 * flavor.vcpus);
  const memoryMb = Number(wanted.metadata.mem ?? 0.5 * flavor.memoryMb);
  const project = [...s.projects.values()].find((each) => each.id === caller.projectId);
  const server = placeServer(
    s,
    {
      name: wanted.name,
      host: host.name,
      flavor: flavor.name,
      metadata: wanted.metadata,
      tags: [...wanted.tags],
      pinnedZone: wanted.pinnedZone,
      demand: { cpuCores: cores, memoryMb },
      ...(wanted.group === null ? {} : { group: wanted.group }),
      ...(project === undefined ? {} : { project: project.name }),
    },
    s.nowMs,
  );
  server.vmState = 'building';
  server.taskState = 'spawning';
  server.powerState = 0;
  s.touch(server);
  s.later('build', server.uuid, s.wait(s.timing.buildMs));
  return server;
}

/** Nova aborts a live migration of a server that is deleted meanwhile, and confirms a move that waits for it. */
export function deleteServer(s: CloudState, idOrName: string): void {
  const server = s.server(idOrName);
  const migration = currentMove(s, server.uuid);
  const moved = migration === undefined ? 'other' : deleteMoving(s, migration, server);
  if (moved === 'stays') return;
  if (migration !== undefined && moved === 'other') {
    const held = s.allocations.get(migration.uuid);
    const arrived = migration.switched || migration.status === 'finished';
    endMigration(s, migration, arrived ? 'completed' : 'cancelled');
    // Nova forgets what the migration holds on the source: it stays taken until somebody deletes the allocation.
    if (!arrived && held !== undefined) allocate(s, migration.uuid, s.host(held.host), held.resources);
  }
  deallocate(s, server.uuid);
  setMembership(s, server.uuid, null);
  server.deletedMs = s.nowMs;
  s.touch(server);
  server.placements.push({ fromMs: s.nowMs, host: null });
  recordAction(s, server, 'delete', { caller: null });
  s.servers.delete(server.uuid);
  s.deleted.set(server.uuid, server);
  s.order = null;
}

/** nova/compute/vm_states.py ALLOW_HARD_REBOOT. */
const REBOOTABLE: ReadonlySet<string> = new Set(['active', 'stopped', 'paused', 'error']);

/** POST /servers/{id}/action reboot, HARD. Throws NovaRefusal as Nova would. */
export function hardReboot(s: CloudState, uuid: string): void {
  const server = findServer(s, uuid);
  const { vmState, taskState } = server;
  if (!REBOOTABLE.has(vmState)) throw conflict('reboot', uuid, 'vm_state', vmState);
  if (taskState !== null) throw conflict('reboot', uuid, 'task_state', taskState);
  server.vmState = 'active';
  server.powerState = 1;
  server.fault = null;
  s.touch(server);
}

/** The action by which a user changes the state of a server. */
const ACTIONS: Readonly<Record<string, string>> = {
  'active stopped': 'stop',
  'stopped active': 'start',
  'active paused': 'pause',
  'paused active': 'unpause',
};

/** Whether the guest uses its CPUs. */
export const isRunning = ({ vmState }: Pick<Server, 'vmState'>): boolean =>
  vmState === 'active' || vmState === 'paused' || vmState === 'rescued' || vmState === 'resized';

/** A server that is on no host has no power, and Nova stops and pauses none that waits for the confirmation of its move. */
function refusePower({ name, vmState }: Server, change: { vmState?: unknown; powerState?: unknown }): void {
  const power = change.vmState !== undefined || change.powerState !== undefined;
  if (power && vmState.startsWith('shelved')) throw new ActError(`server ${name} is shelved: unshelve it first`);
  if (change.vmState !== undefined && change.vmState !== 'error' && vmState === 'resized')
    throw new ActError(`server ${name} waits in VERIFY_RESIZE: confirm or revert its move first`);
}

export function setServer(
  s: CloudState,
  idOrName: string,
  change: {
    name?: string | undefined;
    metadata?: Record<string, string> | undefined;
    tags?: readonly string[] | undefined;
    locked?: boolean | undefined;
    lockedReason?: string | null | undefined;
    pinnedZone?: string | null | undefined;
    vmState?: 'active' | 'paused' | 'stopped' | 'error' | undefined;
    taskState?: string | null | undefined;
    powerState?: number | undefined;
    ports?: readonly Omit<Port, 'id' | 'mac'>[] | undefined;
    demand?: Server['demand'] | undefined;
  },
): void {
  const server = s.server(idOrName);
  refusePower(server, change);
  const { tags: _, metadata: wanted = server.metadata, ...columns } = change;
  // Nova keeps tags and metadata beside the server: only a metadata key that is set counts as a change of it.
  const set = Object.entries(wanted).some(([key, value]) => server.metadata[key] !== value);
  const touched = set || Object.values(columns).some((value) => value !== undefined);
  const { demand, vmState, ports: wantedPorts, ...plain } = change;
  const ports = wantedPorts === undefined ? undefined : portsOf(server.uuid, wantedPorts);
  if (demand !== undefined || vmState !== undefined)
    server.formerLoads.push({ untilMs: s.nowMs, demand: server.demand, running: isRunning(server) });
  if (change.locked === false) server.lockedReason = null;
  if (vmState !== undefined) {
    const action = ACTIONS[`${server.vmState} ${vmState}`];
    if (action !== undefined) recordAction(s, server, action, { caller: null });
    server.vmState = vmState;
    server.powerState = { active: 1, paused: 3, stopped: 4, error: 1 }[vmState];
  }
  const given = Object.entries({ ...plain, demand, ports }).filter(([, value]) => value !== undefined);
  Object.assign(server, Object.fromEntries(given));
  if (touched) s.touch(server);
  else s.changed(server);
}
