import { describe, expect, it } from 'vitest';
import { type ClusterFile, parseClusterFile, planCluster } from './clusterFile.ts';
import { clusterFileSchema, type FileSchema } from './clusterSchema.ts';
import { ClusterFileError } from './errors.ts';

/** A cluster with every field. */
const whole = {
  policies: ['cpu', 'mem'],
  weights: [3, 1],
  thresholds: [0.2, 0.3],
  targets: [0.1, 0.3],
  hosts: [
    {
      id: 'a',
      score: [0.9, 0.5],
      size: [1, 2],
      memFreeMb: 1024,
      vcpusFree: 4,
      free: { CUSTOM_GPU: 2 },
      status: 'enabled',
      state: 'up',
      az: 'z1',
      traits: ['HW_CPU_X86_AVX2'],
      cells: [{ dedicatedCpus: 4, sharedCpus: 4, memMb: 4096, pages: { 2048: 512 } }, { memMb: 4096 }],
    },
    { id: 'b', traits: ['HW_CPU_X86_AVX2'], costGib: 2 },
  ],
  vms: [
    {
      id: 'v',
      host: 'a',
      w: [0.3, 0.1],
      vcpus: 2,
      memMb: 512,
      resources: { CUSTOM_GPU: 1 },
      pin: 'z1',
      costGib: 8,
      costGibTo: { b: 6 },
      recentMoves: 1,
      cells: [{ hostCell: 1, dedicatedCpus: 1, sharedCpus: 1, memMb: 512, pageKb: 2048 }],
    },
    { id: 'u', host: 'b', w: [0.1, 0.1] },
  ],
  groups: [{ id: 'g', policy: 'anti-affinity', vms: ['v', 'u'], maxServerPerHost: 2 }],
};

/** The cluster with one place changed; `undefined` takes the place away. */
function changed(path: string, value: unknown): unknown {
  const file = structuredClone(whole);
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  let at: unknown = file;
  for (const key of keys) at = Reflect.get(at as object, key);
  if (value === undefined) Reflect.deleteProperty(at as object, last);
  else Reflect.set(at as object, last, value);
  return file;
}

const moved = (
  file: unknown,
  options: Omit<Parameters<typeof planCluster>[1], 'maxMigrations'> = {},
  maxMigrations = 4,
) => planCluster(file, { maxMigrations, ...options }).moves;
/** Of a cluster with one policy. */
const cpu = { policies: ['cpu'], weights: [1] };

const problemOf = (file: unknown): string => {
  try {
    parseClusterFile(file);
  } catch (error) {
    if (error instanceof ClusterFileError) return error.message;
    throw error;
  }
  return '';
};

