import type { Cloud } from '../../cloud.ts';
import { NovaRefusal } from '../../errors.ts';
import { conflict } from '../../migrations.ts';
import { findServer, type StateAction } from '../../state.ts';
import { bodyJson, object, python, type Reply, textIn } from '../exchange.ts';
import { caller, empty, ID, LIES, novaReply, type Route, route, type Scope, TRUTHS } from './nova.ts';

/** POST /servers/{id}/action: moves, their end, locks, power. */
export function serverActionRoutes(cloud: Cloud): readonly Route[] {
  return [
    route(`POST /servers/${ID}/action`, 'os-migrate-server:migrate_live:host', (scope, [uuid = '']) =>
      act(cloud, scope, uuid),
    ),
  ];
}

function act(cloud: Cloud, scope: Scope, uuid: string): Reply {
  const body = object(bodyJson(scope.call.body));
  const action = body === undefined ? undefined : Object.keys(body)[0];
  if (body === undefined || action === undefined) throw new NovaRefusal(400, 'Malformed request body');
  const perform = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
  if (perform === undefined) throw new NovaRefusal(400, `There is no such action: ${action}`);
  return perform(cloud, scope, uuid, body[action]) ?? empty(scope, 202);
}

/** Carries out an action with its value in the body; returns its answer where that is not an empty 202. */
type Action = (cloud: Cloud, scope: Scope, uuid: string, given: unknown) => Reply | undefined;

const endResize =
  (action: 'confirmResize' | 'revertResize'): Action =>
  (cloud, scope, uuid) => {
    cloud.endResize(scope.call.nowMs, caller(scope), uuid, action);
    return empty(scope, action === 'confirmResize' ? 204 : 202);
  };

const changeState =
  (action: StateAction): Action =>
  (cloud, scope, uuid) => {
    cloud.beginStateAction(scope.call.nowMs, caller(scope), uuid, action);
    return action === 'rescue' ? novaReply(scope, 200, { adminPass: 'unused' }) : undefined;
  };

const power =
  (action: keyof typeof POWER): Action =>
  (cloud, scope, uuid) => {
    setPower(cloud, scope.call.nowMs, uuid, action);
    return undefined;
  };

const ACTIONS: Readonly<Record<string, Action>> = {
  'os-migrateLive': (cloud, scope, uuid, given) => {
    cloud.liveMigrate(scope.call.nowMs, caller(scope), uuid, liveMigrationBody(given, scope.minor));
    return undefined;
  },
  migrate: (cloud, scope, uuid, given) => {
    const wanted = scope.minor >= 56 ? (textIn(object(given)?.host) ?? null) : null;
    cloud.coldMigrate(scope.call.nowMs, caller(scope), uuid, wanted);
    return undefined;
  },
  resize: (cloud, scope, uuid, given) => {
    const wanted = object(given);
    const extra = Object.keys(wanted ?? {}).find((key) => key !== 'flavorRef' && key !== 'OS-DCF:diskConfig');
    if (extra !== undefined)
      throw new NovaRefusal(
        400,
        `Invalid input for field/attribute resize. Value: ${python(given)}. ` +
          `Additional properties are not allowed ('${extra}' was unexpected)`,
      );
    cloud.resize(scope.call.nowMs, caller(scope), uuid, textIn(wanted?.flavorRef) ?? '');
    return undefined;
  },
  reboot: (cloud, scope, uuid, given) => {
    if (textIn(object(given)?.type) !== 'HARD') throw new NovaRefusal(400, 'The simulated cloud reboots HARD only.');
    cloud.hardReboot(scope.call.nowMs, uuid);
    return undefined;
  },
  confirmResize: endResize('confirmResize'),
  revertResize: endResize('revertResize'),
  lock: (cloud, scope, uuid, given) => {
    findServer(cloud, uuid);
    const reason = scope.minor >= 73 ? (textIn(object(given)?.locked_reason) ?? null) : null;
    cloud.setServer(scope.call.nowMs, uuid, { locked: true, lockedReason: reason });
    return undefined;
  },
  unlock: (cloud, scope, uuid) => {
    findServer(cloud, uuid);
    cloud.setServer(scope.call.nowMs, uuid, { locked: false });
    return undefined;
  },
  rescue: changeState('rescue'),
  unrescue: changeState('unrescue'),
  shelve: changeState('shelve'),
  unshelve: changeState('unshelve'),
  'os-stop': power('os-stop'),
  'os-start': power('os-start'),
  pause: power('pause'),
  unpause: power('unpause'),
};

