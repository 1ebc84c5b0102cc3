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

/** The cloud of `test/openstack/bed`, which must be up. */
export async function openBed(): Promise<CloudUnderTest> {
  const account = { identity: IDENTITY, username: 'admin', password: 'secret', project: 'admin' };
  let token = '';
  const call = async (method: string, url: string, version: string, body?: unknown) => {
    const headers = { 'X-Auth-Token': token, 'OpenStack-API-Version': version };
    const answer = await send(method, url, headers, body);
    if (answer.status >= 400) throw new Error(`${method} ${url}: ${answer.status} ${answer.text}`);
    return answer.body;
  };
  const login = await send(
    'POST',
    `${IDENTITY}/auth/tokens`,
    {},
    passwordBody({ ...account } as Parameters<typeof passwordBody>[0]),
  );
  token = login.headers.get('x-subject-token') ?? '';
  const owner = z.object({ token: z.object({ user: z.object({ id: z.string() }) }) }).parse(login.body).token.user.id;
  const credentials = `${IDENTITY}/users/${owner}/application_credentials`;
  const made = z
    .object({ application_credential: z.object({ id: z.string(), secret: z.string() }) })
    .parse(await call('POST', credentials, '', { application_credential: { name: `contract-${Date.now()}` } }));
  const person = await personOf(call);
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
  const provider = async (host: string): Promise<string> => {
    const body = z
      .object({ resource_providers: z.array(z.object({ uuid: z.string() })) })
      .parse(await call('GET', `${PLACEMENT}/resource_providers?name=${host}`, 'placement 1.36'));
    return body.resource_providers[0]?.uuid ?? '';
  };
  /** The id of a flavor of the suite, which is created if needed; `trait`: only hosts with this trait take it. */
  const flavor = async (
    name: string,
    size: { readonly vcpus: number; readonly ram: number; readonly disk: number },
    trait?: string,
  ): Promise<string> => {
    const id = `contract-${name}`;
    const { flavors } = z
      .object({ flavors: z.array(z.object({ id: z.string() })) })
      .parse(await call('GET', `${COMPUTE}/flavors`, 'compute 2.96'));
    if (flavors.some((each) => each.id === id)) return id;
    await call('POST', `${COMPUTE}/flavors`, 'compute 2.96', { flavor: { id, name: `contract.${name}`, ...size } });
    if (trait === undefined) return id;
    await call('POST', `${COMPUTE}/flavors/${id}/os-extra_specs`, 'compute 2.96', {
      extra_specs: { [`trait:${trait}`]: 'required' },
    });
    await call('PUT', `${PLACEMENT}/traits/${trait}`, 'placement 1.36');
    if (foreign !== null) {
      const traits = `${PLACEMENT}/resource_providers/${await provider(foreign)}/traits`;
      const had = z
        .object({ resource_provider_generation: z.number(), traits: z.array(z.string()) })
        .parse(await call('GET', traits, 'placement 1.36'));
      await call('PUT', traits, 'placement 1.36', { ...had, traits: [...had.traits, trait] });
    }
    return id;
  };
  /** The consumers that fill up a host. */
  const fillers = (host: string): readonly [string, string] => {
    const number = host.replace(/\D/g, '').padStart(12, '0');
    return [`0f111111-0000-4000-8000-${number}`, `0f112222-0000-4000-8000-${number}`];
  };
  return {
    name: 'bed',
    ...account,
    prometheus,
    hosts: [first, second, third, fourth, fifth, sixth],
    foreignHost: foreign,
    imageRef: readFileSync(`${bedRoot}/lab/image.id`, 'utf8').trim(),
    flavorRef: '1',
    largerFlavorRef: await flavor('larger', { vcpus: 4, ram: 8192, disk: 1 }),
    foreignFlavorRef: await flavor('foreign', { vcpus: 2, ram: 4096, disk: 1 }, NEW),
    disklessFlavorRef: await flavor('diskless', { vcpus: 2, ram: 4096, disk: 0 }),
    patienceMs: PATIENCE_MS,
    lookEveryMs: LOOK_EVERY_MS,
    applicationCredential: { id: made.application_credential.id, secret: made.application_credential.secret },
    fault: async (server, fault) => {
      await bed('fault', server, fault === 'slow' ? 'slow 8' : (fault ?? 'clear'));
    },
    power: (server, state) => tell('power', server, String(state)),
    refuse: (host, refuses) => tell('host', host, refuses ? 'refuse' : 'accept'),
    hook: (host, refuses) => tell('host', host, refuses ? 'hook' : 'accept'),
    stop: async (host, stopped) => {
      await bed('host', host, stopped ? 'stop' : 'start');
      await reports(host, stopped ? 'down' : 'up');
    },
    kill: async (host) => {
      await bed('host', host, 'kill');
    },
    start: async (host) => {
      await bed('host', host, 'start');
      await reports(host, 'up');
    },
    holdScheduler: async (held) => {
      await bed('part', 'scheduler', held ? 'stop' : 'start');
    },
    crossCells: async (allowed) => {
      await bed('cells', allowed ? 'open' : 'closed');
    },
    fill: async (host, full) => {
      if (!full) {
        for (const filler of fillers(host))
          await call('DELETE', `${PLACEMENT}/allocations/${filler}`, 'placement 1.36').catch(() => undefined);
        return;
      }
      const [filler, second] = fillers(host);
      const id = await provider(host);
      const summary = z
        .object({
          provider_summaries: z.record(
            z.string(),
            z.object({ resources: z.record(z.string(), z.object({ capacity: z.number(), used: z.number() })) }),
          ),
        })
        .parse(
          await call('GET', `${PLACEMENT}/allocation_candidates?resources=VCPU:1&in_tree=${id}`, 'placement 1.36'),
        );
      const cpu = summary.provider_summaries[id]?.resources.VCPU;
      // One allocation takes at most max_unit. The rest of the memory fits into one allocation.
      const memory = summary.provider_summaries[id]?.resources.MEMORY_MB;
      if (cpu === undefined || memory === undefined) throw new Error(`${host} has no room to take`);
      const project = z.object({ token: z.object({ project: z.object({ id: z.string() }) }) }).parse(login.body).token
        .project.id;
      await call('PUT', `${PLACEMENT}/allocations/${filler}`, 'placement 1.36', {
        allocations: { [id]: { resources: { VCPU: Math.min(64, cpu.capacity - cpu.used), MEMORY_MB: 262_144 } } },
        project_id: project,
        user_id: owner,
        consumer_generation: null,
      });
      const rest = memory.capacity - memory.used - 262_144;
      if (rest > 4095)
        await call('PUT', `${PLACEMENT}/allocations/${second}`, 'placement 1.36', {
          allocations: { [id]: { resources: { MEMORY_MB: rest } } },
          project_id: project,
          user_id: owner,
          consumer_generation: null,
        });
    },
    person: person.account,
    takeRole: (taken) => person.grant(!taken),
    reset: async () => {
      await bed('reset');
    },
    close: async () => {
      await bed('reset');
      await person.remove();
      await call('DELETE', `${credentials}/${made.application_credential.id}`, '');
    },
  };
}

async function tell(...words: string[]): Promise<void> {
  await bed(...words);
}

/** Makes a user with a role of its own on the project of the admin. `call` asks the cloud as its admin. */
async function personOf(call: (method: string, url: string, version: string, body?: unknown) => Promise<unknown>) {
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