describe('the example of the schema', () => {
  const [example] = clusterFileSchema.examples;
  const fieldsOf = (schema: FileSchema): readonly string[] => {
    if (schema.type === 'array') return fieldsOf(schema.items);
    if (schema.type !== 'object' || !('properties' in schema)) return [];
    return Object.entries(schema.properties).flatMap(([name, of]) => [name, ...fieldsOf(of)]);
  };

  it('has every field, and is planned as its comment says', () => {
    const text = JSON.stringify(example);
    for (const field of fieldsOf(clusterFileSchema)) expect(text).toContain(`"${field}":`);
    const { moves, stats } = planCluster(example, { maxMigrations: 2 });
    expect(moves.map(({ vm, from, to }) => [vm, from, to])).toEqual([['web-1', 'a', 'b']]);
    expect(Object.keys(stats.refusals)).not.toContain('refused-before');
  });

  it('keeps what does not move, and goes only where the file allows', () => {
    const hosts = [{ id: 'a' }, { id: 'b' }, { id: 'c' }];
    const vm = { host: 'a', w: [0.4] };
    const plan = (more: object) =>
      moved(
        {
          ...cpu,
          thresholds: [0.1],
          hosts,
          vms: [
            { ...vm, id: 'v' },
            { ...vm, id: 'u', ...more },
          ],
        },
        {},
        2,
      ).map(({ vm, to }) => `${vm} ${to}`);
    expect(plan({ immovable: true })).toHaveLength(1);
    expect(plan({ immovable: true })[0]).toMatch(/^v /);
    expect(plan({ hosts: ['c'] })).toContain('u c');
    expect(plan({ hosts: ['a'] }).some((move) => move.startsWith('u'))).toBe(false);
  });

  it('reaches the targets at the lowest cost by VM and by host', () => {
    type Vm = ClusterFile['vms'][number];
    /** Either VM, to either host, reaches the target. */
    const moves = (costs: { b?: number; c?: number; v?: Partial<Vm>; u?: Partial<Vm> }) =>
      moved(
        {
          ...cpu,
          thresholds: [0.3],
          hosts: [{ id: 'a' }, { id: 'b', costGib: costs.b ?? 0 }, { id: 'c', costGib: costs.c ?? 0 }],
          vms: ['v', 'u'].map((id) => ({ id, host: 'a', w: [0.2], costGib: 4, ...costs[id as 'v' | 'u'] })),
        },
        {},
        2,
      ).map(({ vm, to }) => `${vm} ${to}`);
    expect(moves({ b: 1, v: { costGib: 5 } })).toEqual(['u c']);
    expect(moves({ c: 1, u: { costGib: 5 } })).toEqual(['v b']);
    expect(moves({ b: 1, c: 1, v: { costGibTo: { c: 3 } } })).toEqual(['v c']);
    expect(moves({ b: 2, v: { costGibTo: { b: 1 } }, u: { costGibTo: { c: 5 } } })).toEqual(['v b']);
  });

  it('moves nothing for a policy while no host is above the level at which it acts', () => {
    const plan = (level: number, more: object = {}) =>
      moved({
        ...cpu,
        thresholds: [0.1],
        actAbove: [level],
        hosts: [{ id: 'a' }, { id: 'b' }, { id: 'c', score: [0.9], ...more }],
        vms: ['v', 'u'].map((id) => ({ id, host: 'a', w: [0.25] })),
      }).length;
    const off = { status: 'disabled' };
    expect([plan(0.4, off), plan(0.5, off), plan(0.5)]).toEqual([1, 0, 1]);
  });

  it('is packed below its thresholds', () => {
    const file = (capacityThresholds: number[]) => ({
      ...cpu,
      capacityThresholds,
      hosts: [{ id: 'a' }, { id: 'b' }],
      vms: [
        { id: 'v', host: 'a', w: [0.3] },
        { id: 'u', host: 'b', w: [0.4] },
      ],
    });
    const packed = (most: number) => moved(file([most]), { mode: 'pack' }).length;
    expect([packed(0.9), packed(0.6)]).toEqual([1, 0]);
  });
});

