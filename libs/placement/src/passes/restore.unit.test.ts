import { describe, expect, it } from 'vitest';
import { Draft } from '../draft/draft.ts';
import { type ClusterFile, clusterOf, planCluster } from '../file/clusterFile.ts';
import { restore } from './restore.ts';

type Vm = ClusterFile['vms'][number];
const vm = (id: string, host: string, memMb: number, more: Partial<Vm> = {}): Vm => ({
  id,
  host,
  w: [0],
  memMb,
  ...more,
});
const plan = (
  hosts: ClusterFile['hosts'],
  vms: readonly Vm[],
  more: Partial<Parameters<typeof planCluster>[1]> & { readonly groups?: NonNullable<ClusterFile['groups']> } = {},
) => {
  const { groups, ...options } = more;
  const file = {
    policies: ['cpu'],
    weights: [1],
    thresholds: [1],
    hosts,
    vms,
    ...(groups === undefined ? {} : { groups }),
  };
  const { moves, warnings, stuck } = planCluster(file, { maxMigrations: 10, ...options });
  return {
    moves: moves.map((move) => `${move.vm} ${move.from} ${move.to} ${move.phase}`),
    warnings: warnings.map(({ code }) => code),
    texts: warnings.map(({ text }) => text),
    stuck: stuck.length,
    obstacles: stuck.map(({ reason }) => reason.text),
  };
};

describe('a host on which more is claimed than it has', () => {
  it('is relieved by the VM that relieves it and copies least', () => {
    const hosts = [
      { id: 'h1', memFreeMb: -10 },
      { id: 'h2', memFreeMb: 100 },
    ];
    expect(plan(hosts, [vm('a', 'h1', 40)]).moves).toEqual(['a h1 h2 repair']);
    expect(plan(hosts, [vm('a', 'h1', 40), vm('b', 'h1', 20), vm('c', 'h1', 5)]).moves).toEqual(['b h1 h2 repair']);
  });

  it('is relieved by several VMs, the fewest, and by room that others make', () => {
    const hosts = [
      { id: 'h1', memFreeMb: -30 },
      { id: 'h2', memFreeMb: 30 },
      { id: 'h3', memFreeMb: 10 },
    ];
    expect(plan(hosts, [vm('a', 'h1', 20), vm('b', 'h1', 10), vm('c', 'h1', 5)]).moves).toHaveLength(2);
    const tight = [
      { id: 'h1', memFreeMb: -30 },
      { id: 'h2', memFreeMb: 30 },
      { id: 'h3', memFreeMb: 10 },
    ];
    expect(plan(tight, [vm('a', 'h1', 35), vm('r', 'h2', 10)]).moves).toEqual(['r h2 h3 repair', 'a h1 h2 repair']);
  });

  it('is warned about when nothing relieves it', () => {
    const hosts = [
      { id: 'h1', memFreeMb: -10 },
      { id: 'h2', memFreeMb: 30 },
    ];
    expect(plan(hosts, [vm('a', 'h1', 40)])).toMatchObject({
      moves: [],
      warnings: ['host-over-capacity'],
      texts: [
        'h1 has 10 MEMORY_MB more claimed than its capacity, and no move relieves it: h2 has too little free capacity',
      ],
    });
    expect(plan(hosts, [vm('a', 'h1', 20)], { maxMigrations: 0 }).warnings).toEqual(['host-over-capacity']);
  });

  it('is not searched for without an end where a ratio was lowered for all', () => {
    const hosts = Array.from({ length: 12 }, (_, h) => ({ id: `h${h}`, memFreeMb: h < 6 ? -2 : 3 }));
    const vms = Array.from({ length: 96 }, (_, v) => vm(`v${v}`, `h${v % 12}`, 9 + ((v * 7) % 5)));
    const cluster = clusterOf({ policies: ['cpu'], weights: [1], hosts, vms }, { maxMigrations: 10 });
    const draft = new Draft(cluster, 10);
    restore(draft, { evacuationThresholds: 'prefer' }, { ofOne: 1000, ofAll: 5000 });
    expect(draft.moves).toEqual([]);
    expect(draft.warnings.map(({ code }) => code)).toEqual(hosts.slice(0, 6).map(() => 'host-over-capacity'));
    expect(draft.evaluated).toBeLessThan(10_000);
  });

  it('is left alone when it has room, or when it is emptied anyway', () => {
    expect(
      plan(
        [
          { id: 'h1', memFreeMb: 0 },
          { id: 'h2', memFreeMb: 9 },
        ],
        [vm('a', 'h1', 4)],
      ),
    ).toMatchObject({ moves: [], warnings: [] });
    const hosts = [
      { id: 'h1', memFreeMb: -1, status: 'disabled' as const },
      { id: 'h2', memFreeMb: 9 },
    ];
    expect(plan(hosts, [vm('a', 'h1', 4)], { evacuateDisabledHosts: true }).moves).toEqual(['a h1 h2 evacuate']);
  });
});

