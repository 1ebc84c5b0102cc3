import { type CellFacts, type CellFlavor, type CellsAsked, defaultEngineOptions } from '@kronos/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Sketch, type SketchHost, type SketchVm, snapshotOf } from '../../testing/index.ts';
import type { ReasonCode } from '../reasons.ts';
import { emptyMemory, type Memory } from '../snapshot/memory.ts';
import { type CellPlan, type CellsAggregate, type CellsInput, planCells } from './cells.ts';

const NOTHING: CellFacts = { volumes: 0, ports: [] };
const NEW_SMALL: CellFlavor = {
  name: 'new.small',
  vcpus: 2,
  ramMb: 2048,
  diskGb: 10,
  extraSpecs: { 'trait:CUSTOM_NEW': 'required' },
};

/** Aggregate `old` of cell 1 and aggregate `new` of cell 2. */
type World = {
  readonly old?: Readonly<Record<string, SketchHost>>;
  readonly new?: Readonly<Record<string, SketchHost>>;
  readonly vms: Readonly<Record<string, SketchVm>>;
  readonly groups?: Sketch['groups'];
  readonly migrations?: Sketch['migrations'];
  readonly memory?: Partial<Memory>;
  readonly memoryOfNew?: Partial<Memory>;
  readonly options?: Sketch['options'];
  readonly asked?: Partial<CellsAsked>;
  readonly input?: Partial<CellsInput>;
  readonly cells?: { readonly old: string | null; readonly new: string | null };
  readonly metadata?: Readonly<Record<string, string>>;
};

function inputOf(world: World): CellsInput {
  const side = (name: 'old' | 'new', hosts: Readonly<Record<string, SketchHost>>): CellsAggregate => {
    const vms = Object.fromEntries(Object.entries(world.vms).filter(([, vm]) => vm.host in hosts));
    const { groups = {}, migrations = [] } = world;
    const snapshot = { aggregate: name };
    return {
      snapshot: snapshotOf({ policies: {}, hosts, vms, groups, migrations, snapshot }),
      memory: { ...emptyMemory, ...(name === 'old' ? world.memory : world.memoryOfNew) },
      options: { ...defaultEngineOptions, ...world.options },
      cell: (world.cells ?? { old: 'cell1', new: 'cell2' })[name],
      metadata:
        name === 'new' ? Object.fromEntries(Object.keys(hosts).map((host) => [host, world.metadata ?? {}])) : {},
    };
  };
  return {
    aggregates: [side('old', world.old ?? { o1: {}, o2: {} }), side('new', world.new ?? { n1: {}, n2: {} })],
    flavors: { 'new.small': NEW_SMALL },
    facts: Object.fromEntries(Object.keys(world.vms).map((id) => [id, NOTHING])),
    sharing: { volumes: false, networks: true, maxImageGib: null },
    granted: null,
    crossCellWeight: 1,
    pace: { fixedSeconds: 30, secondsPerGib: 10 },
    ...world.input,
  };
}

const ASKED: CellsAsked = { from: ['old'], to: 'new', flavorMap: {}, servers: null, project: null, limit: null };
const plan = (world: World): CellPlan => planCells({ ...ASKED, ...world.asked }, inputOf(world));
const moves = ({ steps }: CellPlan) => steps.map(({ serverId, from, to, method }) => [serverId, from, to, method]);
/** Why the one server of the world stays. */
const refusal = (vm: Partial<SketchVm>, world: Omit<World, 'vms'> = {}): string | undefined => {
  const { steps, refused } = plan({ ...world, vms: { v: { host: 'o1', ...vm } } });
  expect(steps).toEqual([]);
  return refused[0]?.reason.code;
};

