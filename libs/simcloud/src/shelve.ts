/** Rescue and shelving: a server that is rescued runs on; one that is shelved is on no host. */
import { recordAction } from './actions.ts';
import { NovaRefusal } from './errors.ts';
import { conflict } from './migrations.ts';
import type { Server } from './model.ts';
import { placeCells } from './numa.ts';
import { allocate, fits, release, resourcesOf } from './placement.ts';
import { groupTakes } from './scheduler.ts';
import { isRunning } from './servers.ts';
import type { Caller, CloudState, StateAction } from './state.ts';

/** The states from which Nova lets a user begin; all wait for no other task. */
const FROM = {
  rescue: ['active', 'stopped', 'error'],
  unrescue: ['rescued'],
  shelve: ['active', 'stopped', 'paused'],
  unshelve: ['shelved_offloaded'],
} as const satisfies Record<StateAction, readonly Server['vmState'][]>;
export const isStateAction = (action: string): action is StateAction => Object.hasOwn(FROM, action);

/** POST /servers/{id}/action. Nova offloads at once what is shelved (`shelved_offload_time = 0`). Throws NovaRefusal as Nova would. */
export function beginStateAction(s: CloudState, caller: Caller, uuid: string, action: StateAction): void {
  const server = s.servers.get(uuid);
  if (server === undefined) throw new NovaRefusal(404, `Instance ${uuid} could not be found.`);
  const states: readonly string[] = FROM[action];
  if (!states.includes(server.vmState)) throw conflict(action, uuid, 'vm_state', server.vmState);
  if (server.taskState !== null) throw conflict(action, uuid, 'task_state', server.taskState);
  recordAction(s, server, action, caller, s.nowMs);
  const tasks = {
    rescue: 'rescuing',
    unrescue: 'unrescuing',
    shelve: 'shelving',
    unshelve: 'unshelving',
  } as const;
  server.taskState = tasks[action];
  s.touch(server);
  s.later(action, uuid, s.wait(s.timing.buildMs));
}

/** What the compute, or for `unshelve` the conductor, makes of it. */
export function endStateAction(s: CloudState, server: Server, action: StateAction): void {
  if (server.taskState === null) return;
  server.taskState = null;
  server.formerLoads.push({ untilMs: s.nowMs, demand: server.demand, running: isRunning(server) });
  if (action === 'rescue') Object.assign(server, { vmState: 'rescued', powerState: 1 });
  else if (action === 'unrescue') Object.assign(server, { vmState: 'active', powerState: 1 });
  else if (action === 'shelve') {
    release(s, server.uuid);
    server.placements.push({ fromMs: s.nowMs, host: null });
    Object.assign(server, { vmState: 'shelved_offloaded', powerState: 4, host: '', guestHost: '' });
  } else unshelve(s, server);
}

/** Nova chooses among the hosts of its cell; when none takes the server, it stays shelved. */
function unshelve(s: CloudState, server: Server): void {
  const cell = s.cellOf(server);
  const wanted = resourcesOf(server);
  const host = [...s.hosts.values()].find(
    (each) =>
      each.cell === cell &&
      s.isUp(each) &&
      !each.disabled &&
      fits(each, wanted) &&
      (server.pinnedZone === null || s.zoneOf(each.name) === server.pinnedZone) &&
      groupTakes(s, server, each) &&
      placeCells(s, each, server.flavor) !== null,
  );
  if (host === undefined) return;
  allocate(s, server.uuid, host, { ...wanted, cells: placeCells(s, host, server.flavor) ?? [] });
  server.placements.push({ fromMs: s.nowMs, host: host.name });
  Object.assign(server, { vmState: 'active', powerState: 1, host: host.name, guestHost: host.name });
}
