import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { CloudUnderTest } from './cloud.ts';
import {
  aggregateForms,
  groupForms,
  hypervisorForms,
  keystoneError,
  novaError,
  novaVersion,
  novaVersions,
  placementForms,
  promError,
  promMatrix,
  promVector,
  serverForms,
  serviceForms,
  shownServer,
  token,
  unscopedToken,
} from './shapes.ts';
import { type Answer, NEWEST, passwordBody, send, Wire } from './wire.ts';

/** The message of a Nova error. */
export function messageOf(body: unknown, kind: string): string {
  expect(body).toEqual(expect.objectContaining({ [kind]: expect.anything() }));
  novaError(kind).parse(body);
  return z.record(z.string(), z.object({ message: z.string() })).parse(body)[kind]?.message ?? '';
}

const KINDS = { 400: 'badRequest', 404: 'itemNotFound', 409: 'conflictingRequest' } as const;

/** Nova refuses with this status and this message. */
export function refused(answer: Answer, status: keyof typeof KINDS, text: string): void {
  expect([answer.status, messageOf(answer.body, KINDS[status])]).toEqual([status, text]);
}

const askToken = (cloud: CloudUnderTest, body: unknown) => send('POST', `${cloud.identity}/auth/tokens`, {}, body);

/** Shows or ends a token; `own`: the caller's. */
const presentToken = (cloud: CloudUnderTest, method: 'GET' | 'DELETE', own: string, subject = own) =>
  send(method, `${cloud.identity}/auth/tokens`, { 'X-Auth-Token': own, 'X-Subject-Token': subject });

const credentialBody = (credential: CloudUnderTest['applicationCredential']) => ({
  auth: { identity: { methods: ['application_credential'], application_credential: credential } },
});

/** Keystone: tokens, the catalog, and its refusals. */
export function identityContract(cloud: () => CloudUnderTest): void {
  describe('Keystone', () => {
    for (const part of [ofCredentials, ofTokens, ofEndings]) part(cloud);
  });
}

/** Credentials that give a token, and those that do not. */
function ofCredentials(cloud: () => CloudUnderTest): void {
  test('a password gives a token of one project with the catalog', async () => {
    const answer = await askToken(cloud(), passwordBody(cloud()));
    expect(answer.status).toBe(201);
    expect(answer.headers.get('x-subject-token')).toMatch(/^gAAAA/);
    const parsed = token.parse(answer.body);
    expect(parsed.token.methods).toEqual(['password']);
    for (const type of ['compute', 'placement', 'identity'])
      expect(parsed.token.catalog.map((entry) => entry.type)).toContain(type);
    for (const entry of parsed.token.catalog)
      expect(entry.endpoints.map((each) => each.interface).sort()).toEqual(['admin', 'internal', 'public']);
    expect(Date.parse(parsed.token.expires_at)).toBeGreaterThan(Date.parse(parsed.token.issued_at));
  });

  test('without a scope the token has no project and no catalog', async () => {
    const { auth } = z.object({ auth: z.object({ identity: z.unknown() }) }).parse(passwordBody(cloud()));
    const answer = await askToken(cloud(), { auth: { identity: auth.identity } });
    expect(answer.status).toBe(201);
    unscopedToken.parse(answer.body);
  });

  test('a wrong password is 401', async () => {
    const answer = await askToken(cloud(), passwordBody(cloud(), 'wrong'));
    expect(answer.status).toBe(401);
    const { error } = keystoneError.parse(answer.body);
    expect(error).toEqual({
      code: 401,
      message: 'The request you have made requires authentication.',
      title: 'Unauthorized',
    });
  });

  test('an unknown project is 401 as well', async () => {
    const body = z
      .object({ auth: z.object({ identity: z.unknown(), scope: z.unknown() }) })
      .parse(passwordBody(cloud()));
    const scope = { project: { name: 'no-such-project', domain: { id: 'default' } } };
    expect((await askToken(cloud(), { auth: { ...body.auth, scope } })).status).toBe(401);
  });

  test('an application credential gives a token of its project', async () => {
    const { id, secret } = cloud().applicationCredential;
    const answer = await askToken(cloud(), credentialBody({ id, secret }));
    expect(answer.status, answer.text).toBe(201);
    expect(token.parse(answer.body).token.methods).toEqual(['application_credential']);
    expect((await askToken(cloud(), credentialBody({ id, secret: 'wrong' }))).status).toBe(401);
    const unknown = await askToken(cloud(), credentialBody({ id: 'nope', secret }));
    expect(unknown.status).toBe(404);
    expect(keystoneError.parse(unknown.body).error.message).toBe('Could not find Application Credential: nope.');
  });
}

/** The uses of a token. */
function ofTokens(cloud: () => CloudUnderTest): void {
  test('a token can be exchanged for another one, an unknown one cannot', async () => {
    const wire = await Wire.connect(cloud());
    const scope = { project: { name: cloud().project, domain: { id: 'default' } } };
    const exchange = (id: string) =>
      askToken(cloud(), { auth: { identity: { methods: ['token'], token: { id } }, scope } });
    const answer = await exchange(wire.token);
    expect(answer.status, answer.text).toBe(201);
    expect(token.parse(answer.body).token.methods).toContain('token');
    const unknown = await exchange('nope');
    expect(unknown.status).toBe(404);
    keystoneError.parse(unknown.body);
  });

  test('a token tells its owner whom it is of and with which roles, until its owner ends it', async () => {
    for (const body of [passwordBody(cloud()), credentialBody(cloud().applicationCredential)]) {
      const issued = await askToken(cloud(), body);
      const own = issued.headers.get('x-subject-token') ?? '';
      const shown = await presentToken(cloud(), 'GET', own);
      expect(shown.status, shown.text).toBe(200);
      expect(z.looseObject({ token: z.looseObject({}) }).parse(shown.body).token).toMatchObject({
        user: { name: cloud().username, domain: { name: 'Default' } },
        project: { name: cloud().project, domain: { name: 'Default' } },
        roles: expect.arrayContaining([expect.objectContaining({ name: 'admin' })]),
      });
      expect((await presentToken(cloud(), 'DELETE', own)).status).toBe(204);
      // A worker of Keystone whose cache still accepts the caller's token answers 404, the others 401.
      expect([401, 404]).toContain((await presentToken(cloud(), 'GET', own)).status);
    }
  });

  test('a token is refused, or shown without roles, once its owner has none left', async () => {
    const { person, project } = cloud();
    const asked = passwordBody({ ...cloud(), ...person });
    for (let i = 0; i < 6; i++) {
      const issued = await askToken(cloud(), asked);
      expect(issued.status, issued.text).toBe(201);
      const own = issued.headers.get('x-subject-token') ?? '';
      await cloud().takeRole(true);
      // Each worker of Keystone has its own cache, so the same token gets different answers.
      for (let again = 0; again < 3; again++) {
        const { status, body } = await presentToken(cloud(), 'GET', own);
        expect([200, 401, 404]).toContain(status);
        if (status === 200) expect(body).toMatchObject({ token: { project: { name: project }, roles: [] } });
      }
      expect((await askToken(cloud(), asked)).status).toBe(401);
      await cloud().takeRole(false);
    }
  });
}

