import type { Cloud } from '../../cloud.ts';
import { ActError, NovaRefusal, unexpected } from '../../errors.ts';
import { type Call, json, type Reply } from '../exchange.ts';
import { denied, type Keystone } from '../identity.ts';
import { aggregateRoutes } from './aggregates.ts';
import { flavorRoutes } from './flavors.ts';
import { hypervisorRoutes } from './hypervisors.ts';
import { instanceActionRoutes } from './instanceActions.ts';
import { migrationRoutes } from './migrations.ts';
import { type Route, refusalReply, type Scope, versionHeaders } from './nova.ts';
import { serverActionRoutes } from './serverActions.ts';
import { serverGroupRoutes } from './serverGroups.ts';
import { serverRoutes } from './servers.ts';
import { serviceRoutes } from './services.ts';

const NOT_FOUND = 'The resource could not be found.';

/** Nova's API: version discovery, microversions, and the calls that live migration needs. */
export class Compute {
  readonly #cloud: Cloud;
  readonly #identity: Keystone;
  readonly #keystone: () => string;
  readonly #max: number;
  readonly #routes: readonly Route[];

  constructor(cloud: Cloud, identity: Keystone, keystone: () => string) {
    this.#cloud = cloud;
    this.#identity = identity;
    this.#keystone = keystone;
    this.#max = Number(cloud.scenario.compute.split('.')[1]);
    this.#routes = [
      ...serverRoutes(cloud),
      ...serverActionRoutes(cloud),
      ...instanceActionRoutes(cloud),
      ...migrationRoutes(cloud),
      ...aggregateRoutes(cloud),
      ...serviceRoutes(cloud),
      ...hypervisorRoutes(cloud),
      ...serverGroupRoutes(cloud),
      ...flavorRoutes(cloud),
    ];
  }

  answer(call: Call): Reply {
    const { path } = call;
    if (path === '' || path === '/') return this.#versions(call);
    if (!path.startsWith('/v2.1')) return unknownPath(call);
    const inner = path.slice('/v2.1'.length).replace(/\/+$/, '');
    if (inner === '') return json(200, { version: this.#version(call, true) }, versionHeaders(call, '2.1'));
    const token = this.#identity.check(call.headers['x-auth-token'], call.nowMs);
    if (token === undefined) return denied(call, this.#keystone());
    const minor = this.#minorOf(call);
    return typeof minor === 'number' ? this.#dispatch({ call, minor, token }, inner) : minor;
  }

  /** The minor version that the call asks for, or Nova's refusal of it. */
  #minorOf(call: Call): number | Reply {
    const asked = requested(call);
    if (typeof asked === 'string') {
      const message = `API Version String ${asked} is of invalid format. Must be of format MajorNum.MinorNum.`;
      return refusalReply(call, null, 400, message);
    }
    const [major, wanted] = asked;
    const minor = wanted === Number.POSITIVE_INFINITY ? this.#max : wanted;
    if (major === 2 && minor >= 1 && minor <= this.#max) return minor;
    const message = `Version ${major}.${minor} is not supported by the API. Minimum is 2.1 and maximum is 2.${this.#max}.`;
    return json(
      406,
      { computeFault: { code: 406, message } },
      { ...versionHeaders(call, `${major}.${minor}`), 'Content-Type': 'application/json; charset=UTF-8' },
    );
  }

  #dispatch(scope: Scope, inner: string): Reply {
    const { call, minor, token } = scope;
    const withoutProject = inner.replace(/^\/[0-9a-f]{32}(?=\/)/, '');
    let known = false;
    for (const route of this.#routes) {
      const found = route.pattern.exec(withoutProject);
      if (found === null) continue;
      known = true;
      if (route.method !== call.method || minor < route.since || minor > route.until) continue;
      const { roles } = token.user;
      const allowed = roles.includes('admin') || (route.method === 'GET' && roles.includes('kronos_reader'));
      if (!allowed)
        return refusalReply(call, minor, 403, `Policy doesn't allow os_compute_api:${route.policy} to be performed.`);
      try {
        this.#checkCell(route, withoutProject, minor);
        return route.handler(scope, found.slice(1));
      } catch (error) {
        if (error instanceof NovaRefusal) return refusalReply(call, minor, error.status, error.message);
        if (error instanceof ActError) return refusalReply(call, minor, 400, error.message);
        throw error;
      }
    }
    return known ? refusalReply(call, minor, 404, NOT_FOUND) : unknownPath(call);
  }

  /** Of a server whose cell is not reached, Nova shows what its API knows (from 2.69 on), and does nothing. */
  #checkCell({ method }: Route, path: string, minor: number): void {
    const [, id = '', part = ''] = /^\/servers\/([^/]+)(.*)$/.exec(path) ?? [];
    const server = this.#cloud.servers.get(id);
    if (server === undefined || !this.#cloud.isUnreachable(server) || (method === 'GET' && part === '' && minor >= 69))
      return;
    throw unexpected('nova.exception.NovaException');
  }

  #versions(call: Call): Reply {
    const old = {
      id: 'v2.0',
      status: 'SUPPORTED',
      version: '',
      min_version: '',
      updated: '2011-01-21T11:33:21Z',
      links: [{ rel: 'self', href: `${call.base}/v2/` }],
    };
    return json(200, { versions: [old, this.#version(call, false)] });
  }

  #version(call: Call, whole: boolean): unknown {
    const self = { rel: 'self', href: `${call.base}/v2.1/` };
    return {
      id: 'v2.1',
      status: 'CURRENT',
      version: `2.${this.#max}`,
      min_version: '2.1',
      updated: '2013-07-23T11:33:21Z',
      links: whole ? [self, { rel: 'describedby', type: 'text/html', href: 'http://docs.openstack.org/' }] : [self],
      ...(whole
        ? { 'media-types': [{ base: 'application/json', type: 'application/vnd.openstack.compute+json;version=2.1' }] }
        : {}),
    };
  }
}

/** [major, minor] as asked; the text itself when it is malformed. No header means 2.1. */
function requested(call: Call): readonly [number, number] | string {
  const modern = call.headers['openstack-api-version'];
  const named = modern
    ?.split(',')
    .map((each) => each.trim().split(/\s+/))
    .find(([service]) => service === 'compute')?.[1];
  const given = named ?? call.headers['x-openstack-nova-api-version'];
  if (given === undefined) return [2, 1];
  if (given === 'latest') return [2, Number.POSITIVE_INFINITY];
  const found = /^(\d+)\.(\d+)$/.exec(given);
  return found === null ? given : [Number(found[1]), Number(found[2])];
}

function unknownPath(call: Call): Reply {
  return {
    status: 404,
    headers: { 'Content-Type': 'text/html; charset=UTF-8', 'X-Openstack-Request-Id': call.requestId },
    body:
      '<html>\n <head>\n  <title>404 Not Found</title>\n </head>\n <body>\n  <h1>404 Not Found</h1>\n' +
      '  The resource could not be found.<br /><br />\n\n\n\n </body>\n</html>',
  };
}
