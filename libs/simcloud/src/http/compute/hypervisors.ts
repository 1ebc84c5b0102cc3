import type { Cloud } from '../../cloud.ts';
import { cellUnreached, NovaRefusal } from '../../errors.ts';
import type { Host, Server } from '../../model.ts';
import type { Reply } from '../exchange.ts';
import { hypervisorView } from '../views.ts';
import { ID, nextPage, novaReply, pageSize, type Route, route, type Scope, truthy } from './nova.ts';

/** os-hypervisors. */
export function hypervisorRoutes(cloud: Cloud): readonly Route[] {
  return [
    route('GET /os-hypervisors', 'os-hypervisors:list', (scope) => listHypervisors(cloud, scope, false)),
    route('GET /os-hypervisors/detail', 'os-hypervisors:list-detail', (scope) => listHypervisors(cloud, scope, true)),
    route(`GET /os-hypervisors/${ID}`, 'os-hypervisors:show', (scope, [hid = '']) => {
      const host = [...cloud.hosts.values()].find((each) =>
        scope.minor >= 53 ? each.nodeUuid === hid : String(each.nodeId) === hid,
      );
      if (host === undefined || cloud.unreachable.has(host.cell)) {
        if (cloud.unreachable.size > 0) throw cellUnreached();
        if (scope.minor >= 53 && !/^[0-9a-f-]{36}$/i.test(hid)) throw new NovaRefusal(400, `Invalid uuid ${hid}`);
        throw new NovaRefusal(404, `Hypervisor with ID '${hid}' could not be found.`);
      }
      const withServers = truthy(scope.call.query.get('with_servers'));
      const servers = serversOn(cloud, host.name);
      return novaReply(scope, 200, {
        hypervisor: hypervisorView(cloud, host, scope.minor, { detail: true, servers, withServers }),
      });
    }),
  ];
}

function listHypervisors(cloud: Cloud, scope: Scope, detail: boolean): Reply {
  const { call, minor } = scope;
  const { query } = call;
  const hosts = [...cloud.hosts.values()];
  const withServers = minor >= 53 && truthy(query.get('with_servers'));
  const shown = withServers || (detail && minor < 88) ? cloud.servers.values() : [];
  const byHost = Map.groupBy(shown, ({ host }) => host);
  const view = (host: Host): unknown =>
    hypervisorView(cloud, host, minor, { detail, servers: byHost.get(host.name) ?? [], withServers });
  const pattern = minor >= 53 ? query.get('hypervisor_hostname_pattern') : null;
  if (pattern !== null) return novaReply(scope, 200, { hypervisors: matching(cloud, pattern, query).map(view) });
  if (minor < 33) return novaReply(scope, 200, { hypervisors: askCells(cloud).map(view) });
  const limit = pageSize(cloud, query) ?? cloud.scenario.maxLimit;
  const idOf = (host: Host): string => (minor >= 53 ? host.nodeUuid : String(host.nodeId));
  const marker = query.get('marker');
  const before = marker === null ? -1 : hosts.findIndex((host) => idOf(host) === marker);
  if (marker !== null && before < 0) throw new NovaRefusal(400, `marker [${marker}] not found`);
  const page = askCells(cloud, before + 1 + limit).slice(before + 1);
  const links = nextPage(cloud, call, detail ? 'os-hypervisors/detail' : 'os-hypervisors', {
    count: page.length,
    last: page.map(idOf).at(-1),
  });
  return novaReply(scope, 200, {
    hypervisors: page.map(view),
    ...(links === null ? {} : { hypervisors_links: links }),
  });
}

/** Nova asks one cell after the other, until it has enough hosts (nova/compute/api.py compute_node_get_all). */
function askCells({ hosts, unreachable }: Cloud, upTo = Number.POSITIVE_INFINITY): readonly Host[] {
  const asked = [...hosts.values()].slice(0, upTo);
  if (unreachable.size > 0 && (asked.length < upTo || asked.some(({ cell }) => unreachable.has(cell))))
    throw cellUnreached();
  return asked;
}

function matching(cloud: Cloud, pattern: string, query: URLSearchParams): Host[] {
  if (query.has('limit') || query.has('marker'))
    throw new NovaRefusal(
      400,
      'The server could not comply with the request since it is either malformed or otherwise incorrect.',
    );
  const found = askCells(cloud).filter((host) => host.hypervisorHostname.includes(pattern));
  if (found.length === 0) throw new NovaRefusal(404, `No hypervisor matching '${pattern}' could be found.`);
  return found;
}

function serversOn(cloud: Cloud, host: string): Server[] {
  return [...cloud.servers.values()].filter((server) => server.host === host);
}
