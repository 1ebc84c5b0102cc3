import type { Cloud } from '../../cloud.ts';
import { NovaRefusal } from '../../errors.ts';
import type { Server } from '../../model.ts';
import { findServer } from '../../state.ts';
import type { Reply } from '../exchange.ts';
import { actionView, eventViews } from '../views.ts';
import { ID, nextPage, novaReply, pageSize, type Route, route, type Scope } from './nova.ts';

/** os-instance-actions: the requests about a server, and the outcome of each. */
export function instanceActionRoutes(cloud: Cloud): readonly Route[] {
  return [
    route(`GET /servers/${ID}/os-instance-actions`, 'os-instance-actions:list', (scope, [uuid = '']) =>
      listActions(cloud, scope, uuid),
    ),
    route(
      `GET /servers/${ID}/os-instance-actions/${ID}`,
      'os-instance-actions:show',
      (scope, [uuid = '', requestId = '']) => {
        const server = anyServer(cloud, uuid, scope.minor);
        const action = cloud.actions.get(uuid)?.find((each) => each.requestId === requestId);
        if (action === undefined) throw new NovaRefusal(404, `Action ${requestId} not found`);
        const view = actionView(action, scope.minor);
        view.events = eventViews(action, server.projectId, scope.minor, cloud.cellOf(server));
        return novaReply(scope, 200, { instanceAction: view });
      },
    ),
  ];
}

function listActions(cloud: Cloud, scope: Scope, uuid: string): Reply {
  anyServer(cloud, uuid, scope.minor);
  const { query } = scope.call;
  const list = [...(cloud.actions.get(uuid) ?? [])].reverse();
  if (scope.minor < 58)
    return novaReply(scope, 200, { instanceActions: list.map((each) => actionView(each, scope.minor)) });
  const limit = pageSize(cloud, query) ?? cloud.scenario.maxLimit;
  const marker = query.get('marker');
  let from = 0;
  if (marker !== null) {
    from = list.findIndex((each) => each.requestId === marker) + 1;
    if (from === 0) throw new NovaRefusal(400, `Marker ${marker} could not be found.`);
  }
  const page = list.slice(from, from + limit);
  const links = nextPage(cloud, scope.call, `servers/${uuid}/os-instance-actions`, {
    count: page.length,
    last: page.at(-1)?.requestId,
  });
  return novaReply(scope, 200, {
    instanceActions: page.map((each) => actionView(each, scope.minor)),
    ...(links === null ? {} : { links }),
  });
}

/** Actions of a deleted server can be read from 2.21 on. */
function anyServer(cloud: Cloud, uuid: string, minor: number): Server {
  const gone = minor >= 21 ? cloud.deleted.get(uuid) : undefined;
  return gone ?? findServer(cloud, uuid);
}
