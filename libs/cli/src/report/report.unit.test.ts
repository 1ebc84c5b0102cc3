import { join } from 'node:path';
import { type CycleDecided, defaultEngineOptions, type LogEvent } from '@kronos/contracts';
import { readRecording } from '@kronos/replay';
import { operate } from '@kronos/replay/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Terminal } from '../terminal.ts';
import type { AggregateFigures, ReportCycle } from './figures.ts';
import { ReportFold } from './fold.ts';
import { reportPage } from './page.ts';
import { renderReport } from './render.ts';

const HISTORY = join(import.meta.dirname, '../../../../test/histories/0.1.0');
const plain: Terminal = { out() {}, err() {}, steer() {}, colour: false, columns: 80, live: false };

/** The server's timestamp of an event that states true times. */
const honest = (event: LogEvent): number =>
  Math.max(Date.parse(event.time), event.type === 'cycle.decided' ? Date.parse(event.data.snapshotTime) : 0);

const figuresOf = (
  events: readonly LogEvent[],
  onCycle: (cycle: ReportCycle) => void = () => undefined,
  storedAtMs = honest,
) => {
  const fold = new ReportFold({ optionsOf: () => defaultEngineOptions, onCycle });
  for (const event of events) fold.add(event, storedAtMs(event));
  return fold.figures();
};
const figuresFor = (name: string, events: readonly LogEvent[]): AggregateFigures => {
  const found = figuresOf(events).find(({ aggregate }) => aggregate === name);
  if (found === undefined) throw new Error(`nothing about ${name}`);
  return found;
};

/** Snapshots are taken to the minute, and some milliseconds. */
const minutes = (ms: number): number => Number((ms / 60_000).toFixed(2));

let recorded: LogEvent[];
beforeAll(async () => {
  const { history } = await readRecording(HISTORY);
  recorded = [];
  for await (const { event } of history.events()) if (event.type !== 'unreadable') recorded.push(event);
});

const decided = (): CycleDecided[] =>
  recorded.filter((event) => event.type === 'cycle.decided' && event.aggregate === 'gpu') as CycleDecided[];
/** The first decisions of the history. */
const firstDecided = () => decided().slice(0, 3) as [CycleDecided, CycleDecided, CycleDecided];
/** The first decision with a plan. */
const planned = () => decided().find(({ data }) => data.plan !== null) as CycleDecided;
const withData = (event: CycleDecided, more: Partial<CycleDecided['data']>): CycleDecided => ({
  ...event,
  data: { ...event.data, ...more },
});
/** The text of the report under a heading, for these facts. */
const said = (
  heading: RegExp,
  facts: NonNullable<Parameters<ReportFold['figures']>[0]> extends ReadonlyMap<string, infer F> ? Partial<F> : never,
) => {
  const fold = new ReportFold({ optionsOf: () => defaultEngineOptions });
  for (const event of recorded) fold.add(event, honest(event));
  const figures = fold.figures(new Map([['gpu', { profileSums: [], generations: [], ...facts }]]));
  return { figures, lines: renderReport(plain, figures).match(heading) };
};