describe('a plan between cells', () => {
  it('moves every server of the old aggregate to hosts of the new one that take it', () => {
    const answer = plan({ vms: { a: { host: 'o1' }, b: { host: 'o2' }, stays: { host: 'n1' } } });
    expect(moves(answer)).toEqual([
      ['a', 'o1', 'n1', 'migrate'],
      ['b', 'o2', 'n2', 'migrate'],
    ]);
    expect(answer).toMatchObject({ refused: [], left: 0, unknown: [] });
    expect(answer.steps[0]).toMatchObject({
      aggregate: 'old',
      fromCell: 'cell1',
      toCell: 'cell2',
      alternates: ['n2'],
      why: { code: 'leaves-cell' },
    });
  });

  it('moves nothing that was not asked for', () => {
    const vms = {
      a: { host: 'o1', set: { projectId: 'p' } },
      b: { host: 'o2' },
      c: { host: 'o2', set: { name: 'web' } },
    };
    expect(moves(plan({ vms, asked: { from: ['o1'] } }))).toEqual([['a', 'o1', 'n1', 'migrate']]);
    expect(moves(plan({ vms, asked: { servers: ['web'] } }))).toEqual([['c', 'o2', 'n1', 'migrate']]);
    expect(moves(plan({ vms, asked: { project: 'p' } }))).toEqual([['a', 'o1', 'n1', 'migrate']]);
    expect(moves(plan({ vms, asked: { from: ['new'] } }))).toEqual([]);
  });

  it('names what no snapshot has', () => {
    const asked = { from: ['old', 'nowhere'], to: 'nothing', servers: ['ghost'] };
    expect(plan({ vms: { a: { host: 'o1' } }, asked }).unknown).toEqual(['nowhere', 'nothing', 'ghost']);
  });

  it('empties host by host, the one with the fewest servers first, and stops at the limit', () => {
    const vms = { a: { host: 'o1' }, b: { host: 'o1' }, c: { host: 'o2' } };
    expect(plan({ vms }).steps.map(({ serverId }) => serverId)).toEqual(['c', 'a', 'b']);
    const limited = plan({ vms, asked: { limit: 2 } });
    expect([limited.steps.map(({ serverId }) => serverId), limited.left]).toEqual([['c', 'a'], 1]);
  });

  it('prefers hosts of the own cell as much as cross_cell_weight says', () => {
    // The host of the own cell has half as much memory free.
    const hosts = {
      n1: { free: { MEMORY_MB: 50_000 }, set: { cell: 'cell1' } },
      n2: { free: { MEMORY_MB: 100_000 }, set: { cell: 'cell2' } },
    };
    const world = { new: hosts, cells: { old: 'cell1', new: null }, vms: { a: { host: 'o1' } } };
    const to = (crossCellWeight: number) => plan({ ...world, input: { crossCellWeight } }).steps[0]?.to;
    expect([to(1), to(0.6), to(0.4), to(0), to(-1)]).toEqual(['n1', 'n1', 'n2', 'n2', 'n2']);
  });

  it('names at most as many further hosts as the option alternates', () => {
    const hosts = { n1: {}, n2: {}, n3: {}, n4: {} };
    const alternates = (count: number) =>
      plan({ new: hosts, vms: { a: { host: 'o1' } }, options: { alternates: count } }).steps[0]?.alternates;
    expect([alternates(2), alternates(0)]).toEqual([['n2', 'n3'], []]);
  });

  it('tells how long each guest is off: not at all when it is SHUTOFF, longer with a local disk', () => {
    const vms = {
      disk: { host: 'o1', set: { bootFromVolume: false, diskGb: 20 } },
      off: { host: 'o1', set: { status: 'SHUTOFF', vmState: 'stopped', bootFromVolume: false, diskGb: 20 } },
      volume: { host: 'o1', set: { bootFromVolume: true } },
    };
    const seconds = plan({ vms }).steps.map(({ serverId, downtimeSeconds }) => [serverId, downtimeSeconds]);
    expect(Object.fromEntries(seconds)).toEqual({ disk: 230, off: 0, volume: 30 });
    const same = plan({ vms: { disk: vms.disk }, cells: { old: 'cell1', new: 'cell1' } });
    expect(same.steps[0]?.downtimeSeconds).toBe(30);
  });
});

