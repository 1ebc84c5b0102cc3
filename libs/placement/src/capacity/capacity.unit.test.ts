import type { Shape } from '@kronos/contracts';
import * as highsModule from 'highs';
import { describe, expect, it } from 'vitest';
import { decideInput } from '../../testing/index.ts';
import { fit, headroom, shapesOf } from './capacity.ts';

const load = highsModule.default as unknown as typeof highsModule.default.default;
const highs = await load();

type Vm = { readonly host: number; readonly ram: number; readonly vcpus: number };
type World = {
  readonly capacity: readonly { readonly ram: number; readonly vcpus: number }[];
  readonly vms: readonly Vm[];
};

const unit = { minUnit: null, maxUnit: null, stepSize: null };
const inputOf = ({ capacity, vms }: World, more: Parameters<typeof decideInput>[0]['groups'] = {}) =>
  decideInput({
    policies: { cpu: { threshold: 0.2 } },
    hosts: Object.fromEntries(
      capacity.map(({ ram, vcpus }, h) => {
        const here = vms.filter(({ host }) => host === h);
        const used = (of: (vm: Vm) => number): number => here.reduce((sum, vm) => sum + of(vm), 0);
        const inventory = {
          MEMORY_MB: { ...unit, capacity: ram, used: used((vm) => vm.ram) },
          VCPU: { ...unit, capacity: vcpus, used: used((vm) => vm.vcpus) },
        };
        return [`h${h}`, { set: { inventory } }];
      }),
    ),
    vms: Object.fromEntries(
      vms.map(({ host, ram, vcpus }, v) => [
        `v${v}`,
        {
          host: `h${host}`,
          w: { cpu: 0.01 },
          ramMb: ram,
          vcpus,
          set: { flavor: `f${ram}`, resources: { MEMORY_MB: ram, VCPU: vcpus } },
        },
      ]),
    ),
    groups: more,
  });
const shape = (ram: number, vcpus = 1): Shape => ({
  name: 'new',
  resources: { MEMORY_MB: ram, VCPU: vcpus },
  requiredTraits: [],
  forbiddenTraits: [],
});