/** Bodies that are refused, and tokens that are ended. */
function ofEndings(cloud: () => CloudUnderTest): void {
  test('what is not JSON is 400, and so is a body without identity', async () => {
    for (const body of ['xx', { auth: {} }]) {
      const answer = await askToken(cloud(), body);
      expect(answer.status).toBe(400);
      keystoneError.parse(answer.body);
    }
  });

  test('a token can be looked up and revoked', async () => {
    const wire = await Wire.connect(cloud());
    const other = await Wire.connect(cloud());
    const found = await presentToken(cloud(), 'GET', wire.token, other.token);
    expect(found.status).toBe(200);
    token.parse(found.body);
    const revoked = await presentToken(cloud(), 'DELETE', wire.token, other.token);
    expect(revoked.status).toBe(204);
    expect((await presentToken(cloud(), 'GET', wire.token, other.token)).status).toBe(404);
  });
}

interface ComputeGiven {
  readonly wire: Wire;
  /** Three on the first host. */
  readonly servers: readonly string[];
}

/** Nova's version discovery, microversions, errors, and all reads of Kronos. */
export function computeReadContract(cloud: () => CloudUnderTest): void {
  describe('Nova, reading', () => {
    let wire: Wire;
    let servers: string[];
    beforeAll(async () => {
      await cloud().reset();
      wire = await Wire.connect(cloud());
      servers = await wire.boot(3, cloud().hosts[0], { metadata: { cpu: '1.5', mem: '3000' } });
    });

    for (const part of [ofVersions, ofErrors, ofServers, ofLists, ofChanges, ofServices, ofAggregates, ofGroups])
      part(() => ({ wire, servers }), cloud);
  });
}

/** Versions and microversions. */
function ofVersions(given: () => ComputeGiven): void {
  test('the root lists the versions, without a token', async () => {
    const { wire } = given();
    const root = wire.compute.replace(/\/v2\.1\/?$/, '/');
    const answer = await send('GET', root, {});
    expect(answer.status).toBe(200);
    const { versions } = novaVersions.parse(answer.body);
    expect(versions.map((each) => each.id)).toEqual(['v2.0', 'v2.1']);
    expect(versions[1]?.min_version).toBe('2.1');
    expect(versions[1]?.version).toMatch(/^2\.\d+$/);
    const own = await send('GET', `${wire.compute}/`, {});
    expect(own.status).toBe(200);
    expect(novaVersion.parse(own.body).version.version).toBe(versions[1]?.version);
  });

  test('the answer names the microversion it was given in', async () => {
    const { wire } = given();
    const answer = await wire.nova('GET', '/servers', '2.53');
    expect(answer.headers.get('openstack-api-version')).toBe('compute 2.53');
    expect(answer.headers.get('x-openstack-request-id')).toMatch(/^req-/);
    const plain = await send('GET', `${wire.compute}/servers`, { 'X-Auth-Token': wire.token });
    expect(plain.headers.get('openstack-api-version')).toBe('compute 2.1');
    const legacy = await send('GET', `${wire.compute}/servers`, {
      'X-Auth-Token': wire.token,
      'X-OpenStack-Nova-API-Version': '2.40',
    });
    expect(legacy.headers.get('openstack-api-version')).toBe('compute 2.40');
    const latest = await wire.nova('GET', '/servers', 'latest');
    expect(latest.headers.get('openstack-api-version')).toMatch(/^compute 2\.\d+$/);
  });

  test('a microversion it does not speak is 406, a malformed one 400', async () => {
    const { wire } = given();
    for (const version of ['2.999', '3.1']) {
      const answer = await wire.nova('GET', '/servers', version);
      expect(answer.status).toBe(406);
      expect(messageOf(answer.body, 'computeFault')).toMatch(
        new RegExp(`^Version ${version} is not supported by the API. Minimum is 2.1 and maximum is 2\\.\\d+\\.$`),
      );
    }
    refused(
      await wire.nova('GET', '/servers', 'abc'),
      400,
      'API Version String abc is of invalid format. Must be of format MajorNum.MinorNum.',
    );
  });
}

