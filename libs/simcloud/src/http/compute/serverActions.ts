import type { Cloud } from '../../cloud.ts';
import { NovaRefusal } from '../../errors.ts';
import { conflict } from '../../migrations.ts';
import { object, parseJson, python, type Reply, text } from '../exchange.ts';
import { caller, empty, findServer, ID, LIES, type Route, reply, route, type Scope, TRUTHS } from './nova.ts';

/** POST /servers/{id}/action: moves, their end, locks, power. */
export function serverActionRoutes(cloud: Cloud): readonly Route[] {
  return [
    route('POST', `/servers/${ID}/action`, 'os-migrate-server:migrate_live:host', (scope, [uuid = '']) =>
      act(cloud, scope, uuid),
    ),
  ];
}

function act(cloud: Cloud, scope: Scope, uuid: string): Reply {
  const { call, minor } = scope;
  const body = object(parseJson(call.body));
  const action = body === undefined ? undefined : Object.keys(body)[0];
  if (body === undefined || action === undefined) throw new NovaRefusal(400, 'Malformed request body');
  const given = body[action];
  switch (action) {
    case 'os-migrateLive': {
      const request = liveMigrationBody(given, minor);
      cloud.liveMigrate(call.nowMs, caller(scope), uuid, request);
      return empty(scope, 202);
    }
    case 'migrate': {
      const wanted = minor >= 56 ? (text(object(given)?.host) ?? null) : null;
      cloud.coldMigrate(call.nowMs, caller(scope), uuid, wanted);
      return empty(scope, 202);
    }
    case 'resize': {
      const wanted = object(given);
      const extra = Object.keys(wanted ?? {}).find((key) => key !== 'flavorRef' && key !== 'OS-DCF:diskConfig');
      if (extra !== undefined)
        throw new NovaRefusal(
          400,
          `Invalid input for field/attribute resize. Value: ${python(given)}. ` +
            `Additional properties are not allowed ('${extra}' was unexpected)`,
        );
      cloud.resize(call.nowMs, caller(scope), uuid, text(wanted?.flavorRef) ?? '');
      return empty(scope, 202);
    }
    case 'reboot':
      if (text(object(given)?.type) !== 'HARD') throw new NovaRefusal(400, 'The simulated cloud reboots HARD only.');
      cloud.hardReboot(call.nowMs, uuid);
      return empty(scope, 202);
    case 'confirmResize':
    case 'revertResize':
      cloud.endResize(call.nowMs, caller(scope), uuid, action);
      return empty(scope, action === 'confirmResize' ? 204 : 202);
    case 'lock': {
      findServer(cloud, uuid);
      const reason = minor >= 73 ? (text(object(given)?.locked_reason) ?? null) : null;
      cloud.setServer(call.nowMs, uuid, { locked: true, lockedReason: reason });
      return empty(scope, 202);
    }
    case 'unlock':
      findServer(cloud, uuid);
      cloud.setServer(call.nowMs, uuid, { locked: false });
      return empty(scope, 202);
    case 'rescue':
    case 'unrescue':
    case 'shelve':
    case 'unshelve':
      cloud.beginStateAction(call.nowMs, caller(scope), uuid, action);
      return action === 'rescue' ? reply(scope, 200, { adminPass: 'unused' }) : empty(scope, 202);
    case 'os-stop':
    case 'os-start':
    case 'pause':
    case 'unpause':
      setPower(cloud, call.nowMs, uuid, action);
      return empty(scope, 202);
    default:
      throw new NovaRefusal(400, `There is no such action: ${action}`);
  }
}

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
  // Nova looks at the host before the state, but not to pause.
  if (host === '' && name !== action) throw new NovaRefusal(409, `Instance ${uuid} is not ready`);
  if (vmState !== from) throw conflict(name, uuid, 'vm_state', vmState);
  if (taskState !== null) throw conflict(name, uuid, 'task_state', taskState);
  cloud.setServer(nowMs, uuid, { vmState: to });
}

/** The body of os-migrateLive per microversion (nova/api/openstack/compute/schemas/migrate_server.py). */
function liveMigrationBody(given: unknown, minor: number): { host: string | null; force: boolean; async: boolean } {
  const invalid = (field: string, value: unknown, why: string): NovaRefusal => {
    const shown = typeof value === 'string' ? value : python(value);
    return new NovaRefusal(400, `Invalid input for field/attribute ${field}. Value: ${shown}. ${why}`);
  };
  const body = object(given);
  if (body === undefined) throw invalid('os-migrateLive', given, `${python(given)} is not of type 'object'`);
  const fields = ['block_migration', 'host'];
  if (minor < 25) fields.splice(1, 0, 'disk_over_commit');
  const booleans: unknown[] = [...TRUTHS, ...LIES];
  // In the order of Nova's validator: wrong values, missing fields, unknown fields.
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
  const takesForce = minor >= 30 && minor < 68;
  if (takesForce) oneOf('force', booleans);
  for (const key of fields)
    if (!(key in body)) throw invalid('os-migrateLive', given, `'${key}' is a required property`);
  for (const key of Object.keys(body))
    if (!fields.includes(key) && !(takesForce && key === 'force'))
      throw invalid('os-migrateLive', given, `Additional properties are not allowed ('${key}' was unexpected)`);
  const forced = takesForce && TRUTHS.includes(body.force as string | boolean);
  if (forced && host === null) throw new NovaRefusal(400, "Can't force to a non-provided destination");
  // Before 2.30 a named host by-passes the scheduler.
  return { host, force: forced || (minor < 30 && host !== null), async: minor >= 34 };
}