describe('a cluster file', () => {
  it('is taken with every field, and with none but the needed ones', () => {
    expect(parseClusterFile(whole)).toEqual(whole);
    const bare = { ...cpu, hosts: [{ id: 'a' }], vms: [{ id: 'v', host: 'a', w: [0.1] }] };
    expect(parseClusterFile(bare)).toEqual(bare);
  });

  it.each<[path: string, value: unknown, problem: string]>([
    ['hosts.0.colour', 'red', 'hosts[0].colour is unknown; known fields are id, score, size'],
    ['vms', undefined, 'vms is missing'],
    ['vms.0.w', undefined, 'vms[0].w is missing'],
    ['policies', [], 'policies must not be empty'],
    ['policies', ['cpu', 'cpu'], 'policies[1] repeats "cpu"'],
    ['weights', [1], 'weights must hold 2 numbers, one per policy'],
    ['targets', [0.1], 'targets must hold 2 numbers, one per policy'],
    ['targets', [0.1, 0.4], 'targets[1] must be at most the threshold, 0.3'],
    ['hosts.0.size', [1, 0], 'hosts[0].size[1] must be above 0'],
    ['hosts.0.size', [1], 'hosts[0].size must hold 2 numbers, one per policy'],
    ['hosts.0.free', { MEMORY_MB: 5 }, 'hosts[0].free.MEMORY_MB is given by memFreeMb'],
    ['hosts.0.free', { CUSTOM_GPU: -1 }, 'hosts[0].free.CUSTOM_GPU must be at least 0'],
    ['vms.0.resources', { VCPU: 5 }, 'vms[0].resources.VCPU is given by vcpus'],
    ['hosts.0.cells.0.pages', { big: 1 }, 'hosts[0].cells[0].pages.big is no size in KiB'],
    ['hosts.0.cells.0.memMb', undefined, 'hosts[0].cells[0].memMb is missing'],
    ['vms.0.cells.0.hostCell', -1, 'vms[0].cells[0].hostCell must be at least 0'],
    ['hosts.0.status', 'off', 'hosts[0].status must be one of enabled, disabled'],
    ['hosts.1.id', 'a', 'hosts[1].id repeats "a"'],
    ['vms.0.host', 'c', 'vms[0].host names "c", which is no host'],
    ['vms.0.w', [0.1, '1'], 'vms[0].w[1] must be a number'],
    ['vms.0.w', [0.1, Number.NaN], 'vms[0].w[1] must be a number'],
    ['vms.0.costGibTo', { c: 1 }, 'vms[0].costGibTo names "c", which is no host'],
    ['vms.0.costGibTo', { b: -1 }, 'vms[0].costGibTo.b must be at least 0'],
    ['hosts.1.costGib', -1, 'hosts[1].costGib must be at least 0'],
    ['groups.0.vms', ['v', 'x'], 'groups[0].vms[1] names "x", which is no VM'],
    ['groups.0.policy', 'together', 'groups[0].policy must be one of'],
    ['groups.0.maxServerPerHost', 1.5, 'groups[0].maxServerPerHost must be a whole number'],
  ])('%s = %j is an error that names the place', (path, value, problem) => {
    expect(problemOf(changed(path, value))).toContain(problem);
  });

  it.each<[path: string, value: unknown, problem: string]>([
    ['weights', [1e308, 1e308], 'weights[0] is 1e+308; it must be at most 1000000000'],
    ['vms.0.w', [1e300, 0.1], 'vms[0].w[0] is 1e+300; it must be at most 4096'],
    ['hosts.0.score', [0.1, 5000], 'hosts[0].score[1] is 5000; it must be at most 4096'],
    ['vms.1', { id: 'u', host: 'a', w: [4096, 0] }, 'vms[1].w[0] brings the sum of cpu on a to 4096.3'],
    ['hosts.1.size', [1e-9, 1], 'hosts[1].size[0] is 1e-9: more than 4096 times smaller than the largest, 1'],
    ['vms.0.w', [0.1, 4000], 'vms[0].w[1] would be 8000 on the smallest host; it must be at most 4096'],
  ])('%s = %j overflows, and is an error that names the place', (path, value, problem) => {
    expect(problemOf(changed(path, value))).toContain(problem);
  });
});

