import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { until } from '@kronos/clock/testing';
import { z } from 'zod';
import { bed, bedRoot, bedUrls } from '../openstack/urls.ts';
import type { CloudUnderTest } from './cloud.ts';
import { passwordBody, send } from './wire.ts';

const { identity: IDENTITY, compute: COMPUTE, placement: PLACEMENT, prometheus } = bedUrls;
const PATIENCE_MS = 90_000;
const LOOK_EVERY_MS = 250;
/** Of the hosts of the second cell alone. */
const NEW = 'CUSTOM_CELL2';

type Call = (method: string, url: string, version: string, body?: unknown) => Promise<unknown>;

interface Admin {
  readonly call: Call;
  readonly userId: string;
  readonly projectId: string;
}

/** Logs in as the administrator of the bed. */
async function adminOf(
  account: Pick<CloudUnderTest, 'identity' | 'username' | 'password' | 'project'>,
): Promise<Admin> {
  const login = await send('POST', `${IDENTITY}/auth/tokens`, {}, passwordBody(account));
  const token = login.headers.get('x-subject-token') ?? '';
  const { user, project } = z
    .object({ token: z.object({ user: z.object({ id: z.string() }), project: z.object({ id: z.string() }) }) })
    .parse(login.body).token;
  const call: Call = async (method, url, version, body) => {
    const headers = { 'X-Auth-Token': token, 'OpenStack-API-Version': version };
    const answer = await send(method, url, headers, body);
    if (answer.status >= 400) throw new Error(`${method} ${url}: ${answer.status} ${answer.text}`);
    return answer.body;
  };
  return { call, userId: user.id, projectId: project.id };
}

/** The hosts of both cells, and a wait for what Nova says of one. */
async function hostsOf({ call }: Admin) {
  const services = async () =>
    z
      .object({ services: z.array(z.object({ host: z.string(), state: z.string() })) })
      .parse(await call('GET', `${COMPUTE}/os-services?binary=nova-compute`, 'compute 2.96')).services;
  const reports = async (host: string, wanted: 'up' | 'down'): Promise<void> => {
    const seen = async () => (await services()).some((each) => each.host === host && each.state === wanted);
    await until(seen, PATIENCE_MS, `${host} to come ${wanted}`, LOOK_EVERY_MS);
  };
  const names = (await services()).map((each) => each.host);
  const [foreign = null] = names.filter((each) => /^cmp10\d$/.test(each)).sort();
  const [first, second, third, fourth, fifth, sixth] = names.filter((each) => !/^cmp10\d$/.test(each)).sort();
  if (!first || !second || !third || !fourth || !fifth || !sixth)
    throw new Error(
      `the suite needs six hosts in the first cell, and there are ${names.join(', ')}: bed down, then up`,
    );
  const hosts: CloudUnderTest['hosts'] = [first, second, third, fourth, fifth, sixth];
  return { hosts, foreign, reports };
}

async function providerOf(call: Call, host: string): Promise<string> {
  const body = z
    .object({ resource_providers: z.array(z.object({ uuid: z.string() })) })
    .parse(await call('GET', `${PLACEMENT}/resource_providers?name=${host}`, 'placement 1.36'));
  return body.resource_providers[0]?.uuid ?? '';
}

/** The flavors of the suite, by name; those that do not exist are created. */
async function flavorsOf({ call }: Admin, foreign: string | null) {
  const { flavors } = z
    .object({ flavors: z.array(z.object({ id: z.string() })) })
    .parse(await call('GET', `${COMPUTE}/flavors`, 'compute 2.96'));
  /** Null: it was there. */
  const create = async (name: string, vcpus: number, ram: number, disk: number): Promise<string | null> => {
    const id = `contract-${name}`;
    if (flavors.some((each) => each.id === id)) return null;
    const flavor = { id, name: `contract.${name}`, vcpus, ram, disk };
    await call('POST', `${COMPUTE}/flavors`, 'compute 2.96', { flavor });
    return id;
  };
  await create('larger', 4, 8192, 1);
  const created = await create('foreign', 2, 4096, 1);
  if (created !== null) await confine(call, created, foreign);
  await create('diskless', 2, 4096, 0);
  return {
    flavorRef: '1',
    largerFlavorRef: 'contract-larger',
    foreignFlavorRef: 'contract-foreign',
    disklessFlavorRef: 'contract-diskless',
  };
}

/** Lets only hosts of the second cell take a flavor. */
async function confine(call: Call, flavor: string, foreign: string | null): Promise<void> {
  await call('POST', `${COMPUTE}/flavors/${flavor}/os-extra_specs`, 'compute 2.96', {
    extra_specs: { [`trait:${NEW}`]: 'required' },
  });
  await call('PUT', `${PLACEMENT}/traits/${NEW}`, 'placement 1.36');
  if (foreign === null) return;
  const traits = `${PLACEMENT}/resource_providers/${await providerOf(call, foreign)}/traits`;
  const had = z
    .object({ resource_provider_generation: z.number(), traits: z.array(z.string()) })
    .parse(await call('GET', traits, 'placement 1.36'));
  await call('PUT', traits, 'placement 1.36', { ...had, traits: [...had.traits, NEW] });
}

/** The consumers that fill up a host. */
function fillersOf(host: string): readonly [string, string] {
  const number = host.replace(/\D/g, '').padStart(12, '0');
  return [`0f111111-0000-4000-8000-${number}`, `0f112222-0000-4000-8000-${number}`];
}