describe('what cannot move between cells', () => {
  const set = (more: NonNullable<SketchVm['set']>): Partial<SketchVm> => ({ set: more });
  const facts = (more: Partial<CellFacts>) => ({ input: { facts: { v: { ...NOTHING, ...more } } } });
  const port = (more: object) => ({ id: 'p', requestsResources: false, vnicType: 'normal', ...more });
  const cases: [ReasonCode, Partial<SketchVm>, Omit<World, 'vms'>?][] = [
    ['cell-status', set({ status: 'PAUSED', vmState: 'paused' })],
    ['vm-verify-resize', set({ status: 'VERIFY_RESIZE', vmState: 'resized' })],
    ['vm-busy', set({ taskState: 'rebooting' })],
    ['vm-locked', set({ locked: true })],
    ['vm-opted-out', set({ optedOutBy: 'kronos:exclude' })],
    ['vm-migrating', {}, { migrations: [{ serverId: 'v' }] }],
    ['vm-source-down', {}, { old: { o1: { down: true } } }],
    ['vm-in-flight', {}, { memory: { inFlight: [inFlight('v', 'o2')] } }],
    ['vm-cooling-down', {}, { memory: { releases: { v: [Date.parse('2026-01-01T11:59:00.000Z')] } } }],
    ['vm-outside-window', set({ windows: ['Mon 02:00-03:00'] })],
    ['cell-accelerator', set({ extraSpecs: { 'accel:device_profile': 'x' } })],
    ['cell-vtpm', set({ extraSpecs: { 'hw:tpm_version': '2.0' } })],
    ['cell-pci-device', set({ extraSpecs: { 'pci_passthrough:alias': 'gpu:1' } })],
    ['cell-facts-unknown', {}, { input: { facts: {} } }],
    ['cell-volumes', {}, facts({ volumes: 1 })],
    [
      'cell-ports',
      {},
      {
        input: {
          ...facts({ ports: [port({})] }).input,
          sharing: { volumes: true, networks: false, maxImageGib: null },
        },
      },
    ],
    ['cell-port-request', {}, facts({ ports: [port({ requestsResources: true })] })],
    ['cell-pci-device', {}, facts({ ports: [port({ vnicType: 'direct' })] })],
    ['cell-accelerator', {}, facts({ ports: [port({ vnicType: 'accelerator-direct' })] })],
    [
      'cell-image-size',
      set({ bootFromVolume: false, diskGb: 41 }),
      { input: { sharing: { volumes: false, networks: true, maxImageGib: 40 } } },
    ],
    ['cell-policy', {}, { input: { granted: false } }],
    ['cell-unknown', {}, { cells: { old: null, new: 'cell2' } }],
    ['cell-unknown', {}, { cells: { old: 'cell1', new: null } }],
    ['cell-unknown', {}, { new: { n1: { set: { cell: 'cell3' } } } }],
    ['capacity', { ramMb: 3000 }, { new: { n1: { free: { MEMORY_MB: 2000 } } } }],
    ['host-disabled', {}, { new: { n1: { disabled: true } } }],
    ['pinned-zone', set({ pinnedAvailabilityZone: 'az1' }), { new: { n1: { zone: 'az2' } } }],
    ['missing-trait', set({ extraSpecs: { 'trait:HW_X': 'required' } })],
    ['other-hypervisor', {}, { new: { n1: { set: { hypervisorType: 'vmware' } } } }],
    ['no-destination', { ramMb: 3000 }, { new: { n1: { free: { MEMORY_MB: 2000 } }, n2: { disabled: true } } }],
  ];
  it.each(cases)('%s', (code, vm, world) => {
    expect(refusal(vm, world)).toBe(code);
  });

  it('is not refused for a reason that applies only to moves out of the cell', () => {
    const world = { cells: { old: 'cell1', new: 'cell1' }, input: { facts: {}, granted: false } };
    expect(moves(plan({ ...world, vms: { v: { host: 'o1' } } }))).toEqual([['v', 'o1', 'n1', 'migrate']]);
  });

  it('is counted by reason when hosts refuse it for different ones', () => {
    const world = { new: { n1: { free: { MEMORY_MB: 2000 } }, n2: { disabled: true }, n3: { disabled: true } } };
    const [refused] = plan({ ...world, vms: { v: { host: 'o1', ramMb: 3000 } } }).refused;
    expect(refused?.reason.detail).toEqual({ capacity: 1, 'host-disabled': 2 });
  });

  it('a server that is shut off moves as one that runs does', () => {
    const off = { host: 'o1', set: { status: 'SHUTOFF', vmState: 'stopped' } };
    expect(plan({ vms: { v: off } }).refused).toEqual([]);
  });
});