describe('a plan for a cluster file', () => {
  const file = (more: Partial<ClusterFile> = {}): ClusterFile => ({
    ...cpu,
    hosts: [{ id: 'a' }, { id: 'b' }],
    vms: ['v1', 'v2'].map((id) => ({ id, host: 'a', w: [0.3] })),
    ...more,
  });
  const moves = (cluster: ClusterFile, options: { restrictToAz?: boolean } = {}): string[] =>
    moved(cluster, options).map(({ vm, from, to }) => `${vm}: ${from} -> ${to}`);

  it('moves VMs where no rule refuses it', () => {
    expect(moves(file())).toEqual(['v1: a -> b']);
  });

  it('moves no VM off a host that is down, and counts no such host', () => {
    const hosts = [{ id: 'a', state: 'down' as const }, { id: 'b' }, { id: 'c' }];
    expect(moves(file({ hosts }))).toEqual([]);
    const disabled = {
      ...file(),
      hosts: [{ id: 'a', state: 'down' as const, status: 'disabled' as const }, { id: 'b' }],
    };
    const plan = planCluster(disabled, { maxMigrations: 4, evacuateDisabledHosts: true });
    expect(plan.moves).toEqual([]);
    expect(plan.stats.refusals).toEqual({});
  });

  it('keeps a pinned VM in its zone, and other VMs in theirs only with restrictToAz', () => {
    const hosts = [
      { id: 'a', az: 'z1' },
      { id: 'b', az: 'z2' },
    ];
    expect(moves(file({ hosts }))).toEqual(['v1: a -> b']);
    expect(moves(file({ hosts }), { restrictToAz: true })).toEqual([]);
    const [first, second] = file().vms;
    if (first === undefined || second === undefined) throw new Error('no VMs');
    expect(moves(file({ hosts, vms: [{ ...first, pin: 'z1' }, second] }))).toEqual(['v2: a -> b']);
  });

  it('shares loads by the sizes of hosts, whatever their unit', () => {
    for (const unit of [1, 1e9, 1e-6]) {
      const hosts = [
        { id: 'a', size: [unit] },
        { id: 'b', size: [2 * unit] },
      ];
      const { after } = planCluster(file({ hosts }), { maxMigrations: 4 });
      // Of .6 on a one VM leaves .3, and is .15 of b; both are .3 of b.
      expect(after.combined).toBeCloseTo(0.15, 9);
    }
  });

  it('fits every resource class that a VM claims, and only these', () => {
    const vms = file().vms.map((vm) => ({ ...vm, resources: { CUSTOM_GPU: 1 } }));
    expect(moves(file({ vms, hosts: [{ id: 'a' }, { id: 'b', free: { CUSTOM_GPU: 1 } }] }))).toEqual(['v1: a -> b']);
    expect(moves(file({ vms, hosts: [{ id: 'a' }, { id: 'b', free: { CUSTOM_GPU: 0 } }] }))).toEqual([]);
    expect(moves(file({ vms }))).toEqual([]);
    expect(moves(file({ hosts: [{ id: 'a' }, { id: 'b', free: { CUSTOM_GPU: 0 } }] }))).toEqual(['v1: a -> b']);
  });

  it('allows a group its maximum number of members on a host', () => {
    const vms = [...file().vms, { id: 'v3', host: 'b', w: [0] }];
    const group = (maxServerPerHost: number) => ({
      groups: [{ id: 'g', policy: 'anti-affinity' as const, vms: ['v1', 'v2', 'v3'], maxServerPerHost }],
    });
    expect(moves(file({ vms, ...group(2) }))).toEqual(['v1: a -> b']);
    expect(moves(file({ vms, ...group(1) }))).toEqual([]);
  });

  it('has no share of the possible where every policy was within its threshold', () => {
    const share = (thresholds: number[]) => planCluster(file({ thresholds }), { maxMigrations: 4 }).shareOfPossible;
    expect(share([0.6])).toBeNull();
    expect(share([0.5])).toBe(1);
  });
});

describe('NUMA cells and CPUs of a cluster file', () => {
  const cell = (dedicatedCpus: number) => ({ dedicatedCpus, memMb: 4096 });
  const file = (more: object): unknown => ({
    ...cpu,
    hosts: [
      { id: 'a', traits: ['HW_CPU_X86_AVX2'], cells: [cell(8)] },
      { id: 'b', traits: ['HW_CPU_X86_AVX2'], cells: [cell(2), cell(2)], ...more },
    ],
    vms: ['v', 'u'].map((id) => ({ id, host: 'a', w: [0.3], cells: [{ hostCell: 0, dedicatedCpus: 4, memMb: 1024 }] })),
  });
  const moves = (more: object, options: object = {}): number => moved(file(more), options, 5).length;

  it('decide where VMs go', () => {
    expect(moves({ cells: [cell(2), cell(4)] })).toBe(1);
    expect(moves({})).toBe(0);
    expect(moves({ cells: [cell(4)], traits: ['HW_CPU_X86_SSE42'] })).toBe(0);
    expect(moves({ cells: [cell(4)], traits: ['HW_CPU_X86_SSE42'] }, { cpuCompatibility: 'ignore' })).toBe(1);
  });

  it('that are unknown take no VM that needs some, unless the caller allows it', () => {
    const unknown = { cells: undefined };
    const without = JSON.parse(JSON.stringify(file(unknown)));
    expect(moved(without)).toEqual([]);
    expect(moved(without, { moveUnknownTopology: true })).toHaveLength(1);
  });
});