/** Refusals of every read. */
function ofErrors(given: () => ComputeGiven): void {
  test('no token and a wrong token are 401, and the answer says where Keystone is', async () => {
    const { wire } = given();
    for (const headers of [{}, { 'X-Auth-Token': 'nope' }] as Record<string, string>[])
      for (const url of [`${wire.compute}/servers`, `${wire.placementUrl}/resource_providers`]) {
        const answer = await send('GET', url, headers);
        expect(answer.status).toBe(401);
        expect(answer.headers.get('www-authenticate')).toMatch(/^Keystone uri="http/);
        expect(answer.body).toEqual({
          error: {
            code: 401,
            title: 'Unauthorized',
            message: 'The request you have made requires authentication.',
          },
        });
      }
  });

  test('what does not exist is 404 with its own sentence', async () => {
    const { wire, servers } = given();
    const nobody = '41414141-5f4e-424a-97e1-ee7f57d32c2f';
    const cases: [string, string][] = [
      [`/servers/${nobody}`, `Instance ${nobody} could not be found.`],
      ['/servers/xxx', 'Instance xxx could not be found.'],
      ['/os-aggregates/99999', 'Aggregate 99999 could not be found.'],
      [`/os-server-groups/${nobody}`, `Instance group ${nobody} could not be found.`],
      [`/os-hypervisors/${nobody}`, `Hypervisor with ID '${nobody}' could not be found.`],
      [`/servers/${servers[0]}/os-instance-actions/req-none`, 'Action req-none not found'],
      [
        `/servers/${servers[0]}/migrations/4711`,
        `In-progress live migration 4711 is not found for server ${servers[0]}.`,
      ],
      ['/os-hypervisors/detail?hypervisor_hostname_pattern=zzz', "No hypervisor matching 'zzz' could be found."],
    ];
    for (const [path, message] of cases) {
      refused(await wire.nova('GET', path), 404, message);
    }
  });
}

/** Servers: their fields and pages. */
function ofServers(given: () => ComputeGiven, cloud: () => CloudUnderTest): void {
  test.each(Object.keys(serverForms))('a server has exactly the fields of %s', async (version) => {
    const { wire } = given();
    const body = await wire.get('/servers/detail?all_tenants=1', version);
    const list = z.object({ servers: z.array(z.unknown()) }).parse(body).servers;
    expect(list.length).toBe(3);
    for (const server of list) serverForms[version]?.parse(server);
  });

  test('one server alone also tells its groups', async () => {
    const { wire, servers } = given();
    const { server } = z.object({ server: z.unknown() }).parse(await wire.get(`/servers/${servers[0]}`));
    expect(shownServer.parse(server)).toMatchObject({
      status: 'ACTIVE',
      'OS-EXT-SRV-ATTR:host': cloud().hosts[0],
      'OS-EXT-STS:vm_state': 'active',
      'OS-EXT-STS:task_state': null,
      'OS-EXT-STS:power_state': 1,
      host_status: 'UP',
      locked: false,
      pinned_availability_zone: null,
      'OS-EXT-AZ:availability_zone': 'nova',
      server_groups: [],
      metadata: { cpu: '1.5', mem: '3000' },
      flavor: { vcpus: 2, ram: 4096, disk: 1, extra_specs: {} },
    });
  });

  test('the list of servers is paged: newest first, a next link while the page is full, no server twice', async () => {
    const { wire, servers } = given();
    const listed = z.object({
      servers: z.array(z.object({ id: z.string() })),
      servers_links: z.array(z.object({ rel: z.string(), href: z.string() })).optional(),
    });
    const all = listed.parse(await wire.get('/servers/detail?all_tenants=1'));
    expect(all.servers_links).toBeUndefined();
    expect([...all.servers.map((each) => each.id)].sort()).toEqual([...servers].sort());
    const seen: string[] = [];
    let path: string | undefined = '/servers/detail?all_tenants=1&limit=2';
    let pages = 0;
    while (path !== undefined) {
      const page = listed.parse(await wire.get(path));
      seen.push(...page.servers.map((each) => each.id));
      const next: string | undefined = page.servers_links?.find((each) => each.rel === 'next')?.href;
      if (next !== undefined) expect(next).toContain(`marker=${page.servers.at(-1)?.id}`);
      path = next?.slice(next.indexOf('/servers/detail'));
      pages++;
    }
    expect(seen).toEqual(all.servers.map((each) => each.id));
    expect(pages).toBe(2);
    expect(await wire.get('/servers/detail?all_tenants=1&limit=0')).toEqual({ servers: [] });
  });
}

/** Which servers a list has, locks, and the fields of hypervisors. */
function ofLists(given: () => ComputeGiven, cloud: () => CloudUnderTest): void {
  test('a bad limit, an unknown marker, a wrong status and an unknown filter are 400', async () => {
    const { wire } = given();
    const nobody = '41414141-5f4e-424a-97e1-ee7f57d32c2f';
    const cases: [string, string][] = [
      ['limit=abc', "Invalid input for query parameters limit. Value: abc. 'abc' does not match '^[0-9]*$'"],
      ['limit=-1', "Invalid input for query parameters limit. Value: -1. '-1' does not match '^[0-9]*$'"],
      [`marker=${nobody}`, `marker [${nobody}] not found`],
      ['status=FOO', 'Invalid status value'],
      ['foo=bar', "'foo' does not match any of the regexes: '^_'"],
    ];
    for (const [query, message] of cases) {
      refused(await wire.nova('GET', `/servers/detail?${query}`), 400, message);
    }
  });

  test('servers can be filtered by host, by status and by tag', async () => {
    const { wire, servers } = given();
    const ids = async (query: string): Promise<string[]> =>
      z
        .object({ servers: z.array(z.object({ id: z.string() })) })
        .parse(await wire.get(`/servers/detail?all_tenants=1&${query}`))
        .servers.map((each) => each.id);
    expect((await ids(`host=${cloud().hosts[0]}`)).length).toBe(3);
    expect(await ids(`host=${cloud().hosts[1]}`)).toEqual([]);
    expect((await ids('status=ACTIVE')).length).toBe(3);
    expect(await ids('status=ERROR')).toEqual([]);
    const tagged = servers[1] ?? '';
    expect((await wire.nova('PUT', `/servers/${tagged}/tags/kronos:exclude`)).status).toBe(201);
    expect(await ids('tags=kronos:exclude')).toEqual([tagged]);
    expect((await ids('not-tags=kronos:exclude')).length).toBe(2);
    expect((await wire.nova('DELETE', `/servers/${tagged}/tags/kronos:exclude`)).status).toBe(204);
  });

  test('a locked server says so, with the reason from 2.73 on', async () => {
    const { wire, servers } = given();
    const id = servers[2] ?? '';
    const locked = await wire.act(id, { lock: { locked_reason: 'mine' } });
    expect(locked.status).toBe(202);
    const { server } = z.object({ server: z.unknown() }).parse(await wire.get(`/servers/${id}`));
    expect(server).toMatchObject({ locked: true, locked_reason: 'mine' });
    expect((await wire.act(id, { unlock: null })).status).toBe(202);
    const again = z.object({ server: z.unknown() }).parse(await wire.get(`/servers/${id}`));
    expect(again.server).toMatchObject({ locked: false, locked_reason: null });
  });

  test.each(Object.keys(hypervisorForms))('a hypervisor has exactly the fields of %s', async (version) => {
    const { wire } = given();
    const body = await wire.get('/os-hypervisors/detail', version);
    const list = z.object({ hypervisors: z.array(z.unknown()) }).parse(body).hypervisors;
    expect(list.length).toBeGreaterThanOrEqual(cloud().hosts.length);
    for (const hypervisor of list) hypervisorForms[version]?.parse(hypervisor);
  });
}

/** Servers that changed since a time, and pages of hypervisors. */
function ofChanges(given: () => ComputeGiven, cloud: () => CloudUnderTest): void {
  test('changes-since lists what was updated or deleted since; tags and removed metadata are no update', async () => {
    const { wire } = given();
    const [id = '', other = ''] = await wire.boot(2, cloud().hosts[1]);
    const updated = async (of: string): Promise<string> => String((await wire.server(of)).updated);
    const set = async (of: string, value: string): Promise<void> => {
      const answer = await wire.nova('POST', `/servers/${of}/metadata`, NEWEST, { metadata: { x: value } });
      expect(answer.status).toBe(200);
    };
    /** A key that is set is an update: so the second in which the server was updated is over. */
    const later = async (than: string): Promise<void> => {
      let value = 0;
      await wire.until('the next second', async () => {
        await set(other, String(value++));
        return (await updated(other)) > than;
      });
    };
    await set(id, '1');
    const before = await updated(id);
    await later(before);
    expect((await wire.nova('PUT', `/servers/${id}/tags/kronos:x`)).status).toBe(201);
    expect((await wire.nova('DELETE', `/servers/${id}/tags/kronos:x`)).status).toBe(204);
    expect((await wire.nova('DELETE', `/servers/${id}/metadata/x`)).status).toBe(204);
    expect(await updated(id)).toBe(before);

    const since = await updated(other);
    const listed = z.object({ servers: z.array(z.looseObject({ id: z.string(), status: z.string() })) });
    const changed = async (): Promise<Map<string, string>> => {
      const query = `all_tenants=true&changes-since=${encodeURIComponent(since)}`;
      const { servers } = listed.parse(await wire.get(`/servers/detail?${query}`));
      // Other servers may have been deleted in the same second.
      return new Map(servers.filter((one) => one.id === id || one.id === other).map((one) => [one.id, one.status]));
    };
    expect([...(await changed())]).toEqual([[other, 'ACTIVE']]);
    for (const each of [id, other]) expect((await wire.nova('DELETE', `/servers/${each}`)).status).toBe(204);
    await wire.until('both deleted', async () => {
      const now = await changed();
      return now.get(id) === 'DELETED' && now.get(other) === 'DELETED';
    });
    // Nova names the status before it marks the row.
    await wire.until('both out of the list', async () => {
      const { servers } = listed.parse(await wire.get('/servers/detail?all_tenants=true'));
      return servers.every((one) => one.id !== id && one.id !== other);
    });
  });

  test('hypervisors are paged, and tell their servers when asked', async () => {
    const { wire } = given();
    const listed = z.object({
      hypervisors: z.array(
        z.looseObject({
          id: z.string(),
          service: z.object({ host: z.string() }),
          servers: z.array(z.strictObject({ name: z.string(), uuid: z.string() })).optional(),
        }),
      ),
      hypervisors_links: z.array(z.object({ rel: z.string(), href: z.string() })).optional(),
    });
    const all = listed.parse(await wire.get('/os-hypervisors/detail?with_servers=true'));
    for (const each of all.hypervisors)
      expect(each.servers?.length, each.service.host).toBe(each.service.host === cloud().hosts[0] ? 3 : 0);
    const first = listed.parse(await wire.get('/os-hypervisors/detail?limit=2'));
    expect(first.hypervisors[0]?.servers).toBeUndefined();
    expect(first.hypervisors.map((each) => each.id)).toEqual(all.hypervisors.slice(0, 2).map((each) => each.id));
    expect(first.hypervisors_links?.[0]?.href).toContain(`marker=${first.hypervisors[1]?.id}`);
    const rest = listed.parse(await wire.get(`/os-hypervisors/detail?marker=${first.hypervisors[1]?.id}`));
    expect(rest.hypervisors.map((each) => each.id)).toEqual(all.hypervisors.slice(2).map((each) => each.id));
    refused(await wire.nova('GET', '/os-hypervisors/detail?marker=zz'), 400, 'marker [zz] not found');
    const both = await wire.nova('GET', '/os-hypervisors/detail?hypervisor_hostname_pattern=c&limit=1');
    expect(both.status).toBe(400);
  });
}

/** Compute services. */
function ofServices(given: () => ComputeGiven, cloud: () => CloudUnderTest): void {
  test.each(Object.keys(serviceForms))('a service has exactly the fields of %s', async (version) => {
    const { wire } = given();
    const body = await wire.get('/os-services?binary=nova-compute', version);
    const list = z.object({ services: z.array(z.unknown()) }).parse(body).services;
    expect(list.length).toBeGreaterThanOrEqual(cloud().hosts.length);
    for (const service of list) serviceForms[version]?.parse(service);
  });

  test('a service can be disabled with a reason, and the hypervisor, the servers and Placement show it', async () => {
    const { wire, servers } = given();
    const [host] = cloud().hosts;
    const id = await wire.serviceId(host);
    const off = await wire.nova('PUT', `/os-services/${id}`, NEWEST, {
      status: 'disabled',
      disabled_reason: 'firmware',
    });
    expect(off.status, off.text).toBe(200);
    const { service } = z.object({ service: z.unknown() }).parse(off.body);
    serviceForms['2.53']?.parse(service);
    expect(service).toMatchObject({
      status: 'disabled',
      state: 'up',
      disabled_reason: 'firmware',
      forced_down: false,
    });
    const provider = await wire.provider(host);
    const hypervisor = await wire.get(`/os-hypervisors/${provider}`);
    expect(hypervisor).toMatchObject({
      hypervisor: { status: 'disabled', state: 'up', service: { disabled_reason: 'firmware' } },
    });
    const server = await wire.get(`/servers/${servers[0]}`);
    expect(server).toMatchObject({ server: { host_status: 'MAINTENANCE' } });
    const traits = async (): Promise<string[]> =>
      placementForms.traits.parse((await wire.placement(`/resource_providers/${provider}/traits`)).body).traits;
    await wire.until('the trait', async () => (await traits()).includes('COMPUTE_STATUS_DISABLED'));
    const on = await wire.nova('PUT', `/os-services/${id}`, NEWEST, { status: 'enabled' });
    expect(on.body).toMatchObject({ service: { status: 'enabled', disabled_reason: null } });
    await wire.until('the trait gone', async () => !(await traits()).includes('COMPUTE_STATUS_DISABLED'));
    refused(
      await wire.nova('PUT', `/os-services/${id}`, NEWEST, { status: 'enabled', disabled_reason: 'x' }),
      400,
      "Specifying 'disabled_reason' with status 'enabled' is invalid.",
    );
    const nobody = '41414141-5f4e-424a-97e1-ee7f57d32c2f';
    refused(
      await wire.nova('PUT', `/os-services/${nobody}`, NEWEST, { status: 'disabled' }),
      404,
      `Service ${nobody} could not be found.`,
    );
  });

  test('a service forced down is down, and its hypervisor too', async () => {
    const { wire, servers } = given();
    const [host] = cloud().hosts;
    const id = await wire.serviceId(host);
    const down = await wire.nova('PUT', `/os-services/${id}`, NEWEST, { forced_down: true });
    expect(down.body).toMatchObject({ service: { state: 'down', status: 'enabled', forced_down: true } });
    const hypervisor = await wire.get(`/os-hypervisors/${await wire.provider(host)}`);
    expect(hypervisor).toMatchObject({ hypervisor: { state: 'down', status: 'enabled' } });
    expect(await wire.get(`/servers/${servers[0]}`)).toMatchObject({ server: { host_status: 'DOWN' } });
    const up = await wire.nova('PUT', `/os-services/${id}`, NEWEST, { forced_down: false });
    expect(up.body).toMatchObject({ service: { state: 'up', forced_down: false } });
  });
}

/** Aggregates. */
function ofAggregates(given: () => ComputeGiven, cloud: () => CloudUnderTest): void {
  test('aggregates: their fields, their hosts, their AZ', async () => {
    const { wire } = given();
    const made = await wire.nova('POST', '/os-aggregates', NEWEST, {
      aggregate: { name: 'contract', availability_zone: 'az1' },
    });
    expect(made.status, made.text).toBe(200);
    const { id } = z.object({ aggregate: z.object({ id: z.number() }) }).parse(made.body).aggregate;
    const [, empty] = cloud().hosts;
    const act = (action: 'add_host' | 'remove_host', host: string) =>
      wire.nova('POST', `/os-aggregates/${id}/action`, NEWEST, { [action]: { host } });
    const added = await act('add_host', empty);
    expect(added.status, added.text).toBe(200);
    for (const [version, form] of Object.entries(aggregateForms)) {
      const body = await wire.get('/os-aggregates', version);
      const [aggregate] = z.object({ aggregates: z.array(z.unknown()).length(1) }).parse(body).aggregates;
      expect(form.parse(aggregate)).toMatchObject({
        name: 'contract',
        hosts: [empty],
        metadata: { availability_zone: 'az1' },
        availability_zone: 'az1',
      });
    }
    const service = await wire.get(`/os-services?binary=nova-compute&host=${empty}`);
    expect(service).toMatchObject({ services: [{ zone: 'az1' }] });
    const uuid = z
      .object({ aggregates: z.array(z.object({ uuid: z.string() })) })
      .parse(await wire.get('/os-aggregates')).aggregates[0]?.uuid;
    const mirrored = placementForms.aggregates.parse(
      (await wire.placement(`/resource_providers/${await wire.provider(empty)}/aggregates`)).body,
    );
    expect(mirrored.aggregates).toEqual([uuid]);
    const candidates = placementForms.candidates.parse(
      (await wire.placement(`/allocation_candidates?resources=VCPU:1&member_of=${uuid}`)).body,
    );
    expect(Object.keys(candidates.provider_summaries)).toEqual([await wire.provider(empty)]);
    const unknown = await act('add_host', 'nobody');
    expect(unknown.status).toBe(404);
    const twice = await act('add_host', empty);
    expect(twice.status).toBe(409);
    await act('remove_host', empty);
    expect((await wire.nova('DELETE', `/os-aggregates/${id}`)).status).toBe(200);
  });
}

/** Server groups, and the filters of migrations. */
function ofGroups(given: () => ComputeGiven, cloud: () => CloudUnderTest): void {
  test('server groups: old and new form, all projects, limit and offset', async () => {
    const { wire } = given();
    const affinity = await wire.group('affinity');
    const spread = await wire.group('anti-affinity', 2);
    const soft = await wire.group('soft-anti-affinity');
    const list = async (version: string, query: string): Promise<unknown[]> =>
      z.object({ server_groups: z.array(z.unknown()) }).parse(await wire.get(`/os-server-groups?${query}`, version))
        .server_groups;
    for (const [version, form] of Object.entries(groupForms))
      for (const group of await list(version, 'all_projects=True')) form.parse(group);
    expect(await list('2.63', 'all_projects=True')).toEqual([
      expect.objectContaining({ id: affinity, policies: ['affinity'] }),
      expect.objectContaining({ id: spread, policies: ['anti-affinity'] }),
      expect.objectContaining({ id: soft, policies: ['soft-anti-affinity'] }),
    ]);
    expect(await list('2.64', 'all_projects=True')).toEqual([
      expect.objectContaining({ id: affinity, policy: 'affinity', rules: {} }),
      expect.objectContaining({ id: spread, policy: 'anti-affinity', rules: { max_server_per_host: 2 } }),
      expect.objectContaining({ id: soft, policy: 'soft-anti-affinity', rules: {} }),
    ]);
    expect(await list(NEWEST, 'all_projects=True&limit=1&offset=1')).toEqual([expect.objectContaining({ id: spread })]);
    expect(await list(NEWEST, 'all_projects=True&limit=5&offset=3')).toEqual([]);
    refused(
      await wire.nova('GET', '/os-server-groups?all_projects=True&foo=1'),
      400,
      "Additional properties are not allowed ('foo' was unexpected)",
    );
    const member = await wire.bootOne(cloud().hosts[2], { group: spread });
    expect(await wire.get(`/os-server-groups/${spread}`)).toMatchObject({ server_group: { members: [member] } });
    expect(await wire.get(`/servers/${member}`)).toMatchObject({ server: { server_groups: [spread] } });
    expect((await wire.nova('DELETE', `/servers/${member}`)).status).toBe(204);
    await wire.until('the member gone', async () => (await wire.nova('GET', `/servers/${member}`)).status === 404);
    expect(await wire.get(`/os-server-groups/${spread}`)).toMatchObject({ server_group: { members: [] } });
    for (const id of [affinity, spread, soft])
      expect((await wire.nova('DELETE', `/os-server-groups/${id}`)).status).toBe(204);
  });

  test('os-migrations refuses unknown filters and markers from 2.59 on', async () => {
    const { wire } = given();
    const nobody = '41414141-5f4e-424a-97e1-ee7f57d32c2f';
    refused(
      await wire.nova('GET', '/os-migrations?foo=bar'),
      400,
      "Additional properties are not allowed ('foo' was unexpected)",
    );
    refused(await wire.nova('GET', `/os-migrations?marker=${nobody}`), 400, `Marker ${nobody} could not be found.`);
    expect((await wire.nova('GET', '/os-migrations?foo=bar', '2.58')).status).toBe(200);
  });
}

interface PlacementGiven {
  readonly wire: Wire;
  /** Two on the first host. */
  readonly servers: readonly string[];
  /** Of the first host. */
  readonly provider: string;
  readonly get: (path: string, version?: string) => Promise<unknown>;
}

/** Placement: providers, inventories, usages, traits, allocations, candidates. */
export function placementContract(cloud: () => CloudUnderTest): void {
  describe('Placement', () => {
    let wire: Wire;
    let servers: string[];
    let provider: string;
    beforeAll(async () => {
      await cloud().reset();
      wire = await Wire.connect(cloud());
      servers = await wire.boot(2, cloud().hosts[0]);
      provider = await wire.provider(cloud().hosts[0]);
    });
    const get = async (path: string, version?: string): Promise<unknown> => {
      const answer = await wire.placement(path, version);
      expect(answer.status, `${path}: ${answer.text}`).toBe(200);
      return answer.body;
    };

    for (const part of [ofProviders, ofCandidates, ofBadQueries]) part(() => ({ wire, servers, provider, get }), cloud);
  });
}

/** Versions, providers and what they hold. */
function ofProviders(given: () => PlacementGiven, cloud: () => CloudUnderTest): void {
  test('the root names its versions, without a token', async () => {
    const { wire } = given();
    const answer = await send('GET', `${wire.placementUrl}/`, {});
    expect(answer.status).toBe(200);
    expect(placementForms.versions.parse(answer.body).versions[0]?.min_version).toBe('1.0');
  });

  test('a version it does not speak is 406 and names its limits, a malformed one 400', async () => {
    const { wire } = given();
    const wrong = await wire.placement('/resource_providers', '1.999');
    expect(wrong.status).toBe(406);
    expect(placementForms.error.parse(wrong.body).errors[0]).toMatchObject({ status: 406, min_version: '1.0' });
    expect((await wire.placement('/resource_providers', 'abc')).status).toBe(400);
  });

  test('each hypervisor is a resource provider of the same uuid', async () => {
    const { provider, get } = given();
    const { resource_providers: list } = placementForms.providers.parse(await get('/resource_providers'));
    placementForms.oldProviders.parse(await get('/resource_providers', '1.13'));
    expect(list.map((each) => each.uuid)).toContain(provider);
    const named = placementForms.providers.parse(await get(`/resource_providers?uuid=${provider}`));
    expect(named.resource_providers.map((each) => each.name)).toEqual([cloud().hosts[0]]);
  });

  test('inventories, usages, traits and allocations of a host with two servers', async () => {
    const { servers, provider, get } = given();
    const path = `/resource_providers/${provider}`;
    const { inventories } = placementForms.inventories.parse(await get(`${path}/inventories`));
    expect(inventories.VCPU?.allocation_ratio).toBeGreaterThan(0);
    const { usages } = placementForms.usages.parse(await get(`${path}/usages`));
    expect(usages).toEqual({ VCPU: 4, MEMORY_MB: 8192, DISK_GB: 2 });
    expect(placementForms.traits.parse(await get(`${path}/traits`)).traits).toContain('COMPUTE_NODE');
    const { allocations } = placementForms.allocations.parse(await get(`${path}/allocations`));
    expect(Object.keys(allocations).sort()).toEqual([...servers].sort());
    const consumer = placementForms.consumer.parse(await get(`/allocations/${servers[0]}`));
    expect(consumer.allocations[provider]?.resources).toEqual({ VCPU: 2, MEMORY_MB: 4096, DISK_GB: 1 });
    expect(await get('/allocations/41414141-5f4e-424a-97e1-ee7f57d32c2f')).toEqual({ allocations: {} });
  });
}

/** Candidates. */
function ofCandidates(given: () => PlacementGiven, cloud: () => CloudUnderTest): void {
  test('candidates within one tree tell capacity and use; none means it does not fit', async () => {
    const { provider, get } = given();
    const query = (resources: string) => `/allocation_candidates?resources=${resources}&in_tree=${provider}`;
    const found = placementForms.candidates.parse(await get(query('VCPU:2,MEMORY_MB:4096,DISK_GB:1')));
    expect(found.allocation_requests.length).toBe(1);
    const summary = found.provider_summaries[provider];
    const { inventories } = placementForms.inventories.parse(await get(`/resource_providers/${provider}/inventories`));
    for (const name of ['VCPU', 'MEMORY_MB', 'DISK_GB'] as const) {
      const has = inventories[name];
      if (has === undefined) throw new Error(`no ${name}`);
      expect(summary?.resources[name]?.capacity).toBe(Math.floor((has.total - has.reserved) * has.allocation_ratio));
    }
    expect(summary?.resources.VCPU?.used).toBe(4);
    const most = inventories.VCPU?.max_unit ?? 0;
    expect(await get(query(`VCPU:${most + 1}`))).toEqual({ allocation_requests: [], provider_summaries: {} });
  });

  test('candidates of all hosts: limit, required and forbidden traits, the form before 1.17', async () => {
    const { wire, get } = given();
    const all = placementForms.candidates.parse(await get('/allocation_candidates?resources=VCPU:1'));
    expect(all.allocation_requests.length).toBeGreaterThanOrEqual(cloud().hosts.length);
    const one = placementForms.candidates.parse(await get('/allocation_candidates?resources=VCPU:1&limit=1'));
    expect(one.allocation_requests.length).toBe(1);
    placementForms.oldCandidates.parse(await get('/allocation_candidates?resources=VCPU:1', '1.16'));
    const id = await wire.serviceId(cloud().hosts[3]);
    const disabled = await wire.provider(cloud().hosts[3]);
    await wire.nova('PUT', `/os-services/${id}`, NEWEST, { status: 'disabled' });
    const without = async (): Promise<string[]> =>
      Object.keys(
        placementForms.candidates.parse(
          await get('/allocation_candidates?resources=VCPU:1&required=!COMPUTE_STATUS_DISABLED'),
        ).provider_summaries,
      );
    await wire.until('the trait', async () => !(await without()).includes(disabled));
    expect(
      Object.keys(
        placementForms.candidates.parse(await get('/allocation_candidates?resources=VCPU:1')).provider_summaries,
      ),
    ).toContain(disabled);
    await wire.nova('PUT', `/os-services/${id}`, NEWEST, { status: 'enabled' });
    await wire.until('the trait gone', async () => (await without()).includes(disabled));
  });
}

/** Refused queries. */
function ofBadQueries(given: () => PlacementGiven): void {
  test('bad queries are 400 and say what is wrong', async () => {
    const { wire, provider } = given();
    const cases: [string, string, string][] = [
      ['1.36', '', 'There must be at least one resources or resources[$S] parameter.'],
      ['1.36', '?resources=VCPU:x', 'Requested resource VCPU expected positive integer amount. Got: x.'],
      ['1.36', '?resources=FOO:1', 'Invalid resource class in resources parameter: No such resource class FOO.'],
      ['1.36', '?resources=VCPU:1&required=FOO', 'No such trait(s): FOO.'],
      [
        '1.17',
        `?resources=VCPU:1&in_tree=${provider}`,
        "Additional properties are not allowed ('in_tree' was unexpected)",
      ],
      ['1.10', '?resources=VCPU:1&limit=1', "Additional properties are not allowed ('limit' was unexpected)"],
    ];
    for (const [version, query, detail] of cases) {
      const answer = await wire.placement(`/allocation_candidates${query}`, version);
      expect(answer.status, query).toBe(400);
      expect(placementForms.error.parse(answer.body).errors[0]?.detail).toContain(detail);
    }
    const nobody = '41414141-5f4e-424a-97e1-ee7f57d32c2f';
    for (const path of [`/resource_providers/${nobody}`, `/resource_providers/${nobody}/inventories`]) {
      const answer = await wire.placement(path);
      expect(answer.status).toBe(404);
      expect(placementForms.error.parse(answer.body).errors[0]?.detail).toContain(
        `No resource provider with uuid ${nobody} found`,
      );
    }
    expect((await wire.placement('/foo')).status).toBe(404);
  });
}

interface PrometheusGiven {
  readonly wire: Wire;
  /** On the first host, with a load. */
  readonly server: string;
  readonly vector: (query: string) => Promise<z.infer<typeof promVector>['data']['result']>;
}

/** Prometheus: the answers of instant and range queries, and its errors. */
export function prometheusContract(cloud: () => CloudUnderTest): void {
  describe('Prometheus', () => {
    let wire: Wire;
    let server: string;
    beforeAll(async () => {
      await cloud().reset();
      wire = await Wire.connect(cloud());
      server = await wire.bootOne(cloud().hosts[0], { metadata: { cpu: '1.5', mem: '3000' } });
    });
    const vector = async (query: string) => {
      const answer = await wire.prometheus('/api/v1/query', { query });
      expect(answer.status, answer.text).toBe(200);
      return promVector.parse(answer.body).data.result;
    };

    for (const part of [ofVectors, ofRanges, ofRefusals]) part(() => ({ wire, server, vector }), cloud);
  });
}

/** Instant queries. */
function ofVectors(given: () => PrometheusGiven, cloud: () => CloudUnderTest): void {
  test('a server puts its load on its host, as it says in its metadata', async () => {
    const { wire, server, vector } = given();
    const mine = await wire.until('its series', async () => {
      const found = (await vector('vm_cpu_cores')).find((each) => each.metric.instance_uuid === server);
      return found?.value[1] === '1.5' ? found : undefined;
    });
    expect(mine.metric).toEqual({
      __name__: 'vm_cpu_cores',
      instance_uuid: server,
      host: cloud().hosts[0],
      instance: expect.any(String),
      job: expect.any(String),
    });
    expect((await vector(`vm_mem_mb{instance_uuid="${server}"}`))[0]?.value[1]).toBe('3000');
    const hosts = await vector('host_cpu_utilisation');
    const cores = Number((await vector(`host_cpu_cores{host="${cloud().hosts[0]}"}`))[0]?.value[1]);
    for (const host of cloud().hosts)
      expect(Number(hosts.find((each) => each.metric.host === host)?.value[1])).toBeCloseTo(
        host === cloud().hosts[0] ? 1.5 / cores : 0,
        6,
      );
    expect((await vector('host_mem_utilisation')).length).toBeGreaterThanOrEqual(cloud().hosts.length);
  });

  test('arithmetic and functions drop the name and keep the labels', async () => {
    const { server, vector } = given();
    const [half] = await vector(`vm_cpu_cores{instance_uuid="${server}"} / 2`);
    expect(half?.value[1]).toBe('0.75');
    expect(Object.keys(half?.metric ?? {}).sort()).toEqual(['host', 'instance', 'instance_uuid', 'job']);
    const [double] = await vector(`2 * vm_cpu_cores{instance_uuid="${server}"}`);
    expect(double?.value[1]).toBe('3');
    const [stamp] = await vector(`timestamp(vm_cpu_cores{instance_uuid="${server}"})`);
    expect(Math.abs(Number(stamp?.value[1]) - Date.now() / 1000)).toBeLessThan(30);
    expect(Object.keys(stamp?.metric ?? {}).sort()).toEqual(['host', 'instance', 'instance_uuid', 'job']);
    const [average] = await vector(`max_over_time(vm_cpu_cores{instance_uuid="${server}"}[1m])`);
    expect(average?.value[1]).toBe('1.5');
    expect(Object.keys(average?.metric ?? {}).sort()).toEqual(['host', 'instance', 'instance_uuid', 'job']);
    const [sum] = await vector(`sum by (host) (vm_cpu_cores{host="${cloud().hosts[0]}"})`);
    expect(sum).toEqual({ metric: { host: cloud().hosts[0] }, value: [expect.any(Number), '1.5'] });
  });

  test('matchers select, and a selector that finds nothing answers an empty vector', async () => {
    const { vector } = given();
    const [, other] = cloud().hosts;
    expect((await vector(`host_cpu_utilisation{host="${other}"}`)).length).toBe(1);
    expect((await vector(`host_cpu_utilisation{host=~"${other}|nobody"}`)).length).toBe(1);
    expect((await vector(`host_cpu_utilisation{host!="${other}"}`)).map((each) => each.metric.host)).not.toContain(
      other,
    );
    expect(await vector('no_such_metric')).toEqual([]);
  });
}

/** Range queries. */
function ofRanges(given: () => PrometheusGiven, cloud: () => CloudUnderTest): void {
  test('a range query answers a matrix', async () => {
    const { wire } = given();
    const end = Math.floor(Date.now() / 1000);
    const answer = await wire.prometheus('/api/v1/query_range', {
      query: `host_cpu_utilisation{host="${cloud().hosts[0]}"}`,
      start: String(end - 4),
      end: String(end),
      step: '2',
    });
    const { result } = promMatrix.parse(answer.body).data;
    expect(result.length).toBe(1);
    expect(result[0]?.values.length).toBeGreaterThan(0);
    expect(result[0]?.values.length).toBeLessThanOrEqual(3);
  });

  test('a range query with a step of a day answers those days of which there are samples', async () => {
    const { wire } = given();
    const end = Math.floor(Date.now() / 1000) - 1;
    const day = 86_400;
    const answer = await wire.prometheus('/api/v1/query_range', {
      query: `host_cpu_utilisation{host="${cloud().hosts[0]}"}`,
      start: String(end - 14 * day),
      end: String(end),
      step: String(day),
    });
    const { result } = promMatrix.parse(answer.body).data;
    expect(result.length).toBe(1);
    const times = result[0]?.values.map(([time]) => time) ?? [];
    expect(times).toContain(end);
    expect(times.filter((time) => (end - time) % day !== 0 || time < end - 14 * day)).toEqual([]);
  });
}

/** Refused queries, and the lists of names. */
function ofRefusals(given: () => PrometheusGiven, cloud: () => CloudUnderTest): void {
  test('what it cannot read is 400 bad_data with its own sentence', async () => {
    const { wire } = given();
    const cases: [string, Record<string, string>, string][] = [
      [
        '/api/v1/query',
        { query: '' },
        'invalid parameter "query": unknown position: parse error: no expression found in input',
      ],
      [
        '/api/v1/query',
        { query: 'foo(bar)' },
        'invalid parameter "query": 1:1: parse error: unknown function with name "foo"',
      ],
      [
        '/api/v1/query',
        { query: 'up', time: 'x' },
        `invalid parameter "time": Invalid time value for 'time': cannot parse "x" to a valid timestamp`,
      ],
      [
        '/api/v1/query_range',
        { query: 'up', end: '2', step: '1' },
        'invalid parameter "start": cannot parse "" to a valid timestamp',
      ],
      [
        '/api/v1/query_range',
        { query: 'up', start: '0', end: '100000', step: '1' },
        'exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)',
      ],
    ];
    for (const [path, parameters, error] of cases) {
      const answer = await wire.prometheus(path, parameters);
      expect(answer.status).toBe(400);
      expect(promError.parse(answer.body).error).toBe(error);
    }
    for (const query of ['foo{', 'a b', '(', 'sum by (host', 'up[5m', 'avg_over_time(up)']) {
      const answer = await wire.prometheus('/api/v1/query', { query });
      expect(answer.status, query).toBe(400);
      expect(promError.parse(answer.body).error).toMatch(/^invalid parameter "query": .*parse error: /);
    }
  });

  test('the values of a label are a sorted list, also of the names of metrics', async () => {
    const { wire } = given();
    const values = async (label: string) => {
      const answer = await wire.prometheus(`/api/v1/label/${label}/values`);
      expect(answer.status, answer.text).toBe(200);
      return (answer.body as { status: 'success'; data: string[] }).data;
    };
    const names = await values('__name__');
    expect(names).toEqual(expect.arrayContaining(['host_cpu_utilisation', 'vm_cpu_cores']));
    expect(names).toEqual(names.toSorted());
    expect(await values('host')).toEqual(expect.arrayContaining([...cloud().hosts]));
    expect(await values('no_such_label')).toEqual([]);
  });

  test('runtimeinfo answers', async () => {
    const { wire } = given();
    const answer = await wire.prometheus('/api/v1/status/runtimeinfo');
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ status: 'success', data: { startTime: expect.any(String) } });
  });
}
