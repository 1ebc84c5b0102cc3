import type { CellsAsked, Snapshot } from '@kronos/contracts';
import type { Neutron, Nova, Port } from '@kronos/openstack';
import { flavor, server } from '@kronos/openstack/testing';
import { cellsSettings, snapshotOf } from '@kronos/placement/testing';
import { describe, expect, it } from 'vitest';
import { aggregate } from '../testing/given.ts';
import { type CellReadsInput, readCells } from './cells.ts';
import { indexServers } from './servers.ts';

const home: Snapshot = snapshotOf({
  policies: {},
  hosts: { h1: {}, h2: {} },
  vms: { a: { host: 'h1' }, b: { host: 'h1', set: { projectId: 'other' } }, c: { host: 'h2', set: { name: 'web' } } },
  snapshot: { aggregate: 'old' },
});
const servers = [
  server('a', 'h1', { volumeIds: ['v1', 'v2'] }),
  server('b', 'h1'),
  server('c', 'h2'),
  server('elsewhere', 'h3'),
];
const port = (id: string, serverId: string): Port => ({
  id,
  serverId,
  vnicType: 'normal',
  mac: `mac of ${id}`,
  requestsResources: false,
});

type Given = {
  readonly asked?: Partial<CellsAsked>;
  readonly ports?: readonly Port[] | Error;
  readonly flavors?: Error;
};

/** Reads the facts, and gives the servers whose ports were requested. */
async function read({ asked = {}, ports = [], flavors }: Given = {}) {
  const seen: string[][] = [];
  let flavorReads = 0;
  const neutron: Neutron = {
    listPortKinds: async () => [],
    async listPorts(ids) {
      seen.push([...ids]);
      if (ports instanceof Error) throw ports;
      return ports.filter(({ serverId }) => ids.includes(serverId));
    },
  };
  const nova: Pick<Nova, 'listFlavors'> = {
    async listFlavors() {
      flavorReads += 1;
      if (flavors !== undefined) throw flavors;
      return [
        {
          id: '1',
          ...flavor,
          name: 'new.small',
          rootGb: 10,
          ephemeralGb: 5,
          swapMb: 1500,
          extraSpecs: { 'hw:x': '1' },
        },
        { id: '2', ...flavor, name: 'other' },
      ];
    },
  };
  const input: CellReadsInput = {
    commandId: 'c1',
    asked: { from: ['old'], to: 'new', flavorMap: {}, servers: null, project: null, limit: null, ...asked },
    settings: { ...cellsSettings, map: { old: 'cell1' } },
    home,
    others: [],
    lists: {
      aggregates: {
        ok: true,
        value: [
          aggregate('old', ['h1', 'h2'], { metadata: { hw: 'old' } }),
          aggregate('ssd', ['h1'], { metadata: { hw: 'ssd', disk: 'fast' } }),
        ],
      },
    },
    index: indexServers(servers, []),
  };
  const reading = await readCells(input, nova, neutron, new AbortController().signal);
  return { reading, seen, flavorReads };
}

describe('what is read for a plan between cells', () => {
  it('volumes and ports of the servers that leave, and of no others', async () => {
    const { reading, seen } = await read({ ports: [port('p1', 'a'), port('p2', 'c'), port('p3', 'elsewhere')] });
    expect(seen).toEqual([['a', 'b', 'c']]);
    expect(reading.facts).toEqual({
      a: { volumes: 2, ports: [{ id: 'p1', requestsResources: false, vnicType: 'normal' }] },
      b: { volumes: 0, ports: [] },
      c: { volumes: 0, ports: [{ id: 'p2', requestsResources: false, vnicType: 'normal' }] },
    });
    expect(reading).toMatchObject({ commandId: 'c1', map: { old: 'cell1' }, unread: [] });
  });

  it.each([
    [{ from: ['h2'] }, [['c']]],
    [{ servers: ['web', 'a'] }, [['a', 'c']]],
    [{ project: 'other' }, [['b']]],
    [{ from: ['h9'] }, []],
  ])('asks about what was asked for: %j', async (asked, ids) => {
    expect((await read({ asked })).seen).toEqual(ids);
  });

  it('the metadata of every aggregate of a host', async () => {
    expect((await read()).reading.metadata).toEqual({ h1: { hw: 'old,ssd', disk: 'fast' }, h2: { hw: 'old' } });
  });

  it('the flavors that the map leads to, and none without a map', async () => {
    const { reading } = await read({ asked: { flavorMap: { small: 'new.small', big: 'missing' } } });
    expect(reading.flavors).toEqual({
      'new.small': { name: 'new.small', vcpus: 2, ramMb: flavor.ramMb, diskGb: 17, extraSpecs: { 'hw:x': '1' } },
    });
    expect((await read()).flavorReads).toBe(0);
  });

  it('of what cannot be read it says why, and nothing is guessed', async () => {
    const { reading } = await read({
      asked: { flavorMap: { small: 'new.small' } },
      ports: new Error('no network service'),
      flavors: new Error('refused'),
    });
    expect(reading).toMatchObject({ facts: {}, flavors: {} });
    expect(reading.unread.map(({ code, text }) => [code, text])).toEqual([
      ['flavors-unknown', "Nova's flavors could not be read: refused"],
      ['ports-unknown', 'the ports of the servers could not be read: no network service'],
    ]);
  });
});