/** Takes all the room of a host, or gives it back. */
async function fill({ call, userId, projectId }: Admin, host: string, full: boolean): Promise<void> {
  const fillers = fillersOf(host);
  if (!full) {
    for (const filler of fillers)
      await call('DELETE', `${PLACEMENT}/allocations/${filler}`, 'placement 1.36').catch(() => undefined);
    return;
  }
  const [filler, second] = fillers;
  const id = await providerOf(call, host);
  const summary = z
    .object({
      provider_summaries: z.record(
        z.string(),
        z.object({ resources: z.record(z.string(), z.object({ capacity: z.number(), used: z.number() })) }),
      ),
    })
    .parse(await call('GET', `${PLACEMENT}/allocation_candidates?resources=VCPU:1&in_tree=${id}`, 'placement 1.36'));
  const cpu = summary.provider_summaries[id]?.resources.VCPU;
  // One allocation takes at most max_unit. The rest of the memory fits into one allocation.
  const memory = summary.provider_summaries[id]?.resources.MEMORY_MB;
  if (cpu === undefined || memory === undefined) throw new Error(`${host} has no room to take`);
  const take = (consumer: string, resources: Readonly<Record<string, number>>) =>
    call('PUT', `${PLACEMENT}/allocations/${consumer}`, 'placement 1.36', {
      allocations: { [id]: { resources } },
      project_id: projectId,
      user_id: userId,
      consumer_generation: null,
    });
  await take(filler, { VCPU: Math.min(64, cpu.capacity - cpu.used), MEMORY_MB: 262_144 });
  const rest = memory.capacity - memory.used - 262_144;
  if (rest > 4095) await take(second, { MEMORY_MB: rest });
}

/** The acts of the bed on servers and hosts. `reports` waits until Nova reports this state of a host. */
const actsOf = (reports: (host: string, wanted: 'up' | 'down') => Promise<void>) => ({
  fault: (server: string, fault: string | null) =>
    tell('fault', server, fault === 'slow' ? 'slow 8' : (fault ?? 'clear')),
  power: (server: string, state: number) => tell('power', server, String(state)),
  refuse: (host: string, refuses: boolean) => tell('host', host, refuses ? 'refuse' : 'accept'),
  hook: (host: string, refuses: boolean) => tell('host', host, refuses ? 'hook' : 'accept'),
  async stop(host: string, stopped: boolean): Promise<void> {
    await bed('host', host, stopped ? 'stop' : 'start');
    await reports(host, stopped ? 'down' : 'up');
  },
  kill: (host: string) => tell('host', host, 'kill'),
  async start(host: string): Promise<void> {
    await bed('host', host, 'start');
    await reports(host, 'up');
  },
  holdScheduler: (held: boolean) => tell('part', 'scheduler', held ? 'stop' : 'start'),
  crossCells: (allowed: boolean) => tell('cells', allowed ? 'open' : 'closed'),
  reachForeignCell: (reached: boolean) => tell('cells', reached ? 'reached' : 'cut'),
  reset: () => tell('reset'),
});

/** The cloud of `test/openstack/bed`, which must be up. */
export async function openBed(): Promise<CloudUnderTest> {
  const account = { identity: IDENTITY, username: 'admin', password: 'secret', project: 'admin' };
  const admin = await adminOf(account);
  const { call } = admin;
  const credentials = `${IDENTITY}/users/${admin.userId}/application_credentials`;
  const { application_credential: applicationCredential } = z
    .object({ application_credential: z.object({ id: z.string(), secret: z.string() }) })
    .parse(await call('POST', credentials, '', { application_credential: { name: `contract-${Date.now()}` } }));
  const person = await personOf(call);
  const { hosts, foreign, reports } = await hostsOf(admin);
  return {
    name: 'bed',
    ...account,
    prometheus,
    hosts,
    foreignHost: foreign,
    imageRef: readFileSync(`${bedRoot}/lab/image.id`, 'utf8').trim(),
    ...(await flavorsOf(admin, foreign)),
    patienceMs: PATIENCE_MS,
    lookEveryMs: LOOK_EVERY_MS,
    applicationCredential,
    ...actsOf(reports),
    fill: (host, full) => fill(admin, host, full),
    person: person.account,
    takeRole: (taken) => person.grant(!taken),
    close: async () => {
      await bed('reset');
      await person.remove();
      await call('DELETE', `${credentials}/${applicationCredential.id}`, '');
    },
  };
}

async function tell(...words: string[]): Promise<void> {
  await bed(...words);
}

/** Makes a user with a role of its own on the project of the admin. `call` asks the cloud as its admin. */
async function personOf(call: Call) {
  const name = `contract-${randomUUID().slice(0, 8)}`;
  const account = { username: name, password: randomUUID() };
  const idOf = (kind: string, body: unknown): string =>
    z.looseObject({ [kind]: z.object({ id: z.string() }) }).parse(body)[kind]?.id ?? '';
  const found = z
    .object({ projects: z.array(z.object({ id: z.string() })) })
    .parse(await call('GET', `${IDENTITY}/projects?name=admin`, ''));
  const role = idOf('role', await call('POST', `${IDENTITY}/roles`, '', { role: { name } }));
  const asked = { user: { name, password: account.password, domain_id: 'default' } };
  const user = idOf('user', await call('POST', `${IDENTITY}/users`, '', asked));
  const grant = async (granted: boolean): Promise<void> => {
    const url = `${IDENTITY}/projects/${found.projects[0]?.id}/users/${user}/roles/${role}`;
    await call(granted ? 'PUT' : 'DELETE', url, '');
  };
  await grant(true);
  return {
    account,
    grant,
    remove: async (): Promise<void> => {
      await call('DELETE', `${IDENTITY}/users/${user}`, '');
      await call('DELETE', `${IDENTITY}/roles/${role}`, '');
    },
  };
}
