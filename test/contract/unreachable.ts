import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type CloudUnderTest, foreignHostOf } from './cloud.ts';
import { type Answer, NEWEST, Wire } from './wire.ts';

/** What Nova's API itself knows of a server: https://docs.openstack.org/api-guide/compute/down_cells.html. */
const LISTED = ['created', 'id', 'links', 'status', 'tenant_id'];
const SHOWN = [
  ...LISTED,
  'OS-EXT-AZ:availability_zone',
  'OS-EXT-STS:power_state',
  'flavor',
  'image',
  'server_groups',
  'user_id',
].sort();
/** Before these Nova says nothing of a cell that it does not reach. */
const OLD = '2.68';
/** This number of calls reaches each of Nova's API processes. A process that has not used a cell before tries it for minutes. */
const CALLS_TO_ALL = 12;

const record = z.record(z.string(), z.unknown());
const fieldsOf = (value: unknown): string[] => Object.keys(record.parse(value)).sort();

const NO_ANSWER = 'nova.exception.NovaException';
const NO_DATABASE = 'oslo_db.exception.DBConnectionError';
const refused = (answer: Answer, exception: string) =>
  expect([answer.status, record.parse(answer.body).computeFault]).toEqual([
    500,
    { code: 500, message: expect.stringContaining(exception) },
  ]);

/** A cloud with one server in each of two cells, both in a group, before its API loses the second cell. */
interface Cut {
  readonly wire: Wire;
  /** A host of the first cell, and one of the second. */
  readonly own: string;
  readonly foreign: string;
  readonly group: string;
  readonly here: string;
  readonly there: string;
  readonly hypervisor: string;
  readonly service: string;
}

const list = async ({ wire }: Pick<Cut, 'wire'>, path: string, version = NEWEST) => {
  const [found] = Object.entries(record.parse(await wire.get(path, version)));
  return z.array(record).parse(found?.[1]);
};
const idsOf = async (cut: Pick<Cut, 'wire'>, query = '', version = NEWEST): Promise<unknown[]> =>
  (await list(cut, `/servers/detail?all_tenants=true${query}`, version)).map(({ id }) => id);

async function cutOff(cloud: CloudUnderTest, wire: Wire, foreign: string): Promise<Cut> {
  const [own] = cloud.hosts;
  const group = await wire.group('anti-affinity');
  const here = await wire.bootOne(own, { group });
  const there = await wire.bootOne(foreign, { group });
  await Promise.all(Array.from({ length: CALLS_TO_ALL }, () => idsOf({ wire })));
  const [hypervisor, service] = [await wire.provider(foreign), await wire.serviceId(foreign)];
  return { wire, own, foreign, group, here, there, hypervisor, service };
}

/** Only the list without filters and paging has the servers, with what the API knows. */
async function servers(cut: Cut): Promise<void> {
  const { wire, foreign, group, here, there } = cut;
  const all = await list(cut, '/servers/detail?all_tenants=true');
  expect(all.map(({ id }) => id)).toEqual([there, here]);
  expect([fieldsOf(all[0]), all[0]?.status, all[1]?.status]).toEqual([LISTED, 'UNKNOWN', 'ACTIVE']);
  const project = `project_id=${all[0]?.tenant_id}`;
  for (const query of ['limit=10', 'deleted=false', project])
    expect(await idsOf(cut, `&${query}`), query).toEqual([here]);
  // Deleted servers of other tests are in it, too.
  const changed = await list(cut, '/servers/detail?all_tenants=true&changes-since=2020-01-01T00:00:00Z');
  expect(changed.flatMap(({ id, status }) => (status === 'DELETED' ? [] : [id]))).toEqual([here]);
  for (const query of [`marker=${here}`, `host=${foreign}`]) expect(await idsOf(cut, `&${query}`), query).toEqual([]);
  expect(await idsOf(cut, '', OLD)).toEqual([here]);
  refused(await wire.nova('GET', `/servers/detail?all_tenants=true&marker=${there}`), NO_DATABASE);
  expect(await list(cut, '/servers?all_tenants=true')).toEqual([
    { id: there, status: 'UNKNOWN', links: expect.anything() },
    expect.not.objectContaining({ status: expect.anything() }),
  ]);
  const { server } = record.parse(await wire.get(`/servers/${there}`));
  expect(fieldsOf(server)).toEqual(SHOWN);
  expect(server).toMatchObject({ status: 'UNKNOWN', 'OS-EXT-STS:power_state': 0, server_groups: [group] });
  refused(await wire.nova('GET', `/servers/${there}`, OLD), NO_ANSWER);
}