describe('a VM outside of the zone that it is pinned to', () => {
  const hosts = [
    { id: 'h1', az: 'z1', memFreeMb: 10 },
    { id: 'h2', az: 'z2', memFreeMb: 10 },
  ];
  it('is brought home', () => {
    expect(plan(hosts, [vm('a', 'h1', 5, { pin: 'z2' }), vm('b', 'h1', 5, { pin: 'z1' })])).toMatchObject({
      moves: ['a h1 h2 repair'],
      warnings: [],
    });
  });
  it('is warned about when no host of the zone takes it', () => {
    expect(plan(hosts, [vm('a', 'h1', 50, { pin: 'z2' })])).toMatchObject({
      moves: [],
      warnings: ['outside-pinned-zone'],
      texts: [expect.stringMatching(/^a is pinned to another zone than z1, where it is, and stays: /)],
    });
  });
});

describe('groups that contradict each other', () => {
  it('are named in one sentence, and nothing else is said about them', () => {
    const hosts = [{ id: 'h1' }, { id: 'h2' }];
    const groups = [
      { id: 'near', policy: 'affinity' as const, vms: ['a', 'b'] },
      { id: 'far', policy: 'anti-affinity' as const, vms: ['a', 'b'] },
    ];
    for (const other of ['h1', 'h2']) {
      const found = plan(hosts, [vm('a', 'h1', 0), vm('b', other, 0)], { groups, enforceHardAffinity: true });
      expect(found).toMatchObject({
        moves: [],
        stuck: 0,
        texts: ['the affinity group near and the anti-affinity group far contradict each other: a, b are in both'],
      });
    }
  });
  it('are named together where several affinity groups gather what an anti-affinity group parts', () => {
    const groups = [
      { id: 'g1', policy: 'affinity' as const, vms: ['a', 'b'] },
      { id: 'g2', policy: 'affinity' as const, vms: ['b', 'c'] },
      { id: 'g3', policy: 'anti-affinity' as const, vms: ['a', 'c'] },
    ];
    const vms = [vm('a', 'h1', 0), vm('b', 'h1', 0), vm('c', 'h2', 0)];
    expect(plan([{ id: 'h1' }, { id: 'h2' }], vms, { groups, enforceHardAffinity: true })).toMatchObject({
      moves: [],
      stuck: 0,
      texts: [
        'the affinity groups g1, g2 and the anti-affinity group g3 contradict each other: a, c must share a host, and may not',
      ],
    });
    // Without the group in between, nothing contradicts, and c comes to b.
    expect(
      plan([{ id: 'h1' }, { id: 'h2' }], vms, { groups: groups.slice(1), enforceHardAffinity: true }),
    ).toMatchObject({
      moves: ['b h1 h2 affinity'],
      texts: [],
    });
  });
  it('say so where a group has more members than the hosts may hold', () => {
    const groups = [{ id: 'far', policy: 'anti-affinity' as const, vms: ['a', 'b', 'c'] }];
    const vms = [vm('a', 'h1', 0), vm('b', 'h2', 0), vm('c', 'h1', 0)];
    const texts = ['the anti-affinity group far has 3 members, and the 2 hosts of the aggregate may hold 1 each'];
    expect(plan([{ id: 'h1' }, { id: 'h2' }], vms, { groups, enforceHardAffinity: true })).toMatchObject({
      stuck: 0,
      texts,
    });
    expect(plan([{ id: 'h1' }, { id: 'h2' }, { id: 'h3' }], vms, { groups, enforceHardAffinity: true }).texts).toEqual(
      [],
    );
  });
  it('that other VMs leave no room for are said with the members, and what keeps each', () => {
    const groups = [{ id: 'far', policy: 'anti-affinity' as const, vms: ['a', 'b'] }];
    const hosts = [{ id: 'h1' }, { id: 'h2', memFreeMb: 0 }];
    const found = plan(hosts, [vm('a', 'h1', 50), vm('b', 'h1', 50)], { groups, enforceHardAffinity: true });
    expect(found).toMatchObject({
      texts: ['no legal move repairs the anti-affinity group far (a, b)'],
      obstacles: [
        'No host takes it: h2 has too little free capacity.',
        'No host takes it: h2 has too little free capacity.',
      ],
    });
  });
  it('do not when the host may hold all that are in both', () => {
    const groups = [
      { id: 'near', policy: 'affinity' as const, vms: ['a', 'b'] },
      { id: 'far', policy: 'anti-affinity' as const, vms: ['a', 'b'], maxServerPerHost: 2 },
    ];
    const vms = [vm('a', 'h1', 0), vm('b', 'h1', 0)];
    expect(plan([{ id: 'h1' }], vms, { groups, enforceHardAffinity: true }).warnings).toEqual([]);
  });
});
