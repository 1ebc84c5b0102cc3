import type { Course } from '@kronos/contracts';
import { planCluster } from '@kronos/placement';
import { testLog } from '@kronos/projections/testing';
import { plansOf } from '@kronos/replay';
import { memoryHistory } from '@kronos/replay/testing';
import { expect, it } from 'vitest';
import { renderPlan } from '../plans/record.ts';
import { renderCluster } from './plan.ts';

const terminal = { out() {}, err() {}, steer() {}, colour: false, columns: 100, live: false };

type File = Parameters<typeof renderCluster>[2]['file'];
const shown = (file: File, options: Partial<Parameters<typeof planCluster>[1]>): string =>
  renderCluster(terminal, planCluster(file, { maxMigrations: 5, ...options }), { planMs: 1, file, options });

const DUTIES = { enforceHardAffinity: true, evacuateDisabledHosts: true };

const course: Course = {
  reaches: true,
  moves: 31,
  costGib: 124,
  cycles: 4,
  seconds: 2400,
  after: { combined: 0.1, policies: [] },
};

it('shows what is left of the course when the plan was made', async () => {
  const log = testLog();
  log.configured();
  log.decided('dryRun', [{ serverId: 'a', from: 'h1', to: 'h2' }], { course });
  const [plan] = await plansOf(memoryHistory(log.events, []).events(), {});
  if (plan === undefined) throw new Error('no plan');
  await expect(renderPlan({ terminal, now: () => log.nowMs }, plan)).toMatchFileSnapshot(
    '../../test/golden/outputs/plan-show-course.golden.txt',
  );
});

it('says what could not be done: an evacuation that is stuck, each VM with its obstacle, and groups that contradict each other', () => {
  const cluster = {
    policies: ['cpu'],
    weights: [1],
    hosts: [
      { id: 'old', score: [0.3], status: 'disabled', memFreeMb: 0 },
      { id: 'h1', score: [0.2], memFreeMb: 30 },
      { id: 'h2', score: [0.2], memFreeMb: 30 },
    ],
    vms: [
      { id: 'big', host: 'old', w: [0.3], memMb: 40 },
      { id: 'a', host: 'h1', w: [0.2], memMb: 5 },
      { id: 'b', host: 'h2', w: [0.2], memMb: 5 },
    ],
    groups: [
      { id: 'near', policy: 'affinity', vms: ['a', 'b'] },
      { id: 'far', policy: 'anti-affinity', vms: ['a', 'b'] },
    ],
  };
  const planned = planCluster(cluster, { maxMigrations: 5, ...DUTIES });
  const text = renderCluster(terminal, planned, { planMs: 1, file: cluster as File, options: DUTIES });
  expect(text).toMatch(/^0 moves, /);
  expect(text).toContain('evacuation of old: stuck, 1 VM on the host\n');
  expect(text).toContain('big cannot leave old: no host takes it: h1 has too little free capacity');
  expect(text).toContain(
    'the affinity group near and the anti-affinity group far contradict each other: a, b are in both',
  );
});

it('says what it leaves as it is, because the options say so: disabled hosts, and groups that are still broken after its moves', () => {
  const hosts = [{ id: 'h1' }, { id: 'h2' }, { id: 'old', status: 'disabled' as const }];
  const vms = [
    { id: 'a', host: 'h1', w: [0.3] },
    { id: 'b', host: 'h1', w: [0.3] },
    { id: 'c', host: 'old', w: [0.1] },
  ];
  const groups = [{ id: 'far', policy: 'anti-affinity' as const, vms: ['a', 'b'] }];
  const cluster = (threshold: number): File => ({
    policies: ['cpu'],
    weights: [1],
    thresholds: [threshold],
    hosts,
    vms,
    groups,
  });
  const broken = 'the rule of a server group is broken: anti-affinity group far (a, b on h1)';
  const kept = 'old is disabled, and 1 VM stays on it ([engine] evacuate_disabled_hosts = false)\n';
  expect(shown(cluster(0.9), {})).toContain(broken);
  expect(shown(cluster(0.9), {})).toContain(kept);
  // A move for the balance parts the two.
  expect(shown(cluster(0.2), {})).not.toContain(broken);
  for (const text of [shown(cluster(0.9), DUTIES), shown(cluster(0.2), DUTIES)])
    for (const left of [broken, kept]) expect(text).not.toContain(left);
});

it('says why nothing moves where a policy is above its threshold', () => {
  const cluster = {
    policies: ['cpu'],
    weights: [1],
    thresholds: [0.1],
    hosts: [
      { id: 'a', score: [0.6] },
      { id: 'b', score: [0.2] },
    ],
    vms: [{ id: 'v', host: 'a', w: [0.0002] }],
  };
  const text = (minGain: number) => shown(cluster, { minGain });
  expect(text(0.001)).toContain('\nNo legal moves were found that gain min_gain or more.\n');
  expect(text(0)).not.toContain('No legal moves');
});

it('says why nothing moves where no policy asks for it, and where no host can be emptied', () => {
  const hosts = [{ id: 'a' }, { id: 'b' }];
  const vms = ['v', 'w'].map((id) => ({ id, host: 'a', w: [0.2], immovable: true }));
  const cluster = { policies: ['cpu'], weights: [1], hosts, vms };
  const balanced = 'No policy detects an imbalance and nothing else needs doing.';
  expect(shown({ ...cluster, thresholds: [0.5] } as File, {})).toContain(balanced);
  const gated = shown({ ...cluster, thresholds: [0.1], actAbove: [0.6] } as File, {});
  expect(gated).toContain('\nNo host is above act_above, so the policies that have it ask for no moves.\n');
  expect(gated).not.toContain(balanced);
  const packed = shown({ ...cluster, thresholds: [0.1] } as File, { mode: 'pack' });
  expect(packed).toContain('\nNo host can be drained.\n\nrefused:\n');
});

it('says of a proven optimum that it is all that any plan could gain', () => {
  const hosts = ['a', 'b', 'c', 'd'].map((id) => ({ id }));
  const vms = Array.from({ length: 10 }, (_, v) => ({ id: `v${v}`, host: v % 2 === 0 ? 'a' : 'b', w: [0.1] }));
  const text = shown({ policies: ['cpu'], weights: [1], thresholds: [0.05], hosts, vms } as File, {
    maxMigrations: 9,
    searchWorkLimit: 200_000,
  });
  expect(text).toContain('100 % of what any plan could gain');
});

it('says which number of moves the smallest part of a course needs', () => {
  // The target is out of reach: only an exchange of two VMs lowers the imbalance.
  const loads = { first: [0.5, 0.3], second: [0.35, 0.27] };
  const cluster = {
    policies: ['cpu'],
    weights: [1],
    thresholds: [0.05],
    hosts: Object.keys(loads).map((id) => ({ id })),
    vms: Object.entries(loads).flatMap(([host, own]) => own.map((w, v) => ({ id: `${host}${v}`, host, w: [w] }))),
  };
  const text = (maxMigrations: number) => shown(cluster, { maxMigrations, searchWorkLimit: 1_000_000 });
  const one = text(1);
  expect(one.split('\n')).toContain('The smallest part of the course has 2 moves: set --max-migrations to 2 or more.');
  expect(one).not.toContain('No legal moves');
  expect(text(2)).not.toContain('The smallest part');
});
