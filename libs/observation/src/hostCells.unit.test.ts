import type { HostCell } from '@kronos/contracts';
import { Forbidden, type Server, type ServerTopology } from '@kronos/openstack';
import { flavor, server } from '@kronos/openstack/testing';
import type { Sample } from '@kronos/prometheus';
import { cellsOf } from '@kronos/rules';
import { describe, expect, it } from 'vitest';
import { hypervisor } from '../testing/given.ts';
import { CellReader, type CellReaderDeps } from './hostCells.ts';
import { indexServers } from './servers.ts';
import type { HostFacts } from './topology.ts';

const GIB = 1024 ** 3;
const pinnedFlavor = { ...flavor, extraSpecs: { 'hw:cpu_policy': 'dedicated' } };
const topology: ServerTopology = { nodes: [{ hostNode: 1, vcpus: 2, pinned: 2, memoryMb: 4096 }], pageSizeKb: null };
const cells = [{ hostCell: 1, dedicatedCpus: 2, sharedCpus: 0, memoryMb: 4096, pageSizeKb: null }];
const host = (name: string): HostFacts => ({
  name,
  hypervisorHostname: name,
  hypervisorId: `rp-${name}`,
  hypervisorType: 'QEMU',
  hypervisorVersion: 1,
  availabilityZone: null,
  cell: null,
  service: { status: 'enabled', state: 'up', forcedDown: false, disabledReason: null },
  otherAggregates: [],
});
const amount = (total: number) => ({ capacity: total, total, used: 0, minUnit: 1, maxUnit: null, stepSize: 1 });

/** Reads the cells of cmp1 and cmp2, twice. */
async function readTwice(servers: readonly Server[], deps: Partial<CellReaderDeps> & { later?: readonly Server[] }) {
  const asked: string[] = [];
  const { later, ...rest } = deps;
  const reader = new CellReader({
    nova: {
      async getServerTopology(id) {
        asked.push(id);
        return topology;
      },
    },
    prometheus: null,
    file: null,
    labels: ['instance'],
    concurrency: 2,
    clock: { monotonic: () => 0 },
    ...rest,
  });
  const read = (of: readonly Server[]) =>
    reader.read(
      {
        index: indexServers(of, []),
        hosts: [host('cmp1'), host('cmp2')],
        capacity: {
          providers: new Map(
            ['cmp1', 'cmp2'].map((name) => [
              `rp-${name}`,
              { inventory: { VCPU: amount(8), PCPU: amount(24) }, traits: [] },
            ]),
          ),
        },
        lists: {
          hypervisors: { ok: true, value: ['cmp1', 'cmp2'].map((name) => hypervisor(name)) },
          services: { ok: true, value: [] },
        },
      },
      new AbortController().signal,
    );
  return { first: await read(servers), second: await read(later ?? servers), third: () => read(servers), asked };
}

const codes = ({ notes }: { notes: readonly { code: string }[] }): string[] => notes.map(({ code }) => code);

describe('the NUMA cells of servers', () => {
  it('are read once while a server stays where it is, and again when it has moved', async () => {
    const one = server('one', 'cmp1', { flavor: pinnedFlavor });
    const { first, second, asked } = await readTwice([one], { later: [{ ...one, host: 'cmp2' }] });
    expect([first.servers, second.servers]).toEqual([new Map([['one', cells]]), new Map([['one', cells]])]);
    expect(asked).toEqual(['one', 'one']);
    expect((await readTwice([one], {})).asked).toEqual(['one']);
  });

  it('are forgotten with a server that is gone', async () => {
    const one = server('one', 'cmp1', { flavor: pinnedFlavor });
    const { asked, third } = await readTwice([one], { later: [] });
    await third();
    expect(asked).toEqual(['one', 'one']);
  });

  it('are read of servers that need some by flavor or image, on hosts of the aggregate', async () => {
    const image = server('image', 'cmp1', { imageProperties: { hw_numa_nodes: '2' } });
    const elsewhere = server('elsewhere', 'cmp9', { flavor: pinnedFlavor });
    const { asked } = await readTwice([image, elsewhere, server('plain', 'cmp1')], {});
    expect(asked).toEqual(['image']);
  });

  it('are not read at all, and nothing is asked of Prometheus, where no server needs any', async () => {
    const { first, asked } = await readTwice([server('plain', 'cmp1')], {
      prometheus: { instant: () => Promise.reject(new Error('asked')) },
    });
    expect([first.hosts.size, first.servers.size, asked.length, codes(first)]).toEqual([0, 0, 0, []]);
  });

  it('are unknown where Nova does not show them, and one refusal is enough', async () => {
    let calls = 0;
    const nova = {
      async getServerTopology(): Promise<ServerTopology> {
        calls++;
        throw new Forbidden({ service: 'nova', method: 'GET', url: '/servers/one/topology' }, 403, 'not allowed');
      },
    };
    const servers = ['a', 'b', 'c', 'd'].map((id) => server(id, 'cmp1', { flavor: pinnedFlavor }));
    const { first } = await readTwice(servers, { nova });
    expect([...first.servers.values()]).toEqual([null, null, null, null]);
    expect(codes(first)).toContain('server-cells-unread');
    // Two at a time, in each of two readings.
    expect(calls).toBeLessThanOrEqual(4);
    expect(cellsOf({ nodes: [{ hostNode: null, vcpus: 2, pinned: null, memoryMb: 1 }], pageSizeKb: 4 })).toBeNull();
  });
});

