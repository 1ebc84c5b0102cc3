import type { Cloud } from '../../cloud.ts';
import { cellUnreached, NovaRefusal } from '../../errors.ts';
import type { Group } from '../../model.ts';
import { bodyJson, object, type Reply, textIn } from '../exchange.ts';
import { groupView } from '../views.ts';
import { empty, ID, novaReply, type Route, route, type Scope } from './nova.ts';

/** os-server-groups. */
export function serverGroupRoutes(cloud: Cloud): readonly Route[] {
  return [
    route('GET /os-server-groups', 'os-server-groups:index', (scope) => listGroups(cloud, scope)),
    route('POST /os-server-groups', 'os-server-groups:create', (scope) => createGroup(cloud, scope)),
    route(`GET /os-server-groups/${ID}`, 'os-server-groups:show', (scope, [gid = '']) => {
      const group = cloud.groups.get(gid);
      if (group === undefined) throw new NovaRefusal(404, `Instance group ${gid} could not be found.`);
      return novaReply(scope, 200, { server_group: shown(cloud, group, scope.minor) });
    }),
    route(`DELETE /os-server-groups/${ID}`, 'os-server-groups:delete', (scope, [gid = '']) => {
      if (!cloud.groups.has(gid)) throw new NovaRefusal(404, `Instance group ${gid} could not be found.`);
      cloud.removeGroup(gid);
      return empty(scope, 204);
    }),
  ];
}

function listGroups(cloud: Cloud, scope: Scope): Reply {
  const { call, minor } = scope;
  const { query } = call;
  if (minor >= 75)
    for (const key of query.keys())
      if (!['all_projects', 'limit', 'offset'].includes(key))
        throw new NovaRefusal(400, `Additional properties are not allowed ('${key}' was unexpected)`);
  const project = scope.token.projectId;
  const list = [...cloud.groups.values()].filter((each) => query.has('all_projects') || each.projectId === project);
  const max = cloud.scenario.maxLimit;
  const number = (key: string): number => {
    const given = query.get(key);
    if (given !== null && !/^[0-9]*$/.test(given))
      throw new NovaRefusal(
        400,
        `Invalid input for query parameters ${key}. Value: ${given}. '${given}' does not match '^[0-9]*$'`,
      );
    return Number(given ?? 0);
  };
  const offset = number('offset');
  const limit = Math.min(max, number('limit') || max);
  return novaReply(scope, 200, {
    server_groups: list.slice(offset, offset + limit).map((each) => shown(cloud, each, minor)),
  });
}

/** Nova looks up in its cell whether each member still exists (_get_not_deleted). */
function shown(cloud: Cloud, group: Group, minor: number): unknown {
  for (const member of group.members) {
    const server = cloud.servers.get(member);
    if (server !== undefined && cloud.isUnreachable(server)) throw cellUnreached();
  }
  return groupView(group, minor);
}

function createGroup(cloud: Cloud, scope: Scope): Reply {
  const wanted = object(object(bodyJson(scope.call.body))?.server_group) ?? {};
  const { policies } = wanted;
  const policy = scope.minor >= 64 ? wanted.policy : Array.isArray(policies) ? policies[0] : undefined;
  const known = ['affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity'] as const;
  const found = known.find((each) => each === policy);
  const name = textIn(wanted.name);
  if (found === undefined || name === undefined) throw new NovaRefusal(400, 'Malformed request body');
  const most = object(wanted.rules)?.max_server_per_host;
  if (most !== undefined && found !== 'anti-affinity')
    throw new NovaRefusal(400, 'Only anti-affinity policy supports rules.');
  const project = [...cloud.projects.values()].find((each) => each.id === scope.token.projectId);
  const group = cloud.addGroup({
    name,
    policy: found,
    maxServerPerHost: most === undefined ? null : Number(most),
    project: project?.name ?? 'admin',
  });
  return novaReply(scope, 200, { server_group: groupView(group, scope.minor) });
}
