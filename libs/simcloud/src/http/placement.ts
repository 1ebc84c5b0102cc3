import { type Cloud, capacity } from '../cloud.ts';
import type { Host, Resources } from '../model.ts';
import type { Amount } from '../placement.ts';
import { type Call, json, type Reply } from './exchange.ts';
import { denied, type Keystone } from './identity.ts';

const CLASSES: Readonly<Record<string, Amount | 'pcpus'>> = {
  VCPU: 'vcpus',
  PCPU: 'pcpus',
  MEMORY_MB: 'memoryMb',
  DISK_GB: 'diskGb',
};
/** Amount of a class; PCPU is neither reserved nor overcommitted. */
const amountOf = (resources: Resources, key: Amount | 'pcpus'): number => resources[key] ?? 0;
const capacityOf = (host: Host, key: Amount | 'pcpus'): number =>
  key === 'pcpus' ? amountOf(host.total, key) : capacity(host, key);
const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
};
const BAD = 'The server could not comply with the request since it is either malformed or otherwise incorrect.';
const MISSING = 'The resource could not be found.';

class Refusal extends Error {
  readonly status: number;
  readonly errorCode: string;
  constructor(status: number, message: string, errorCode = 'placement.undefined_code') {
    super(message);
    this.status = status;
    this.errorCode = errorCode;
  }
}

/** Placement's API: providers, inventories, usages, traits, allocations, candidates. All that it changes is to delete allocations. */
export class PlacementApi {
  readonly #cloud: Cloud;
  readonly #identity: Keystone;
  readonly #keystone: () => string;
  readonly #max: number;

  constructor(cloud: Cloud, identity: Keystone, keystone: () => string) {
    this.#cloud = cloud;
    this.#identity = identity;
    this.#keystone = keystone;
    this.#max = Number(cloud.scenario.placement.split('.')[1]);
  }