describe('the NUMA cells of hosts', () => {
  const one = server('one', 'cmp1', { flavor: pinnedFlavor });

  it('come from the file, by the first entry that fits; without one they are unknown', async () => {
    const own: HostCell[] = [{ id: 0, dedicatedCpus: 1, sharedCpus: 1, memoryMb: 1, pages: [] }];
    const { first } = await readTwice([one], { file: [{ hosts: 'gpu*, cmp1', cells: own }] });
    expect(first.hosts).toEqual(
      new Map([
        ['cmp1', own],
        ['cmp2', null],
      ]),
    );
    expect(codes(first)).toEqual(['host-cells-unknown']);
  });

  const sample = (labels: Record<string, string>, value: number): Sample => ({ labels, timeMs: 0, value });
  const exporter = (
    change: (query: string, samples: Sample[]) => Sample[] = (_, samples) => samples,
    warnings: string[] = [],
  ) => ({
    asked: 0,
    async instant(query: string) {
      this.asked++;
      const nodes = ['0', '1'].map((node) => ({ instance: 'cmp1:9100', node }));
      const samples =
        query === 'node_memory_numa_MemTotal'
          ? nodes.map((labels) => sample(labels, 64 * GIB))
          : query === 'node_memory_numa_HugePages_Total'
            ? nodes.map((labels) => sample(labels, 1024))
            : [sample({ instance: 'cmp1:9100' }, 2 * 1024 ** 2)];
      return { samples: change(query, samples), warnings, infos: [] };
    },
  });

  it("come from the exporter's metrics, with Placement's CPUs spread evenly, and are kept for a while", async () => {
    const prometheus = exporter();
    const { first, second } = await readTwice([one], { prometheus });
    const cell = (id: number): HostCell => ({
      id,
      dedicatedCpus: 12,
      sharedCpus: 4,
      memoryMb: 64 * 1024,
      pages: [{ sizeKb: 2048, total: 1024 }],
    });
    expect(first.hosts).toEqual(
      new Map([
        ['cmp1', [cell(0), cell(1)]],
        ['cmp2', null],
      ]),
    );
    expect(second.hosts).toEqual(first.hosts);
    expect(prometheus.asked).toBe(3);
  });

  it.each<[string, Parameters<typeof exporter>]>([
    ['two series for one cell', [(_, samples) => [...samples, ...samples]]],
    ['pages of an unknown size', [(query, samples) => (query === 'node_memory_Hugepagesize_bytes' ? [] : samples)]],
    ['an answer that may be partial', [undefined, ['a store is missing']]],
    [
      'CPUs that cannot be spread evenly',
      [
        (_, samples) => [
          ...samples,
          ...samples.flatMap((one) =>
            one.labels.node === '1' ? ['2', '3', '4'].map((node) => ({ ...one, labels: { ...one.labels, node } })) : [],
          ),
        ],
      ],
    ],
  ])('are unknown with %s', async (_, given) => {
    const { first } = await readTwice([one], { prometheus: exporter(...given) });
    expect(first.hosts.get('cmp1')).toBeNull();
    expect(codes(first)).toContain('host-cells-unknown');
  });
});