describe('server groups between cells', () => {
  const members = ['a', 'b'];
  const vms = { a: { host: 'o1' }, b: { host: 'o2' } };

  it('members of an anti-affinity group go to different hosts, and stay when there are too few', () => {
    const groups = { g: { policy: 'anti-affinity' as const, members } };
    const tos = plan({ vms, groups }).steps.map(({ to }) => to);
    expect([...tos].sort()).toEqual(['n1', 'n2']);
    const one = plan({ vms, groups, new: { n1: {} } });
    expect([one.steps.length, one.refused.map(({ reason }) => reason.code)]).toEqual([1, ['anti-affinity']]);
  });

  it('an affinity group that sits on one host stays: Nova refuses its members', () => {
    const groups = { g: { policy: 'affinity' as const, members } };
    const together = plan({ vms: { a: { host: 'o1' }, b: { host: 'o1' } }, groups });
    expect(together.refused.map(({ reason }) => reason.code)).toEqual(['affinity-gathered', 'affinity-gathered']);
  });

  it('a member of an affinity group follows the others to their host', () => {
    const groups = { g: { policy: 'affinity' as const, members } };
    const answer = plan({ vms: { a: { host: 'n2' }, b: { host: 'o2' } }, groups });
    expect(moves(answer)).toEqual([['b', 'o2', 'n2', 'migrate']]);
  });
});

describe('a flavor map', () => {
  const world = (more: Partial<World> = {}, flavor: Partial<CellFlavor> = {}): World => ({
    new: { n1: { set: { traits: ['CUSTOM_NEW'] } }, n2: { set: { traits: ['CUSTOM_NEW'] } } },
    vms: { v: { host: 'o1', ramMb: 1024, set: { flavor: 'old.small' } } },
    asked: { flavorMap: { 'old.small': 'new.small' } },
    input: { flavors: { 'new.small': { ...NEW_SMALL, ...flavor } } },
    ...more,
  });

  it('makes it a resize, with what the new flavor claims', () => {
    const [step] = plan(world()).steps;
    expect(step).toMatchObject({
      method: 'resize',
      oldFlavor: 'old.small',
      newFlavor: 'new.small',
      resources: { VCPU: 2, MEMORY_MB: 2048 },
      ramMb: 2048,
    });
  });

  it('leaves other servers their flavor', () => {
    const vms = { v: { host: 'o1', set: { flavor: 'old.large' } } };
    expect(plan(world({ vms })).steps).toMatchObject([{ method: 'migrate', newFlavor: 'old.large' }]);
  });

  it('needs room for the new flavor, not for the old one', () => {
    const traits = ['CUSTOM_NEW'];
    const narrow = { n1: { free: { MEMORY_MB: 1500 }, set: { traits } } };
    expect(plan(world({ new: narrow })).refused).toMatchObject([{ reason: { code: 'capacity' } }]);
  });

  const cases: [ReasonCode, Partial<World>, Partial<CellFlavor>][] = [
    ['flavor-unknown', { asked: { flavorMap: { 'old.small': 'nothing' } } }, {}],
    ['flavor-same', { asked: { flavorMap: { 'old.small': 'old.small' } } }, {}],
    [
      'flavor-disk',
      { vms: { v: { host: 'o1', set: { flavor: 'old.small', bootFromVolume: false, diskGb: 20 } } } },
      { diskGb: 19 },
    ],
    ['flavor-not-confined', {}, { extraSpecs: {} }],
    ['flavor-not-confined', { old: { o1: { set: { traits: null } } } }, {}],
    ['missing-trait', { new: { n1: {} } }, {}],
  ];
  it.each(cases)('%s', (code, more, flavor) => {
    const { steps, refused } = plan(world(more, flavor));
    expect([steps, refused.map(({ reason }) => reason.code)]).toEqual([[], [code]]);
  });

  it("confines by the aggregate's metadata too", () => {
    const extraSpecs = { 'aggregate_instance_extra_specs:hw': 'new' };
    expect(plan(world({ metadata: { hw: 'new, newer' } }, { extraSpecs })).steps).toHaveLength(1);
    const other = plan(world({ metadata: { hw: 'older' } }, { extraSpecs }));
    expect(other.refused).toMatchObject([{ reason: { code: 'missing-trait' } }]);
  });

  it('counts pinned cores and overridden resources as Nova claims them', () => {
    const extraSpecs = {
      ...NEW_SMALL.extraSpecs,
      'hw:cpu_policy': 'dedicated',
      'resources:VGPU': '1',
      'resources:MEMORY_MB': '0',
    };
    const traits = ['CUSTOM_NEW'];
    const hosts = { n1: { free: { PCPU: 2, VGPU: 1 }, set: { traits } } };
    const [step] = plan(world({ new: hosts }, { extraSpecs })).steps;
    expect(step?.resources).toEqual({ PCPU: 2, VGPU: 1 });
  });
});