/** Of its computes the list of services has the names; the list of hypervisors fails for the whole cloud. */
async function computes(cut: Cut): Promise<void> {
  const { wire, own, foreign, group, hypervisor } = cut;
  const services = await list(cut, '/os-services?binary=nova-compute');
  const named = { binary: 'nova-compute', host: foreign, status: 'UNKNOWN' };
  expect(services.find(({ host }) => host === foreign)).toEqual(named);
  expect(services.find(({ host }) => host === own)).toMatchObject({ status: 'enabled', state: 'up' });
  const older = await list(cut, '/os-services?binary=nova-compute', OLD);
  expect(older.map(({ host }) => host)).not.toContain(foreign);
  for (const path of ['', '/detail', '/detail?limit=1000', `/detail?hypervisor_hostname_pattern=${own}`])
    refused(await wire.nova('GET', `/os-hypervisors${path}`), NO_DATABASE);
  refused(await wire.nova('GET', `/os-hypervisors/${hypervisor}`), NO_DATABASE);
  expect(await list(cut, '/os-migrations')).toEqual([]);
  refused(await wire.nova('GET', '/os-server-groups?all_projects=true'), NO_DATABASE);
  refused(await wire.nova('GET', `/os-server-groups/${group}`), NO_DATABASE);
}

async function requests({ wire, own, foreign, here, there, service }: Cut, next: string): Promise<void> {
  refused(await wire.liveMigrate(there, own), NO_ANSWER);
  refused(await wire.act(there, { migrate: { host: own } }), NO_ANSWER);
  refused(await wire.act(here, { migrate: { host: foreign } }), NO_DATABASE);
  refused(await wire.nova('PUT', `/os-services/${service}`, NEWEST, { status: 'disabled' }), NO_DATABASE);
  for (const part of ['os-instance-actions', 'migrations', 'topology', 'metadata'])
    refused(await wire.nova('GET', `/servers/${there}/${part}`), NO_ANSWER);
  const elsewhere = await wire.liveMigrate(here, foreign);
  const unknown = expect.stringContaining(`Compute host ${foreign} could not be found.`);
  expect([elsewhere.status, elsewhere.text]).toEqual([400, unknown]);
  expect((await wire.liveMigrate(here, next)).status).toBe(202);
  expect((await wire.follow(here)).row.status).toBe('completed');
}

/** A cell whose database Nova's API does not reach. Its computes and its conductor go on. */
export function unreachableCellContract(cloud: () => CloudUnderTest): void {
  describe('Nova, while its API does not reach a cell', () => {
    let wire: Wire;
    beforeEach(async () => {
      await cloud().reset();
      wire = await Wire.connect(cloud());
    });

    test('its lists lack the servers or fail, and it does nothing with them', async (context) => {
      const cut = await cutOff(cloud(), wire, foreignHostOf(cloud(), context));
      const before = await wire.get(`/servers/${cut.there}`);
      await cloud().reachForeignCell(false);
      await servers(cut);
      await computes(cut);
      await requests(cut, cloud().hosts[1]);

      await cloud().reachForeignCell(true);
      const now = await wire.until('the server as it was', async () => {
        const shown = await wire.get(`/servers/${cut.there}`);
        return fieldsOf(record.parse(shown).server).includes('OS-EXT-STS:vm_state') && shown;
      });
      expect(now).toEqual(before);
      expect((await idsOf(cut, '&limit=10')).sort()).toEqual([cut.here, cut.there].sort());
      expect(await wire.provider(cut.foreign)).toBe(cut.hypervisor);
    });
  });
}
