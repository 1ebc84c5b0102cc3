import type { Cloud } from '../../cloud.ts';
import { cellUnreached, NovaRefusal } from '../../errors.ts';
import { bodyJson, object, type Reply, textIn } from '../exchange.ts';
import { serviceView } from '../views.ts';
import { ID, novaReply, type Route, route, type Scope, truthy } from './nova.ts';

/** os-services. */
export function serviceRoutes(cloud: Cloud): readonly Route[] {
  return [
    route('GET /os-services', 'os-services:list', (scope) => listServices(cloud, scope)),
    route(`PUT /os-services/${ID}`, 'os-services:update', (scope, [uuid = '']) => updateService(cloud, scope, uuid), {
      since: 53,
    }),
  ];
}

function listServices(cloud: Cloud, scope: Scope): Reply {
  const { call, minor } = scope;
  const binary = call.query.get('binary');
  const host = call.query.get('host');
  const services: unknown[] = [...cloud.hosts.values()]
    .filter((each) => host === null || each.name === host)
    .filter((each) => minor >= 69 || !cloud.unreachable.has(each.cell))
    .map((each) => serviceView(cloud, each, minor, call.nowMs));
  const others = (['nova-scheduler', 'nova-conductor'] as const).map((name, index) => ({
    binary: name,
    host: 'controller',
    id: minor >= 53 ? `00000000-0000-4000-9000-00000000000${index}` : index + 1,
    zone: 'internal',
    status: 'enabled',
    state: 'up',
    updated_at: `${new Date(Math.floor(call.nowMs / 10_000) * 10_000).toISOString().slice(0, 19)}.000000`,
    disabled_reason: null,
    ...(minor >= 11 ? { forced_down: false } : {}),
  }));
  if (binary === null || binary !== 'nova-compute')
    services.push(
      ...others.filter((each) => (binary === null || each.binary === binary) && (host === null || each.host === host)),
    );
  const list =
    binary === null || binary === 'nova-compute'
      ? services
      : services.filter((each) => object(each)?.binary === binary);
  return novaReply(scope, 200, { services: list });
}

function updateService(cloud: Cloud, scope: Scope, uuid: string): Reply {
  const { call, minor } = scope;
  const host = [...cloud.hosts.values()].find((each) => each.serviceUuid === uuid);
  const body = object(bodyJson(call.body));
  if (body === undefined) throw new NovaRefusal(400, 'Malformed request body');
  if (!/^[0-9a-f-]{36}$/i.test(uuid)) throw new NovaRefusal(400, `Invalid uuid ${uuid}`);
  if (body.status === undefined && body.forced_down === undefined)
    throw new NovaRefusal(400, "No updates were requested. Fields 'status' or 'forced_down' should be specified.");
  if (cloud.unreachable.size > 0 && (host === undefined || cloud.unreachable.has(host.cell))) throw cellUnreached();
  if (host === undefined) throw new NovaRefusal(404, `Service ${uuid} could not be found.`);
  const status = textIn(body.status);
  const reason = textIn(body.disabled_reason) ?? null;
  if (status === 'enabled' && reason !== null)
    throw new NovaRefusal(400, "Specifying 'disabled_reason' with status 'enabled' is invalid.");
  const down = body.forced_down;
  cloud.setHost(call.nowMs, host.name, {
    disabled: status === undefined ? undefined : status === 'disabled',
    disabledReason: status === 'disabled' ? reason : undefined,
    forcedDown: down === undefined ? undefined : truthy(String(down)),
  });
  return novaReply(scope, 200, { service: serviceView(cloud, host, minor, call.nowMs) });
}
