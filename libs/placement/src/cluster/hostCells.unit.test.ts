import type { HostCell, HostObservation, ServerObservation } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { decideInput, SKETCH_TIME, type Sketch } from '../../testing/index.ts';
import { decide } from '../decide.ts';
import { observe } from '../snapshot/observe.ts';
import { checkMove, Room } from './constraints.ts';
import { type CellModel, cellRefusal, cellRefusalText, cellSlots, cellsAt } from './hostCells.ts';

const GIB = 1024;
const cell = (id: number): HostCell => ({ id, dedicatedCpus: 8, sharedCpus: 8, memoryMb: 32 * GIB, pages: [] });
const cells = (...of: HostCell[]): { set: Partial<HostObservation> } => ({ set: { topology: { cells: of } } });
const unknown = { set: { topology: null } };
/** A VM with pinned CPUs on one cell of its host. */
const pinned = (
  host: string,
  hostCell: number | null,
  dedicatedCpus: number,
  more: Partial<ServerObservation> = {},
) => ({
  host,
  w: { cpu: 0.1 },
  set: {
    extraSpecs: { 'hw:cpu_policy': 'dedicated' },
    topology: { cells: [{ hostCell, dedicatedCpus, sharedCpus: 0, memoryMb: GIB, pageSizeKb: null }] },
    ...more,
  },
});

function cluster(hosts: Sketch['hosts'], vms: Sketch['vms'], options: Sketch['options'] = {}) {
  const input = decideInput({ policies: { cpu: { threshold: 0.1 } }, hosts, vms, options });
  return observe(input.snapshot, input.memory, input.options, Date.parse(SKETCH_TIME)).cluster;
}

const index = (of: ReadonlyMap<string, number>, name: string): number => {
  const found = of.get(name);
  if (found === undefined) throw new Error(`the cluster has no ${name}`);
  return found;
};
const modelOf = ({ numa }: ReturnType<typeof cluster>): CellModel => {
  if (numa === null) throw new Error('no VM of the cluster needs cells');
  return numa;
};

const verdict = (of: ReturnType<typeof cluster>, vm: string, host: string): string => {
  const found = checkMove(of, vm, host);
  return 'ok' in found ? 'legal' : found.code;
};

describe('the NUMA cells of hosts', () => {
  const hosts = { a: cells(cell(0), cell(1)), b: cells(cell(0), cell(1)), c: {} };

  it('act: a host takes a VM where a cell has its CPUs free', () => {
    const of = cluster(hosts, { v: pinned('a', 0, 4), w: pinned('b', 0, 6), x: pinned('b', 1, 4) });
    expect(verdict(of, 'v', 'b')).toBe('legal');
  });

  it('refuse: two halves in two cells are no whole', () => {
    const of = cluster(hosts, { v: pinned('a', 0, 4), w: pinned('b', 0, 6), x: pinned('b', 1, 6) });
    expect(verdict(of, 'v', 'b')).toBe('numa-fit');
    expect(cellRefusalText(modelOf(of), index(of.vmIndex, 'v'), index(of.hostIndex, 'b'), 'b')).toBe(
      'no NUMA cell of b has 4 dedicated CPUs and 1 GiB of memory free',
    );
  });

  it('do nothing to a VM that needs none, and cost nothing where no VM does', () => {
    const plain = { host: 'a', w: { cpu: 0.1 } };
    const of = cluster(hosts, { plain, v: pinned('b', 0, 8), w: pinned('b', 1, 8) });
    expect(verdict(of, 'plain', 'b')).toBe('legal');
    expect(cluster(hosts, { plain }).numa).toBeNull();
  });

  it('refuse where they are unknown, unless an operator allows it', () => {
    const vms = { v: pinned('a', 0, 4) };
    expect(verdict(cluster(hosts, vms), 'v', 'c')).toBe('numa-unknown');
    expect(verdict(cluster({ ...hosts, c: unknown }, vms), 'v', 'c')).toBe('numa-unknown');
    expect(verdict(cluster(hosts, vms, { moveUnknownTopology: true }), 'v', 'c')).toBe('legal');
  });

  it('refuse where one of their VMs, or the VM itself, has unknown needs', () => {
    const strange = { host: 'b', w: { cpu: 0.1 }, set: { topology: null } };
    const of = cluster(hosts, { v: pinned('a', 0, 4), strange });
    expect(verdict(of, 'v', 'b')).toBe('numa-unknown');
    expect(verdict(of, 'strange', 'a')).toBe('numa-unknown');
  });

  it('count a VM whose cell is unknown, or that is still arriving, on every cell', () => {
    expect(verdict(cluster(hosts, { v: pinned('a', 0, 4), w: pinned('b', null, 5) }), 'v', 'b')).toBe('numa-fit');
    const arriving = pinned('a', 0, 5, { alsoOn: ['b'] });
    expect(verdict(cluster(hosts, { v: pinned('a', 0, 4), arriving }), 'v', 'b')).toBe('numa-fit');
    expect(verdict(cluster(hosts, { v: pinned('a', 0, 3), arriving }), 'v', 'b')).toBe('legal');
  });

  it('take several arrivals only if they fit whatever cells Nova chooses, and free nothing for departures', () => {
    const of = cluster(hosts, {
      u: pinned('a', 0, 4),
      v: pinned('a', 0, 4),
      w: pinned('a', 1, 4),
      x: pinned('b', 0, 8),
    });
    const room = new Room(of, { departuresFree: true });
    const [u, v, w, x] = ['u', 'v', 'w', 'x'].map((id) => index(of.vmIndex, id)) as [number, number, number, number];
    const [a, b] = [index(of.hostIndex, 'a'), index(of.hostIndex, 'b')];
    const refused = (vm: number): boolean => cellRefusal(modelOf(of), vm, b, room.arrived ?? new Float64Array()) !== 0;
    room.move(x, b, a);
    expect(refused(u)).toBe(false);
    room.move(u, a, b);
    expect(refused(v)).toBe(false);
    room.move(v, a, b);
    expect(refused(w)).toBe(true);
    room.undo(v, a, b);
    expect(refused(w)).toBe(false);
  });

  it('are counted anew once moves have ended', () => {
    const of = cluster(hosts, { u: pinned('a', 0, 8), x: pinned('b', 0, 8) });
    const [u] = [index(of.vmIndex, 'u')];
    const place = Int32Array.from(of.vmHost);
    place[u] = index(of.hostIndex, 'b');
    const after = cellsAt(modelOf(of), of.vmHost, place);
    const needs = [
      { hostCell: null, dedicatedCpus: 8, sharedCpus: 0, memoryMb: GIB, pageSizeKb: null, smallPages: false },
    ];
    const slots = (model: typeof after, host: string): number =>
      cellSlots(model, needs, { host: index(of.hostIndex, host), most: 9, arrived: null });
    expect([slots(modelOf(of), 'a'), slots(modelOf(of), 'b')]).toEqual([1, 1]);
    expect([slots(after, 'a'), slots(after, 'b')]).toEqual([2, 0]);
  });
});