/** The state that each action needs, and the one that it leads to. */
const POWER = {
  'os-stop': ['active', 'stopped'],
  'os-start': ['stopped', 'active'],
  pause: ['active', 'paused'],
  unpause: ['paused', 'active'],
} as const;

function setPower(cloud: Cloud, nowMs: number, uuid: string, action: keyof typeof POWER): void {
  const { host, vmState, taskState } = findServer(cloud, uuid);
  const [from, to] = POWER[action];
  const name = action.replace('os-', '');
  // Nova checks the host before the state, except to pause.
  if (host === '' && name !== action) throw new NovaRefusal(409, `Instance ${uuid} is not ready`);
  if (vmState !== from) throw conflict(name, uuid, 'vm_state', vmState);
  if (taskState !== null) throw conflict(name, uuid, 'task_state', taskState);
  cloud.setServer(nowMs, uuid, { vmState: to });
}

const invalid = (field: string, value: unknown, why: string): NovaRefusal => {
  const shown = typeof value === 'string' ? value : python(value);
  return new NovaRefusal(400, `Invalid input for field/attribute ${field}. Value: ${shown}. ${why}`);
};

/** From 2.30 to 2.67 the body may say `force`. */
const takesForce = (minor: number): boolean => minor >= 30 && minor < 68;

/** The body of os-migrateLive per microversion (nova/api/openstack/compute/schemas/migrate_server.py). */
function liveMigrationBody(given: unknown, minor: number): { host: string | null; force: boolean; async: boolean } {
  const body = object(given);
  if (body === undefined) throw invalid('os-migrateLive', given, `${python(given)} is not of type 'object'`);
  // In the order of Nova's validator: wrong values, missing fields, unknown fields.
  const host = checkedValues(body, minor);
  checkFields(body, minor);
  const forced = takesForce(minor) && TRUTHS.includes(body.force as string | boolean);
  if (forced && host === null) throw new NovaRefusal(400, "Can't force to a non-provided destination");
  // Before 2.30 a named host by-passes the scheduler.
  return { host, force: forced || (minor < 30 && host !== null), async: minor >= 34 };
}

/** Returns the host. */
function checkedValues(body: Readonly<Record<string, unknown>>, minor: number): string | null {
  const booleans: unknown[] = [...TRUTHS, ...LIES];
  const oneOf = (key: string, choices: readonly unknown[]): void => {
    const value = body[key];
    if (key in body && !choices.includes(value))
      throw invalid(key, value, `${python(value)} is not one of ${python(choices)}`);
  };
  oneOf('block_migration', minor >= 25 ? [...booleans, 'auto'] : booleans);
  if (minor < 25) oneOf('disk_over_commit', booleans);
  const host = body.host ?? null;
  if (host !== null && typeof host !== 'string')
    throw invalid('host', host, `${python(host)} is not of type 'string', 'null'`);
  if (takesForce(minor)) oneOf('force', booleans);
  return host;
}

function checkFields(body: Readonly<Record<string, unknown>>, minor: number): void {
  const fields = ['block_migration', ...(minor < 25 ? ['disk_over_commit'] : []), 'host'];
  for (const key of fields)
    if (!(key in body)) throw invalid('os-migrateLive', body, `'${key}' is a required property`);
  for (const key of Object.keys(body))
    if (!fields.includes(key) && !(takesForce(minor) && key === 'force'))
      throw invalid('os-migrateLive', body, `Additional properties are not allowed ('${key}' was unexpected)`);
}
