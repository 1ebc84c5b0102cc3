/** Rescue and shelving: a server that is rescued runs on; one that is shelved is on no host. */
import { recordAction } from './actions.ts';
import { conflict } from './migrations.ts';
import type { Server } from './model.ts';
import { placeCells } from './numa.ts';
import { allocate, deallocate, serverClaim } from './placement.ts';
import { hostForShelved } from './scheduler.ts';
import { isRunning } from './servers.ts';
import { type Caller, type CloudState, findServer, type StateAction, type StateStep } from './state.ts';

/** The states from which Nova lets a user begin; all wait for no other task. */
const FROM = {
  rescue: ['active', 'stopped', 'error'],
  unrescue: ['rescued'],
  shelve: ['active', 'stopped', 'paused'],
  unshelve: ['shelved', 'shelved_offloaded'],
} as const satisfies Record<StateAction, readonly Server['vmState'][]>;
export const isStateStep = (kind: string): kind is StateStep =>
  Object.hasOwn(FROM, kind) || kind === 'offload' || kind === 'leave-host' || kind === 'spawned';

/** POST /servers/{id}/action. Nova offloads at once what is shelved (`shelved_offload_time = 0`). Throws NovaRefusal as Nova would. */
export function beginStateAction(s: CloudState, caller: Caller, uuid: string, action: StateAction): void {
  const server = findServer(s, uuid);
  const states: readonly string[] = FROM[action];
  if (!states.includes(server.vmState)) throw conflict(action, uuid, 'vm_state', server.vmState);
  if (server.taskState !== null) throw conflict(action, uuid, 'task_state', server.taskState);
  recordAction(s, server, action, { caller });
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

/**
 * The work of the computes, and for `unshelve` of the conductor. Nova gives back what a shelved server holds, then calls it offloaded,
 * and a moment later forgets its host. One that is unshelved has its host before it runs.
 */
export function stateStep(s: CloudState, server: Server, kind: StateStep): void {
  switch (kind) {
    case 'offload':
      if (server.taskState !== 'shelving_offloading') return;
      deallocate(s, server.uuid);
      server.placements.push({ fromMs: s.nowMs, host: null });
      Object.assign(server, { vmState: 'shelved_offloaded', taskState: null, guestHost: '' });
      s.later('leave-host', server.uuid, s.timing.postMs / s.speed);
      return;
    case 'leave-host':
      if (server.vmState === 'shelved_offloaded' && server.taskState !== 'spawning') server.host = '';
      return;
    case 'spawned':
      if (server.taskState !== 'spawning') return;
      server.formerLoads.push({ untilMs: s.nowMs, demand: server.demand, running: false });
      Object.assign(server, { vmState: 'active', taskState: null, powerState: 1 });
      return;
    default:
      if (server.taskState !== null) endStateAction(s, server, kind);
  }
}

function endStateAction(s: CloudState, server: Server, action: StateAction): void {
  if (action === 'unshelve') {
    claim(s, server);
    return;
  }
  server.formerLoads.push({ untilMs: s.nowMs, demand: server.demand, running: isRunning(server) });
  if (action === 'rescue') Object.assign(server, { vmState: 'rescued', taskState: null, powerState: 1 });
  else if (action === 'unrescue') Object.assign(server, { vmState: 'active', taskState: null, powerState: 1 });
  else {
    Object.assign(server, { vmState: 'shelved', taskState: 'shelving_offloading', powerState: 4 });
    s.later('offload', server.uuid, s.timing.postMs / s.speed);
  }
}

/** Nova chooses among the hosts of its cell; when none takes the server, it stays shelved. */
function claim(s: CloudState, server: Server): void {
  server.taskState = null;
  const host = hostForShelved(s, server);
  if (host === undefined) return;
  allocate(s, server.uuid, host, { ...serverClaim(server), cells: placeCells(s, host, server.flavor) ?? [] });
  server.placements.push({ fromMs: s.nowMs, host: host.name });
  Object.assign(server, { taskState: 'spawning', host: host.name, guestHost: host.name });
  s.later('spawned', server.uuid, s.timing.postMs / s.speed);
}
