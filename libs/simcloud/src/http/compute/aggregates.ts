import type { Cloud } from '../../cloud.ts';
import { NovaRefusal } from '../../errors.ts';
import { bodyJson, object, type Reply, textIn } from '../exchange.ts';
import { aggregateView } from '../views.ts';
import { empty, ID, novaReply, type Route, route, type Scope, strings } from './nova.ts';

/** os-aggregates. */
export function aggregateRoutes(cloud: Cloud): readonly Route[] {
  return [
    route('GET /os-aggregates', 'os-aggregates:index', (scope) =>
      novaReply(scope, 200, {
        aggregates: [...cloud.aggregates.values()].map((each) => aggregateView(each, scope.minor)),
      }),
    ),
    route('POST /os-aggregates', 'os-aggregates:create', (scope) => createAggregate(cloud, scope)),
    route(`GET /os-aggregates/${ID}`, 'os-aggregates:show', (scope, [aid = '']) =>
      novaReply(scope, 200, { aggregate: aggregateView(findAggregate(cloud, aid), scope.minor) }),
    ),
    route(`DELETE /os-aggregates/${ID}`, 'os-aggregates:delete', (scope, [aid = '']) => {
      const aggregate = findAggregate(cloud, aid);
      if (aggregate.hosts.length > 0)
        throw new NovaRefusal(
          400,
          `Cannot perform action 'delete' on aggregate ${aid}. Reason: Host aggregate is not empty.`,
        );
      cloud.removeAggregate(aid);
      return empty(scope, 200);
    }),
    route(`POST /os-aggregates/${ID}/action`, 'os-aggregates:add_host', (scope, [aid = '']) =>
      aggregateAction(cloud, scope, aid),
    ),
  ];
}

function findAggregate(cloud: Cloud, id: string): ReturnType<Cloud['aggregate']> {
  const aggregate = cloud.aggregates.get(Number(id));
  if (aggregate === undefined) throw new NovaRefusal(404, `Aggregate ${id} could not be found.`);
  return aggregate;
}

function createAggregate(cloud: Cloud, scope: Scope): Reply {
  const wanted = object(object(bodyJson(scope.call.body))?.aggregate);
  const name = textIn(wanted?.name);
  if (name === undefined) throw new NovaRefusal(400, 'Malformed request body');
  for (const each of cloud.aggregates.values())
    if (each.name === name) throw new NovaRefusal(409, `Aggregate ${name} already exists.`);
  cloud.advance(scope.call.nowMs);
  const zone = textIn(wanted?.availability_zone) ?? null;
  const aggregate = cloud.addAggregate({ name, availabilityZone: zone });
  const { hosts: _, metadata: __, ...view } = aggregateView(aggregate, scope.minor) as Record<string, unknown>;
  return novaReply(scope, 200, { aggregate: view });
}

function aggregateAction(cloud: Cloud, scope: Scope, id: string): Reply {
  const aggregate = findAggregate(cloud, id);
  const body = object(bodyJson(scope.call.body)) ?? {};
  const action = Object.keys(body)[0] ?? '';
  const given = object(body[action]);
  cloud.advance(scope.call.nowMs);
  const host = textIn(given?.host) ?? '';
  if (action === 'add_host') {
    if (!cloud.hosts.has(host)) throw new NovaRefusal(404, `Compute host ${host} could not be found.`);
    if (aggregate.hosts.includes(host)) throw new NovaRefusal(409, `Aggregate ${id} already has host ${host}.`);
    cloud.setAggregate(id, { hosts: [...aggregate.hosts, host] });
  } else if (action === 'remove_host') {
    if (!aggregate.hosts.includes(host)) throw new NovaRefusal(404, `Cannot remove host ${host} in aggregate ${id}`);
    cloud.setAggregate(id, { hosts: aggregate.hosts.filter((each) => each !== host) });
  } else if (action === 'set_metadata') {
    const changes = object(given?.metadata) ?? {};
    const metadata: Record<string, string> = { ...aggregate.metadata, ...strings(changes) };
    for (const [key, value] of Object.entries(changes)) if (value === null) delete metadata[key];
    cloud.setAggregate(id, { metadata });
  } else throw new NovaRefusal(400, `There is no such action: ${action}`);
  return novaReply(scope, 200, { aggregate: aggregateView(findAggregate(cloud, id), scope.minor) });
}