describe('the report on a recorded history', () => {
  it('counts decisions, plans, moves and how they ended, as the events do', () => {
    const gpu = figuresFor('gpu', recorded);
    const own = recorded.filter(({ aggregate }) => aggregate === 'gpu');
    expect(gpu.decisions).toEqual({ planned: 2, quiet: 23, gated: 20 });
    expect(gpu.gates).toEqual({ cooldown: 14, settling: 6 });
    expect(gpu.plans).toEqual({ released: 2, proposed: 0, approved: 0, dryRun: 0 });
    expect(gpu.moves.completed).toBe(own.filter(({ type }) => type === 'migration.completed').length);
    expect(gpu.moves.failed).toEqual({ MigrationFailed: 2 });
    expect(gpu.dryRun).toBeNull();
    expect(gpu.refusals).toMatchObject({ 'vm-quarantined': 95, capacity: 3 });
    expect(Object.values(gpu.refusals)).toEqual(Object.values(gpu.refusals).sort((a, b) => b - a));
  });

  it('counts moves that were cancelled beside those that failed', () => {
    const moves = (types: readonly string[]) => {
      let next = 0;
      const ends = recorded.map((event) =>
        event.type === 'migration.failed' && event.aggregate === 'gpu' && !event.data.retryPending
          ? { ...event, data: { ...event.data, errorType: types[next++ % types.length] ?? '' } }
          : event,
      );
      return renderReport(plain, [figuresFor('gpu', ends as typeof recorded)]).match(/Moves .*/)?.[0];
    };
    expect(moves(['MigrationFailed'])).toMatch(/, 2 failed \(MigrationFailed 2\), \d/);
    expect(moves(['MigrationFailed', 'Cancelled'])).toMatch(/, 1 failed \(MigrationFailed 1\), 1 cancelled, \d/);
    expect(moves(['Cancelled'])).toMatch(/, 0 failed, 2 cancelled, \d/);
  });

  it('says how far measured loads of hosts are from the predicted ones', () => {
    const quiet = { failures: 0, commands: 0 };
    const { events } = operate({ seed: 11, cycles: 120, aggregates: ['gpu'], planner: 'greedy', ...quiet });
    const log = events.flatMap(({ event }) => (event.type === 'unreadable' ? [] : [event]));
    const gpu = figuresFor('gpu', log);
    const { soon, later, off } = gpu.predictions;
    expect(soon?.comparisons).toBeGreaterThan(0);
    expect(later?.comparisons).toBeGreaterThan(0);
    expect(later?.median).toBeLessThanOrEqual(later?.ninth ?? 0);
    expect(later?.ninth).toBeLessThanOrEqual(later?.highest ?? 0);
    expect(off).toEqual([]);
    expect(renderReport(plain, [gpu])).toMatch(
      /Predictions +values of hosts differ from the predicted ones by [\d.]+ \(median of \d+; /,
    );
    // Older logs state no loads.
    expect(figuresFor('gpu', recorded).predictions).toEqual({ soon: null, later: null, off: [] });
  });

  it('takes the time between decisions as observed, and gives the effect of the released plans', () => {
    const gpu = figuresFor('gpu', recorded);
    expect(minutes(gpu.observedMs)).toBe(45);
    const cpu = gpu.policies.find(({ policy }) => policy === 'cpu');
    const above = decided().filter(({ data }) =>
      data.before.policies.some(({ policy, imbalance, threshold }) => policy === 'cpu' && (imbalance ?? 0) > threshold),
    );
    expect(minutes(cpu?.aboveMs ?? 0)).toBe(above.length);
    expect(gpu.effect?.plans).toBe(2);
    expect(gpu.effect?.measured).toBeLessThan(gpu.effect?.before ?? 0);
  });

  it('counts a proposed plan as approved when its tasks were dispatched', () => {
    expect(figuresFor('general', recorded).plans).toEqual({ released: 0, proposed: 3, approved: 3, dryRun: 0 });
    const undispatched = recorded.filter(({ type }) => type !== 'plan.dispatched');
    expect(figuresFor('general', undispatched).plans.approved).toBe(0);
  });

  it('counts each move of others once, and the time in which nothing was balanced for them', () => {
    const move = { from: 'h2', to: 'h1', at: '2026-01-01T00:00:00Z' };
    const moves = ['vm-1', 'vm-2'].map((vm) => ({ serverId: vm, serverName: vm, ...move, undoes: vm === 'vm-1' }));
    const foreign = { count: 2, undone: 1, moves };
    const [first, second, third] = firstDecided();
    const reason = { code: 'foreign-moves', text: 'others move VMs' };
    const waited = withData(second, { foreign, reason });
    const held = withData(third, { foreign: { ...foreign, moves: foreign.moves.slice(0, 1) } });
    const gpu = figuresFor('gpu', [first, waited, held]);
    expect({ ...gpu.foreign, waitMs: minutes(gpu.foreign.waitMs) }).toEqual({ moves: 2, undone: 1, waitMs: 1 });
    expect(renderReport(plain, [gpu])).toMatch(
      /Moves of others +2 undo or repeat moves of Kronos \(1 undo one\); it balanced nothing for 1 min\n/,
    );
    expect(renderReport(plain, [figuresFor('gpu', [first, held])])).toMatch(
      /Moves of others +1 undo or repeat moves of Kronos \(1 undo one\)\n/,
    );
    expect(renderReport(plain, [figuresFor('gpu', [first])])).not.toContain('Moves of others');
  });

  it('says what was left of the course at the last decision that looked for it', () => {
    const [first, second] = firstDecided();
    const course = {
      ...{ reaches: true, moves: 31, costGib: 118, cycles: 4, seconds: 2400 },
      after: { combined: 0.1, policies: [] },
    };
    const looked = withData(first, { outcome: 'quiet', course });
    const gated = withData(second, { outcome: 'gated' });
    expect(renderReport(plain, [figuresFor('gpu', [looked, gated])])).toMatch(
      /Course +31 moves of 118 GiB in about 4 cycles \(40 min\) were left until every policy is at its target at \d\d:\d\d:\d\dZ\n/,
    );
    const quiet = withData(second, { outcome: 'quiet' });
    expect(renderReport(plain, [figuresFor('gpu', [looked, quiet])])).not.toContain('Course');
  });

  it('names the policies whose VMs do not add up to their hosts, with the likely cause', () => {
    const sums = [
      { policy: 'cpu', ratio: 0.001, host: 'h1', sum: 0.0008, value: 0.8, cause: 'unit' as const, factor: 1000 },
    ];
    const { figures, lines } = said(/Values of VMs.*/g, { profileSums: sums });
    expect(figures.find(({ aggregate }) => aggregate === 'gpu')?.profileSums).toEqual(sums);
    expect(lines).toEqual([
      "Values of VMs       cpu: the values of the VMs on h1 add up to 0.0008, and the host's value is 0.8 (over all hosts 0.001 times): the unit of the VMs' values is wrong",
    ]);
  });

  it('names the server groups that are broken and not repaired', () => {
    expect(said(/Group rules.*/g, { brokenGroups: 'anti-affinity group web (a, b on h1)' }).lines).toEqual([
      'Group rules         anti-affinity group web (a, b on h1); [engine] enforce_hard_affinity = true repairs them',
    ]);
  });

  it('says how many VMs are caught on a generation of CPUs', () => {
    const generations = [{ traits: ['HW_CPU_X86_AVX512F'], hosts: ['h3', 'h4'], servers: 17, closed: 2 }];
    expect(said(/CPU generations.*/g, { generations }).lines).toEqual([
      'CPU generations     h3, h4: CPU traits that others lack (HW_CPU_X86_AVX512F); 17 VMs on them may not move to 2 other hosts (cpu-traits)',
    ]);
  });

  it('counts the VMs that plans move to newer hosts, from which they may not return', () => {
    const first = planned();
    const { plan } = first.data;
    if (plan === null) throw new Error('the history has a plan');
    const why = { code: 'lowers-imbalance', text: 'it lowers the imbalance', detail: { oneWay: 'cpu-traits' } };
    const steps = plan.steps.map((step, i) => (i === 0 ? { ...step, why } : step));
    const figures = figuresFor('gpu', [withData(first, { plan: { ...plan, steps } })]);
    expect(renderReport(plain, [figures])).toMatch(/One-way moves +1 VM planned to newer hosts/);
    expect(renderReport(plain, [figuresFor('gpu', [first])])).not.toContain('One-way');
  });

  it('says nothing about an aggregate without a decision, and of an empty range that it is empty', () => {
    expect(figuresOf([])).toEqual([]);
    expect(figuresOf(recorded.filter(({ type }) => type !== 'cycle.decided'))).toEqual([]);
    expect(renderReport(plain, [])).toBe('The log holds no decision in this range.\n');
    expect(reportPage([], [], 0)).toContain('The log holds no decision in this range.');
  });
});

describe('a gap in the decisions', () => {
  it('counts for two intervals at most', () => {
    const [first, second] = firstDecided();
    const later = withData(second, at(first, 3600));
    expect(minutes(figuresFor('gpu', [first, later]).observedMs)).toBe(2 + 1);
  });
});

describe('a time that cannot be true', () => {
  it('of a snapshot counts as a minute after the timestamp of its event', () => {
    const [first, second] = firstDecided();
    const forged = withData(second, { snapshotTime: '2099-01-01T00:00:00.000Z' });
    const [gpu] = figuresOf([first, forged], undefined, ({ time }) => Date.parse(time));
    expect(gpu?.untilMs).toBe(Date.parse(second.time) + 60_000);
  });

  it('of a result does not keep the effect of its plan from being measured', () => {
    const late = recorded.map((event) =>
      event.type === 'migration.completed' ? { ...event, time: '2099-01-01T00:00:00.000Z' } : event,
    );
    const original = new Map(recorded.map((event) => [event.id, honest(event)]));
    const gpu = figuresOf(late, undefined, ({ id }) => original.get(id) ?? 0).find(
      ({ aggregate }) => aggregate === 'gpu',
    );
    expect(gpu?.effect?.plans).toBe(figuresFor('gpu', recorded).effect?.plans);
  });
});

/** The time fields of a decision that comes some seconds after another. */
const at = ({ data }: CycleDecided, seconds: number) => {
  const ms = Date.parse(data.snapshotTime) + seconds * 1000;
  return { snapshotTime: new Date(ms).toISOString(), cycle: Math.floor(ms / 60_000) };
};

describe('a dry run', () => {
  const dry = (seconds: number) => withData(planned(), { ...at(planned(), seconds), release: 'dryRun' });
  const { cooldownSeconds, instanceCooldownSeconds } = defaultEngineOptions;

  it('counts the moves of a plan once while the cooldowns last', () => {
    const steps = planned().data.plan?.steps ?? [];
    expect(figuresFor('gpu', [dry(0)]).dryRun).toEqual({
      plans: 1,
      moves: steps.length,
      memoryMb: steps.reduce((sum, { ramMb }) => sum + ramMb, 0),
    });
    const again = [dry(0), dry(60), dry(cooldownSeconds - 1), dry(cooldownSeconds + 1)];
    expect(figuresFor('gpu', again)).toMatchObject({ plans: { dryRun: 4 }, dryRun: { plans: 1, moves: steps.length } });
  });

  it('counts them again after the cooldown of the VMs', () => {
    const { dryRun } = figuresFor('gpu', [dry(0), dry(instanceCooldownSeconds)]);
    expect(dryRun).toMatchObject({ plans: 2, moves: 2 * (planned().data.plan?.steps.length ?? 0) });
  });

  it('uses the cooldowns that the planner wrote to the log', () => {
    const configured = recorded.find(({ type, aggregate }) => type === 'planner.configured' && aggregate === 'gpu');
    if (configured?.type !== 'planner.configured') throw new Error('the history has options');
    const options = { ...configured.data.options, cooldownSeconds: 0, instanceCooldownSeconds: 0 };
    const none = { ...configured, data: { ...configured.data, options } };
    expect(figuresFor('gpu', [none, dry(0), dry(60)]).dryRun?.plans).toBe(2);
  });

  it('is compared with its plans, in words, in the table and on the page', () => {
    const cycles: ReportCycle[] = [];
    const figures = figuresOf([dry(0), dry(60)], (cycle) => cycles.push(cycle));
    expect(figures[0]?.combined.meanAfterPlans).toBeLessThan(figures[0]?.combined.mean ?? 0);
    expect(cycles.map(({ planned: { moves } }) => moves)).toEqual([figures[0]?.dryRun?.moves, 0]);
    const text = renderReport(plain, figures);
    expect(text).toContain('dry run: nothing was moved');
    expect(text).toContain('MEAN WITH THE PLANS');
    const page = reportPage(figures, cycles, 0);
    expect(page).toContain('<svg');
    expect(page).toContain('above with the plans');
    expect(page).not.toContain('<script');
  });
});

it('the page shows names as text, whatever they hold', () => {
  const page = reportPage(figuresOf([{ ...planned(), aggregate: '<b>&' }]), [], 0);
  expect(page).toContain('&lt;b&gt;&amp;');
  expect(page).not.toContain('<b>');
});