describe('the CPUs of hosts', () => {
  const cpu = (...traits: string[]) => ({ set: { traits: traits.map((name) => `HW_CPU_${name}`) } });
  const hosts = {
    old: cpu('X86_AVX2'),
    new: cpu('X86_AVX2', 'X86_AVX512F', 'HYPERTHREADING'),
    dark: { set: { traits: null } },
  };
  const on = (host: string, set: Partial<ServerObservation> = {}) => ({ host, w: { cpu: 0.1 }, set });

  it('act: newer ones take VMs of older ones', () => {
    expect(verdict(cluster(hosts, { v: on('old') }), 'v', 'new')).toBe('legal');
  });

  it('mark a move to a newer one as one way', () => {
    const { old, new: newer } = hosts;
    const vms = { v: on('old'), w: on('old') };
    const oneWay = (of: Sketch['hosts']) =>
      decide(decideInput({ policies: { cpu: { threshold: 0.05 } }, hosts: of, vms })).plan?.steps.map(
        ({ why }) => why?.detail?.oneWay,
      );
    expect(oneWay({ old, new: newer })).toEqual(['cpu-traits']);
    expect(oneWay({ old, new: old })).toEqual([undefined]);
    expect(oneWay({ old: { set: { hypervisorVersion: 1 } }, new: { set: { hypervisorVersion: 2 } } })).toEqual([
      'older-hypervisor',
    ]);
  });

  it('refuse: older ones take no VM of newer ones, and unknown ones none at all', () => {
    const of = cluster(hosts, { v: on('new'), w: on('old'), x: on('dark') });
    expect([verdict(of, 'v', 'old'), verdict(of, 'w', 'dark'), verdict(of, 'x', 'old')]).toEqual(
      Array(3).fill('cpu-traits'),
    );
  });

  it('do nothing where they are alike, where the VM asks for a CPU, or where an operator ignores them', () => {
    const alike = { a: cpu('X86_AVX2'), b: cpu('X86_AVX2', 'HYPERTHREADING') };
    expect(verdict(cluster(alike, { v: on('b') }), 'v', 'a')).toBe('legal');
    const asks = { 'trait:HW_CPU_X86_AVX2': 'required' };
    expect(verdict(cluster(hosts, { v: on('new', { extraSpecs: asks }) }), 'v', 'old')).toBe('legal');
    expect(verdict(cluster(hosts, { v: on('new', { imageAsksCpu: true }) }), 'v', 'old')).toBe('legal');
    const image = { imageProperties: { hw_cpu_model: 'Skylake' } };
    expect(verdict(cluster(hosts, { v: on('new', image) }), 'v', 'old')).toBe('legal');
    expect(verdict(cluster(hosts, { v: on('new') }, { cpuCompatibility: 'ignore' }), 'v', 'old')).toBe('legal');
  });
});