/** Reproducible numbers. */
function random(seed: number): (below: number) => number {
  let state = seed * 2654435761 + 1;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
function someWorld(seed: number): World {
  const next = random(seed);
  const capacity = Array.from({ length: 3 + next(2) }, () => ({ ram: 8 + next(5), vcpus: 8 + next(4) }));
  const left = capacity.map((one) => ({ ...one }));
  const vms: Vm[] = [];
  for (let i = 0; i < 9; i++) {
    const vm = { host: next(capacity.length), ram: 1 + next(4), vcpus: 1 + next(3) };
    const room = left[vm.host];
    if (room === undefined || room.ram < vm.ram || room.vcpus < vm.vcpus) continue;
    room.ram -= vm.ram;
    room.vcpus -= vm.vcpus;
    vms.push(vm);
  }
  return { capacity, vms };
}
const solve = (program: string): { status: string; value: number; on: (name: string) => number } => {
  const solution = highs.solve(program, { mip_rel_gap: 0, output_flag: false });
  const columns = solution.Columns as Readonly<Record<string, { readonly Primal?: number }>>;
  return {
    status: solution.Status,
    value: solution.ObjectiveValue,
    on: (name) => Math.round(columns[name]?.Primal ?? 0),
  };
};

/** The fewest moves that make room, by a solver, which knows no order of moves; null: there is no room. */
function fewestMoves({ capacity, vms }: World, ram: number, wanted: number) {
  const hosts = capacity.map((_, h) => h);
  const x = (v: number, h: number) => `x${v}_${h}`;
  const program = [
    'Minimize',
    ` obj: ${vms.flatMap(({ host }, v) => hosts.filter((h) => h !== host).map((h) => x(v, h))).join(' + ')}`,
    'Subject To',
    ...vms.map((_, v) => ` one${v}: ${hosts.map((h) => x(v, h)).join(' + ')} = 1`),
    ...capacity.flatMap((one, h) => [
      ` ram${h}: ${[...vms.map((vm, v) => `${vm.ram} ${x(v, h)}`), `${ram} s${h}`].join(' + ')} <= ${one.ram}`,
      ` cpu${h}: ${[...vms.map((vm, v) => `${vm.vcpus} ${x(v, h)}`), `1 s${h}`].join(' + ')} <= ${one.vcpus}`,
    ]),
    ` want: ${hosts.map((h) => `s${h}`).join(' + ')} >= ${wanted}`,
    'General',
    ` ${hosts.map((h) => `s${h}`).join(' ')}`,
    'Binary',
    ` ${vms.flatMap((_, v) => hosts.map((h) => x(v, h))).join(' ')}`,
    'End',
  ].join('\n');
  const { status, value, on } = solve(program);
  if (status !== 'Optimal') return null;
  const moves = vms.flatMap(({ host }, v) =>
    hosts.filter((h) => h !== host && on(x(v, h)) === 1).map((to) => ({ v, to })),
  );
  return { moves: Math.round(value), inOrder: hasOrder({ capacity, vms }, moves) };
}

/** Whether moves can be made one after the other. A move that fits now only frees room: to make it first is never wrong. */
function hasOrder({ capacity, vms }: World, moves: readonly { readonly v: number; readonly to: number }[]): boolean {
  const free = capacity.map((one, h) =>
    vms.reduce((left, vm) => (vm.host === h ? { ram: left.ram - vm.ram, vcpus: left.vcpus - vm.vcpus } : left), {
      ...one,
    }),
  );
  let waiting = [...moves];
  while (waiting.length > 0) {
    const next = waiting.find(
      ({ v, to }) => (vms[v]?.ram ?? 0) <= (free[to]?.ram ?? 0) && (vms[v]?.vcpus ?? 0) <= (free[to]?.vcpus ?? 0),
    );
    if (next === undefined) return false;
    const vm = vms[next.v];
    const [from, to] = [free[vm?.host ?? 0], free[next.to]];
    if (vm !== undefined && from !== undefined && to !== undefined) {
      from.ram += vm.ram;
      from.vcpus += vm.vcpus;
      to.ram -= vm.ram;
      to.vcpus -= vm.vcpus;
    }
    waiting = waiting.filter((one) => one !== next);
  }
  return true;
}

describe('fit', () => {
  it('counts what fits by the scarcest resource, on hosts that take VMs', () => {
    const input = inputOf({
      capacity: [
        { ram: 10, vcpus: 3 },
        { ram: 7, vcpus: 9 },
      ],
      vms: [],
    });
    expect(fit(input, shape(2), 5)).toMatchObject({
      now: 6,
      moves: [],
      proven: true,
      hosts: [
        { host: 'h0', slots: 3 },
        { host: 'h1', slots: 3 },
      ],
    });
    const disabled = {
      ...input,
      snapshot: {
        ...input.snapshot,
        hosts: input.snapshot.hosts.map((host) =>
          host.name === 'h0' ? { ...host, service: { ...host.service, status: 'disabled' as const } } : host,
        ),
      },
    };
    expect(fit(disabled, shape(2), 1)).toMatchObject({ now: 3 });
  });

  it('asks traits, and resources that no VM has claimed', () => {
    const input = inputOf({
      capacity: [
        { ram: 10, vcpus: 9 },
        { ram: 10, vcpus: 9 },
      ],
      vms: [],
    });
    const [first, ...others] = input.snapshot.hosts;
    if (first === undefined) throw new Error('no host');
    const hosts = [
      { ...first, traits: ['SSD'], inventory: { ...first.inventory, VGPU: { ...unit, capacity: 2, used: 1 } } },
      ...others,
    ];
    const given = { ...input, snapshot: { ...input.snapshot, hosts } };
    expect(fit(given, { ...shape(1), requiredTraits: ['SSD'] }, 1).hosts).toEqual([{ host: 'h0', slots: 9 }]);
    expect(fit(given, { ...shape(1), forbiddenTraits: ['SSD'] }, 1).hosts).toEqual([{ host: 'h1', slots: 9 }]);
    expect(fit(given, { ...shape(1), resources: { MEMORY_MB: 1, VGPU: 1 } }, 1)).toMatchObject({ now: 1 });
    expect(fit(given, { ...shape(1), resources: { FPGA: 1 } }, 1)).toMatchObject({ now: 0, after: 0 });
  });

  it('knows without a try that no move frees what no VM has claimed', () => {
    const hosts = [0, 1, 2];
    const vms = hosts.flatMap((host) => Array.from({ length: 10 }, () => ({ host, ram: 1, vcpus: 1 })));
    const input = inputOf({ capacity: hosts.map(() => ({ ram: 30, vcpus: 30 })), vms });
    const full = { VGPU: { ...unit, capacity: 1, used: 1 } };
    const seen = input.snapshot.hosts.map((host) => ({ ...host, inventory: { ...host.inventory, ...full } }));
    const given = { ...input, snapshot: { ...input.snapshot, hosts: seen } };
    const found = fit(given, { ...shape(1), resources: { VGPU: 1 } }, 1);
    expect(found).toMatchObject({ now: 0, after: 0, moves: [], proven: true });
  });

  it('makes room by moving what is in the way, and moves nothing that may not move', () => {
    const world = {
      capacity: [
        { ram: 8, vcpus: 9 },
        { ram: 8, vcpus: 9 },
      ],
      vms: [
        { host: 0, ram: 3, vcpus: 1 },
        { host: 1, ram: 3, vcpus: 1 },
      ],
    };
    const found = fit(inputOf(world), shape(6), 1);
    expect(found).toMatchObject({ now: 0, after: 1, proven: true });
    expect(found.moves).toHaveLength(1);
    const apart = { g: { policy: 'anti-affinity' as const, members: ['v0', 'v1'] } };
    expect(fit(inputOf(world, apart), shape(6), 1)).toMatchObject({ now: 0, after: 0, moves: [], proven: true });
  });

  it('finds a chain where room is tight: VMs that make way for VMs that make way', () => {
    const sizes = [
      [8, 2, 3, 1],
      [6, 6],
      [5, 2, 6],
      [3, 8, 2],
      [2, 6, 2, 2, 2],
      [5, 3, 5],
    ];
    const world = {
      capacity: sizes.map(() => ({ ram: 99, vcpus: 16 })),
      vms: sizes.flatMap((on, host) => on.map((vcpus) => ({ host, ram: 1, vcpus }))),
    };
    const found = fit(inputOf(world), { ...shape(1), resources: { VCPU: 8 } }, 2);
    expect(found).toMatchObject({ now: 0, after: 2, proven: true });
    expect(found.moves).toHaveLength(4);
    expect(fit(inputOf(world), { ...shape(1), resources: { VCPU: 8 } }, 2, 3)).toMatchObject({ after: 1 });
  });

  it('uses the slots of today for what makes others', () => {
    const world = {
      capacity: [8, 8, 8].map((vcpus) => ({ ram: 99, vcpus })),
      vms: [
        { host: 0, ram: 1, vcpus: 4 },
        { host: 1, ram: 1, vcpus: 4 },
      ],
    };
    // h2 is free. Its slot stays while the VM of one host goes to the other.
    expect(fit(inputOf(world), { ...shape(1), resources: { VCPU: 8 } }, 2)).toMatchObject({
      now: 1,
      after: 2,
      proven: true,
    });
    // Three fit nowhere: the answer has the most that fit.
    const split = { ...world, vms: [0, 0, 1, 1].map((host) => ({ host, ram: 1, vcpus: 3 })) };
    expect(fit(inputOf(split), { ...shape(1), resources: { VCPU: 5 } }, 3)).toMatchObject({ now: 1, after: 2 });
  });

  it('says what the moves cost', () => {
    const world = {
      capacity: [8, 8].map((vcpus) => ({ ram: 9999, vcpus })),
      vms: [0, 1].map((host) => ({ host, ram: 2048, vcpus: 3 })),
    };
    const { moves, costGib } = fit(inputOf(world), { ...shape(1), resources: { VCPU: 8 } }, 1);
    expect([moves.length, costGib]).toEqual([1, 2 + 8]);
  });

  it('makes room with the fewest moves, as a solver finds them, on small clusters', () => {
    let compared = 0;
    let chained = 0;
    for (let seed = 1; seed <= 30; seed++) {
      const some = someWorld(seed);
      const ram = 4 + (seed % 3);
      // The last ones are about memory alone.
      const world = seed <= 24 ? some : { ...some, capacity: some.capacity.map((one) => ({ ...one, vcpus: 99 })) };
      const wish = seed <= 24 ? shape(ram) : { ...shape(ram), resources: { MEMORY_MB: ram } };
      const { now } = fit(inputOf(world), wish, 0);
      const wanted = now + 1;
      const found = fit(inputOf(world), wish, wanted);
      const best = fewestMoves(world, ram, wanted);
      if (!found.proven) continue;
      if (best === null) {
        expect(found.after, `seed ${seed}`).toBeLessThan(wanted);
        continue;
      }
      if (found.after >= wanted) expect(found.moves.length, `seed ${seed}`).toBeGreaterThanOrEqual(best.moves);
      if (!best.inOrder) continue;
      expect([found.after >= wanted, found.moves.length], `seed ${seed}`).toEqual([true, best.moves]);
      compared++;
      if (best.moves > 1) chained++;
    }
    expect(compared).toBeGreaterThan(8);
    expect(chained).toBeGreaterThan(0);
  });
});

describe('headroom', () => {
  const lossesOf = (...given: Parameters<typeof headroom>) =>
    headroom(...given).failures.flatMap(({ losses }) => losses);

  it('counts slots by flavor, and what each has of its own', () => {
    const { flavors } = headroom(
      inputOf({
        capacity: [{ ram: 8, vcpus: 9 }],
        vms: [
          { host: 0, ram: 3, vcpus: 1 },
          { host: 0, ram: 1, vcpus: 1 },
        ],
      }),
      0,
    );
    expect(flavors.map(({ shape: { name }, slots }) => [name, slots])).toEqual([
      ['f1', 4],
      ['f3', 1],
    ]);
  });

  it('lets an affinity group that lost its host gather on a new one, and separates no other group', () => {
    const world = {
      capacity: [
        { ram: 8, vcpus: 9 },
        { ram: 4, vcpus: 9 },
        { ram: 4, vcpus: 9 },
      ],
      vms: [
        { host: 0, ram: 3, vcpus: 1 },
        { host: 0, ram: 3, vcpus: 1 },
      ],
    };
    expect(lossesOf(inputOf(world), 1)).toMatchObject([{ hosts: ['h0'], servers: 2, stranded: [], proven: true }]);
    const together = { g: { policy: 'affinity' as const, members: ['v0', 'v1'] } };
    expect(lossesOf(inputOf(world, together), 1)[0]?.stranded).toHaveLength(1);
    const small = { ...world, vms: world.vms.map((vm) => ({ ...vm, ram: 2 })) };
    expect(lossesOf(inputOf(small, together), 1)[0]?.stranded).toHaveLength(0);
  });

  it('leaves as few VMs of lost hosts behind as a solver does, on small clusters', () => {
    let short = 0;
    for (let seed = 1; seed <= 24; seed++) {
      const world = someWorld(seed);
      for (const { hosts, stranded, proven } of lossesOf(inputOf(world), 2)) {
        if (!proven) continue;
        const lost = new Set(hosts.map((name) => Number(name.slice(1))));
        const vms = world.vms.flatMap((vm, v) => (lost.has(vm.host) ? [{ ...vm, v }] : []));
        const others = world.capacity.map((_, h) => h).filter((h) => !lost.has(h));
        if (vms.length === 0) continue;
        const used = (h: number, of: (vm: Vm) => number) =>
          world.vms.filter(({ host }) => host === h).reduce((sum, vm) => sum + of(vm), 0);
        const { value } = solve(
          [
            'Maximize',
            ` obj: ${vms.flatMap(({ v }) => others.map((h) => `x${v}_${h}`)).join(' + ')}`,
            'Subject To',
            ...vms.map(({ v }) => ` one${v}: ${others.map((h) => `x${v}_${h}`).join(' + ')} <= 1`),
            ...others.flatMap((h) => [
              ` ram${h}: ${vms.map(({ v, ram }) => `${ram} x${v}_${h}`).join(' + ')} <= ${(world.capacity[h]?.ram ?? 0) - used(h, (vm) => vm.ram)}`,
              ` cpu${h}: ${vms.map(({ v, vcpus }) => `${vcpus} x${v}_${h}`).join(' + ')} <= ${(world.capacity[h]?.vcpus ?? 0) - used(h, (vm) => vm.vcpus)}`,
            ]),
            'Binary',
            ` ${vms.flatMap(({ v }) => others.map((h) => `x${v}_${h}`)).join(' ')}`,
            'End',
          ].join('\n'),
        );
        expect(stranded.length, `seed ${seed}, ${hosts}`).toBe(vms.length - Math.round(value));
        if (stranded.length > 0) short++;
      }
    }
    expect(short).toBeGreaterThan(4);
  });

  it('tests every host, and not only the one whose VMs have the most RAM', () => {
    const ram = (host: number, ...sizes: number[]) => sizes.map((size) => ({ host, ram: size, vcpus: 1 }));
    const world = {
      capacity: [10, 10, 10].map((size) => ({ ram: size, vcpus: 99 })),
      vms: [...ram(0, 2, 2, 2, 2), ...ram(1, 7), ...ram(2, 1, 1, 1, 1)],
    };
    expect(headroom(inputOf(world), 1).failures).toMatchObject([
      {
        count: 1,
        tested: 'each',
        losses: [
          { hosts: ['h0'], stranded: [], proven: true },
          { hosts: ['h1'], stranded: [{ serverName: 'v4' }], placed: [], proven: true },
          { hosts: ['h2'], stranded: [], proven: true },
        ],
      },
    ]);
  });

  it('takes of a flavor what most of its VMs claim', () => {
    const { snapshot } = inputOf({
      capacity: [{ ram: 9, vcpus: 9 }],
      vms: [1, 1, 1].map((ram) => ({ host: 0, ram, vcpus: 1 })),
    });
    const [first, ...others] = snapshot.servers;
    if (first === undefined) throw new Error('no VM');
    const servers = [
      { ...first, resources: { ...first.resources, DISK_GB: 20 } },
      ...others,
      { ...first, id: 'x', flavor: null },
    ];
    expect(shapesOf(servers).map(({ name, resources }) => [name, resources])).toEqual([
      ['f1', { MEMORY_MB: 1, VCPU: 1 }],
    ]);
  });
});

describe('new VMs that need NUMA cells', () => {
  const cells = (free: number) => ({
    free: { PCPU: 1000 },
    set: {
      topology: { cells: [0, 1].map((id) => ({ id, dedicatedCpus: free, sharedCpus: 0, memoryMb: 8192, pages: [] })) },
    },
  });
  const of = (hosts: Record<string, object>) =>
    decideInput({
      policies: { cpu: {} },
      hosts,
      vms: {
        v: {
          host: 'h0',
          w: { cpu: 0.1 },
          set: {
            flavor: 'pinned',
            resources: { PCPU: 4, MEMORY_MB: 1024 },
            extraSpecs: { 'hw:cpu_policy': 'dedicated' },
            topology: { cells: [{ hostCell: 0, dedicatedCpus: 4, sharedCpus: 0, memoryMb: 1024, pageSizeKb: null }] },
          },
        },
      },
    });

  it('fit where one cell has room, and nowhere if it is unknown', () => {
    const input = of({ h0: cells(6), h1: cells(9), h2: { free: { PCPU: 1000 }, set: { topology: null } } });
    const [shape] = shapesOf(input.snapshot.servers);
    if (shape === undefined) throw new Error('the snapshot has no flavor');
    expect(fit(input, shape, 99).hosts).toEqual([
      { host: 'h0', slots: 1 },
      { host: 'h1', slots: 4 },
    ]);
    const { cells: _, ...unaware } = shape;
    expect(fit(input, unaware, 99).now).toBeGreaterThan(99);
  });
});