  answer(call: Call): Reply {
    const { path } = call;
    if (path === '' || path === '/')
      return json(
        200,
        {
          versions: [
            {
              id: 'v1.0',
              max_version: `1.${this.#max}`,
              min_version: '1.0',
              status: 'CURRENT',
              links: [{ rel: 'self', href: '' }],
            },
          ],
        },
        headers(call, 0),
      );
    if (this.#identity.check(call.headers['x-auth-token'], call.nowMs) === undefined)
      return denied(call, this.#keystone());
    const minor = this.#minorOf(call);
    if (typeof minor !== 'number') return minor;
    try {
      return this.#route(call, minor);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const lead = error.status === 404 ? MISSING : BAD;
      const more = minor >= 23 ? { code: error.errorCode } : {};
      return failure(call, minor, error.status, { detail: `${lead}\n\n ${error.message}  `, ...more });
    }
  }

  /** The minor version that the call asks for, or Placement's refusal of it. */
  #minorOf(call: Call): number | Reply {
    const given = call.headers['openstack-api-version']
      ?.split(',')
      .map((each) => each.trim().split(/\s+/))
      .find(([service]) => service === 'placement')?.[1];
    if (given === undefined) return 0;
    if (given === 'latest') return this.#max;
    const found = /^(\d+)\.(\d+)$/.exec(given);
    if (found === null) {
      const detail = `${BAD}\n\n Invalid microversion: invalid version string: ${given}  `;
      return failure(call, null, 400, { detail });
    }
    const minor = Number(found[2]);
    if (Number(found[1]) === 1 && minor <= this.#max) return minor;
    return failure(call, null, 406, {
      detail:
        'The resource could not be generated that was acceptable to your browser (content of type application/json. ' +
        `\n\n Invalid microversion: Unacceptable version header: ${given}`,
      max_version: `1.${this.#max}`,
      min_version: '1.0',
    });
  }

  #route(call: Call, minor: number): Reply {
    const parts = call.path.split('/').filter((part) => part !== '');
    const [collection, id, what] = parts;
    if (call.method === 'DELETE' && collection === 'allocations' && id !== undefined) {
      if (!this.#cloud.dropAllocation(call.nowMs, id)) throw new Refusal(404, `No allocations for consumer '${id}'`);
      return { status: 204, headers: headers(call, minor), body: '' };
    }
    if (call.method !== 'GET') throw new Refusal(405, `The simulated Placement does not know ${call.method} here.`);
    if (collection === 'resource_providers' && id === undefined) return this.#providers(call, minor);
    if (collection === 'resource_providers' && id !== undefined) return this.#provider(call, minor, id, what);
    if (collection === 'allocations' && id !== undefined) return this.#consumer(call, minor, id);
    if (collection === 'allocation_candidates' && id === undefined && minor >= 10) return this.#candidates(call, minor);
    throw new Refusal(404, '');
  }

  #providers(call: Call, minor: number): Reply {
    const { query } = call;
    let hosts = [...this.#cloud.hosts.values()];
    const name = query.get('name');
    if (name !== null) hosts = hosts.filter((host) => host.hypervisorHostname === name);
    const uuid = query.get('uuid');
    if (uuid !== null) hosts = hosts.filter((host) => host.nodeUuid === uuid);
    const tree = query.get('in_tree');
    if (tree !== null && minor >= 14) hosts = hosts.filter((host) => host.nodeUuid === tree);
    for (const member of query.getAll('member_of')) hosts = hosts.filter((host) => this.#memberOf(host, member));
    for (const required of query.getAll('required')) hosts = hosts.filter((host) => this.#hasTraits(host, required));
    const resources = query.get('resources');
    if (resources !== null && minor >= 4) {
      const wanted = amounts(resources);
      hosts = hosts.filter((host) => this.#cloud.fits(host, wanted));
    }
    return json(200, { resource_providers: hosts.map((host) => providerView(host, minor)) }, headers(call, minor));
  }

  #host(uuid: string, twice: boolean): Host {
    const host = this.#cloud.hostsByNode.get(uuid);
    if (host !== undefined) return host;
    const why = `No resource provider with uuid ${uuid} found`;
    throw new Refusal(404, twice ? `${why} : ${why}` : why);
  }

  #provider(call: Call, minor: number, uuid: string, what: string | undefined): Reply {
    const host = this.#host(uuid, what === 'inventories');
    const generation = { resource_provider_generation: host.generation };
    switch (what) {
      case undefined:
        return json(200, providerView(host, minor), headers(call, minor));
      case 'inventories':
        return json(200, { ...generation, inventories: inventory(host) }, headers(call, minor));
      case 'usages':
        return json(200, { ...generation, usages: classes(host.used) }, headers(call, minor));
      case 'traits':
        if (minor < 6) break;
        return json(200, { traits: this.#cloud.traitsOf(host), ...generation }, headers(call, minor));
      case 'aggregates': {
        if (minor < 1) break;
        const aggregates = this.#aggregatesOf(host);
        return json(200, minor >= 19 ? { aggregates, ...generation } : { aggregates }, headers(call, minor));
      }
      case 'allocations': {
        const allocations: Record<string, unknown> = {};
        for (const [consumer, resources] of host.consumers)
          allocations[consumer] = {
            resources: taken(resources),
            ...(minor >= 28 ? { consumer_generation: 1 } : {}),
          };
        return json(200, { allocations, ...generation }, headers(call, minor));
      }
    }
    throw new Refusal(404, '');
  }

  #consumer(call: Call, minor: number, consumer: string): Reply {
    const found = this.#cloud.allocations.get(consumer);
    const host = found === undefined ? undefined : this.#cloud.hosts.get(found.host);
    if (found === undefined || host === undefined) return json(200, { allocations: {} }, headers(call, minor));
    const admin = this.#cloud.admin;
    return json(
      200,
      {
        allocations: { [host.nodeUuid]: { resources: taken(found.resources), generation: host.generation } },
        ...(minor >= 12 ? { project_id: admin.projectId, user_id: admin.id } : {}),
        ...(minor >= 28 ? { consumer_generation: 1 } : {}),
      },
      headers(call, minor),
    );
  }

  #candidates(call: Call, minor: number): Reply {
    const { query } = call;
    const { wanted, limit, tree } = candidatesAsked(query, minor);
    const chosen: Host[] = [];
    for (const host of this.#cloud.hosts.values()) {
      if (chosen.length >= limit) break;
      if (tree !== null && host.nodeUuid !== tree) continue;
      if (!query.getAll('member_of').every((member) => this.#memberOf(host, member))) continue;
      if (!query.getAll('required').every((required) => this.#hasTraits(host, required))) continue;
      if (this.#cloud.fits(host, wanted)) chosen.push(host);
    }
    const asked = taken(wanted);
    const requests = chosen.map((host) => {
      if (minor < 12) return { allocations: [{ resource_provider: { uuid: host.nodeUuid }, resources: asked }] };
      return {
        allocations: { [host.nodeUuid]: { resources: asked } },
        ...(minor >= 34 ? { mappings: { '': [host.nodeUuid] } } : {}),
      };
    });
    const summaries = Object.fromEntries(chosen.map((host) => [host.nodeUuid, this.#summary(host, asked, minor)]));
    return json(200, { allocation_requests: requests, provider_summaries: summaries }, headers(call, minor));
  }

  #summary(host: Host, asked: Readonly<Record<string, number>>, minor: number): unknown {
    const resources = Object.entries(CLASSES)
      .filter(([name, key]) => amountOf(host.total, key) > 0 && (minor >= 27 || name in asked))
      .map(([name, key]) => [name, { capacity: capacityOf(host, key), used: amountOf(host.used, key) }] as const);
    return {
      resources: Object.fromEntries(resources),
      ...(minor >= 17 ? { traits: this.#cloud.traitsOf(host) } : {}),
      ...(minor >= 29 ? { parent_provider_uuid: null, root_provider_uuid: host.nodeUuid } : {}),
    };
  }

  #aggregatesOf(host: Host): string[] {
    return [...this.#cloud.aggregates.values()]
      .filter((each) => each.hosts.includes(host.name))
      .map((each) => each.uuid);
  }

  /** `member_of=uuid`, `in:a,b`, `!uuid`, `!in:a,b`. */
  #memberOf(host: Host, given: string): boolean {
    const negative = given.startsWith('!');
    const rest = negative ? given.slice(1) : given;
    const uuids = rest.startsWith('in:') ? rest.slice(3).split(',') : [rest];
    const mine = this.#aggregatesOf(host);
    return uuids.some((uuid) => mine.includes(uuid)) !== negative;
  }

  /** `required=A,!B`; `in:A,B` means any of them (1.39). */
  #hasTraits(host: Host, given: string): boolean {
    const mine = new Set(this.#cloud.traitsOf(host));
    const known = (trait: string): boolean => {
      if (/^(CUSTOM_|COMPUTE_|HW_|STORAGE_|MISC_|OWNER_)/.test(trait)) return true;
      throw new Refusal(400, `No such trait(s): ${trait}.`);
    };
    if (given.startsWith('in:'))
      return given
        .slice(3)
        .split(',')
        .some((trait) => known(trait) && mine.has(trait));
    return given.split(',').every((each) => {
      const negative = each.startsWith('!');
      const trait = negative ? each.slice(1) : each;
      return known(trait) && mine.has(trait) !== negative;
    });
  }
}

/** The microversions from which GET /allocation_candidates takes its parameters. */
const CANDIDATES_SINCE: Readonly<Record<string, number>> = {
  resources: 10,
  limit: 16,
  required: 17,
  member_of: 21,
  group_policy: 25,
  in_tree: 31,
  root_required: 35,
  same_subtree: 36,
};

/** @throws Refusal */
function candidatesAsked(
  query: URLSearchParams,
  minor: number,
): { readonly wanted: Resources; readonly limit: number; readonly tree: string | null } {
  for (const key of query.keys()) {
    const from = CANDIDATES_SINCE[key];
    if (from === undefined || minor < from)
      throw new Refusal(
        400,
        `Invalid query string parameters: Additional properties are not allowed ('${key}' was unexpected)`,
      );
  }
  const resources = query.get('resources');
  if (resources === null)
    throw new Refusal(
      400,
      'There must be at least one resources or resources[$S] parameter.',
      'placement.query.missing_value',
    );
  const wanted = amounts(resources);
  const limit = query.get('limit');
  if (limit !== null && !/^[1-9][0-9]*$/.test(limit))
    throw new Refusal(400, `Invalid query string parameters: '${limit}' does not match '^[1-9][0-9]*$'`);
  const tree = query.get('in_tree');
  if (tree !== null && !/^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(tree))
    throw new Refusal(400, `Expected 'in_tree' parameter to be a format of uuid, but got ${tree}.`);
  return { wanted, limit: limit === null ? Number.POSITIVE_INFINITY : Number(limit), tree };
}

function amounts(given: string): Resources {
  const out = { vcpus: 0, memoryMb: 0, diskGb: 0, pcpus: 0 };
  for (const part of given.split(',')) {
    const [name = '', amount] = part.split(':');
    if (amount === undefined)
      throw new Refusal(
        400,
        `Badly formed resources parameter. Expected resources query string parameter in form: ?resources=VCPU:2,MEMORY_MB:1024. Got: ${given}.`,
      );
    if (!/^[1-9]\d*$/.test(amount))
      throw new Refusal(400, `Requested resource ${name} expected positive integer amount. Got: ${amount}.`);
    const key = CLASSES[name];
    if (key === undefined)
      throw new Refusal(400, `Invalid resource class in resources parameter: No such resource class ${name}.`);
    out[key] = Number(amount);
  }
  return out;
}

function classes(resources: Resources): Record<string, number> {
  const { pcpus = 0 } = resources;
  const { vcpus: VCPU, memoryMb: MEMORY_MB, diskGb: DISK_GB } = resources;
  return { VCPU, ...(pcpus > 0 ? { PCPU: pcpus } : {}), MEMORY_MB, DISK_GB };
}

/** Without the classes of which nothing is taken. */
function taken(resources: Resources): Record<string, number> {
  return Object.fromEntries(Object.entries(classes(resources)).filter(([, amount]) => amount > 0));
}

function inventory(host: Host): unknown {
  return Object.fromEntries(
    Object.entries(CLASSES)
      .filter(([, key]) => amountOf(host.total, key) > 0)
      .map(([name, key]) => [
        name,
        {
          total: amountOf(host.total, key),
          reserved: amountOf(host.reserved, key),
          min_unit: 1,
          max_unit: amountOf(host.total, key),
          step_size: 1,
          allocation_ratio: key === 'pcpus' ? 1 : host.ratio[key],
        },
      ]),
  );
}

function providerView(host: Host, minor: number): unknown {
  const path = `/resource_providers/${host.nodeUuid}`;
  const links = [
    { rel: 'self', href: path },
    { rel: 'inventories', href: `${path}/inventories` },
    { rel: 'usages', href: `${path}/usages` },
  ];
  if (minor >= 1) links.push({ rel: 'aggregates', href: `${path}/aggregates` });
  if (minor >= 6) links.push({ rel: 'traits', href: `${path}/traits` });
  if (minor >= 11) links.push({ rel: 'allocations', href: `${path}/allocations` });
  return {
    uuid: host.nodeUuid,
    name: host.hypervisorHostname,
    generation: host.generation,
    links,
    ...(minor >= 14 ? { parent_provider_uuid: null, root_provider_uuid: host.nodeUuid } : {}),
  };
}

function headers(call: Call, minor: number): Record<string, string> {
  const fresh = minor >= 15 ? { 'Last-Modified': new Date(call.nowMs).toUTCString(), 'Cache-Control': 'no-cache' } : {};
  return {
    ...fresh,
    'openstack-api-version': `placement 1.${minor}`,
    vary: 'openstack-api-version',
    'x-openstack-request-id': call.requestId,
  };
}

function failure(
  call: Call,
  minor: number | null,
  status: number,
  what: { readonly detail: string; readonly [more: string]: string },
): Reply {
  const version = minor === null ? {} : { 'openstack-api-version': `placement 1.${minor}` };
  return json(
    status,
    { errors: [{ status, title: TITLES[status] ?? 'Error', ...what, request_id: call.requestId }] },
    { ...version, 'x-openstack-request-id': call.requestId },
  );
}