describe('room on the target', () => {
  it('is not promised twice: a released move that has not claimed yet counts', () => {
    const world = {
      new: { n1: { free: { MEMORY_MB: 1500, VCPU: 10 } } },
      vms: { v: { host: 'o1', ramMb: 1024 }, w: { host: 'o2', ramMb: 1024 } },
    };
    expect(plan({ ...world, asked: { servers: ['v'] } }).steps).toHaveLength(1);
    const memory = { inFlight: [inFlight('w', 'n1')] };
    expect(plan({ ...world, memory, asked: { servers: ['v'] } }).refused).toMatchObject([
      { reason: { code: 'capacity' } },
    ]);
  });

  it('is taken once by a move that the memories of both aggregates have', () => {
    const world = {
      new: { n1: { free: { MEMORY_MB: 2048, VCPU: 10 } } },
      vms: { v: { host: 'o1', ramMb: 1024 }, w: { host: 'o2', ramMb: 1024 } },
      memory: { inFlight: [inFlight('w', 'n1')] },
      memoryOfNew: { inFlight: [{ ...inFlight('w', 'n1'), aggregate: 'old' }] },
    };
    expect(plan({ ...world, asked: { servers: ['v'] } }).steps).toHaveLength(1);
  });

  it('is never exceeded by any request, and every requested server is named once', () => {
    const size = fc.integer({ min: 1, max: 8 }).map((gib) => gib * 1024);
    const vm = fc.record({ host: fc.constantFrom('o1', 'o2'), ramMb: size, locked: fc.boolean() });
    const free = fc.integer({ min: 0, max: 20 }).map((gib) => gib * 1024);
    fc.assert(
      fc.property(
        fc.array(vm, { maxLength: 12 }),
        fc.array(free, { minLength: 1, maxLength: 4 }),
        fc.option(fc.integer({ min: 0, max: 6 })),
        (list, frees, limit) => {
          const vms = Object.fromEntries(
            list.map(({ host, ramMb, locked }, i) => [`v${i}`, { host, ramMb, set: { locked } }]),
          );
          const hosts = Object.fromEntries(frees.map((mb, i) => [`n${i}`, { free: { MEMORY_MB: mb } }]));
          const { steps, refused, left } = plan({ new: hosts, vms, asked: { limit } });
          expect(steps.length + refused.length + left).toBe(list.length);
          expect(new Set([...steps, ...refused].map(({ serverId }) => serverId)).size).toBe(
            steps.length + refused.length,
          );
          for (const [i, mb] of frees.entries()) {
            const taken = steps.filter(({ to }) => to === `n${i}`).reduce((sum, { ramMb }) => sum + ramMb, 0);
            expect(taken).toBeLessThanOrEqual(mb);
          }
          for (const { serverId } of steps) expect(vms[serverId]?.set.locked).toBe(false);
        },
      ),
    );
  });
});

function inFlight(serverId: string, destination: string): Memory['inFlight'][number] {
  return {
    taskId: 't',
    serverId,
    from: 'o1',
    destination,
    resources: { MEMORY_MB: 1024, VCPU: 1 },
    weights: {},
    ramMb: 1024,
    startedAtMs: null,
  };
}
