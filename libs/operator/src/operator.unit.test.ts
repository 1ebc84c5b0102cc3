import type { Control, StoredEvent } from '@kronos/contracts';
import { ALL, timeOf } from '@kronos/contracts';
import { fold } from '@kronos/projections';
import { testLog } from '@kronos/projections/testing';
import { when } from '@kronos/status/times';
import { describe, expect, it } from 'vitest';
import { aggregateOfDrain, choosePlan, requireClosable } from './ask.ts';
import { askedDrain } from './commands.ts';
import { type Outcome, outcomeOf } from './outcome.ts';
import { requireCells } from './scope.ts';

const moves = [
  { serverId: 'vm-1', from: 'h1', to: 'h2' },
  { serverId: 'vm-2', from: 'h1', to: 'h3', dependsOn: [1] },
  { serverId: 'vm-3', from: 'h2', to: 'h3' },
];

/** The outcome of the last event of a log. */
function outcome(log: ReturnType<typeof testLog>): Outcome {
  const last = log.events.at(-1) as StoredEvent;
  return outcomeOf(last.event as Control, timeOf(last), {
    before: fold(log.events.slice(0, -1)),
    after: fold(log.events),
  });
}

describe('what a command did, by the log', () => {
  it('is judged by the time that folds take, not by the one that the command states', () => {
    const log = testLog();
    log.configured({ approval: 'manual', approvalTtlSeconds: 900 });
    const plan = log.pass(10).proposed(moves);
    log.pass(1000);
    const given = log.approved(plan) as Control;
    const before = fold(log.events.slice(0, -1));
    const slow = { ...given, time: new Date(Date.parse(given.time) - 500_000).toISOString() };
    expect(outcomeOf(slow, Date.parse(given.time), { before, after: before })).toMatchObject({
      effect: 'refused',
      text: expect.stringContaining('expired'),
    });
    const left = log.quarantined('vm-1', 3600) as Control;
    const at = Date.parse(left.time);
    expect(outcomeOf({ ...left, time: '2099-01-01T00:00:00Z' }, at, { before, after: before }).text).toBe(
      `vm-1 is quarantined until ${when(at + 3_600_000, at)}`,
    );
  });

  const proposed = () => {
    const log = testLog();
    log.configured({ approval: 'manual', approvalTtlSeconds: 900 });
    return { log, plan: log.pass(10).proposed(moves) };
  };

  it('approves a whole plan', () => {
    const { log, plan } = proposed();
    log.pass(60).approved(plan);
    expect(outcome(log)).toEqual({ effect: 'done', text: 'approved: 3 tasks released' });
  });
  it('approves a step with what it depends on, and lets the others go', () => {
    const { log, plan } = proposed();
    log.pass(60).approved(plan, [2]);
    expect(outcome(log).text).toBe(
      'approved: 2 tasks released; 1 of them because others depend on them; 1 step dropped: the next cycle makes a new plan',
    );
  });
  it('is too late after the expiry', () => {
    const { log, plan } = proposed();
    log.pass(901).approved(plan);
    expect(outcome(log)).toEqual({ effect: 'refused', text: 'too late: the plan expired at 00:15:10Z (1 s ago)' });
  });
  it('releases no step whose window has closed', () => {
    const log = testLog();
    log.configured({ approval: 'manual', approvalTtlSeconds: 900 });
    const startBefore = new Date(log.nowMs + 60_000).toISOString();
    const move = { from: 'h1', to: 'h2' };
    const plan = log.proposed([
      { ...move, serverId: 'vm-1', startBefore },
      { ...move, serverId: 'vm-2' },
    ]);
    log.pass(60).approved(plan, [1]);
    expect(outcome(log)).toEqual({
      effect: 'refused',
      text: 'too late: the window of 1 step has closed, and no other step was approved',
    });
    log.approved(plan);
    expect(outcome(log)).toEqual({
      effect: 'done',
      text: 'approved: 1 task released; 1 step dropped (the window of 1 has closed): the next cycle makes a new plan',
    });
  });
  it('is too late after another answer', () => {
    const { log, plan } = proposed();
    log.pass(60).approved(plan, null, 'grace');
    log.pass(60).rejected(plan);
    expect(outcome(log)).toEqual({
      effect: 'refused',
      text: 'too late: the plan was released by grace at 00:01:10Z (1 min ago)',
    });
  });
  it('rejects a step with its dependents, or the plan', () => {
    const { log, plan } = proposed();
    log.pass(60).rejected(plan, [1]);
    expect(outcome(log).text).toBe('rejected: 2 steps, 1 of them because they depend on others; 1 step still waiting');
    log.pass(1).rejected(plan, [1]);
    expect(outcome(log).effect).toBe('refused');
    log.pass(1).rejected(plan);
    expect(outcome(log)).toEqual({
      effect: 'done',
      text: 'rejected: the plan is closed and the aggregate cooldown starts',
    });
    log.pass(1).approved(plan);
    expect(outcome(log).text).toContain('too late: the plan was rejected at');
  });
  it('knows a plan that nobody made', () => {
    const { log } = proposed();
    log.approved('nope');
    expect(outcome(log)).toEqual({ effect: 'refused', text: 'no plan nope waits for approval' });
  });
  it('pauses and resumes, here and everywhere', () => {
    const log = testLog();
    log.configured();
    log.paused();
    expect(outcome(log)).toMatchObject({ effect: 'done' });
    log.paused();
    expect(outcome(log)).toMatchObject({ effect: 'unchanged', text: expect.stringContaining('by ada') });
    log.about(ALL).paused('grace');
    expect(outcome(log).effect).toBe('done');
    log.about('gpu').resumed();
    expect(outcome(log).text).toContain('still paused for all aggregates by grace');
    log.about(ALL).resumed();
    expect(outcome(log)).toMatchObject({ effect: 'done' });
    log.about('gpu').resumed();
    expect(outcome(log)).toEqual({ effect: 'unchanged', text: 'it was not paused' });
  });
  it('cancels what waits, aborts what runs, and is too late for what is over', () => {
    const log = testLog();
    log.configured();
    const plan = log.released(moves);
    log.cancelled(`${plan}-s1`);
    expect(outcome(log)).toMatchObject({
      effect: 'done',
      text: expect.stringContaining('cancelled before it started'),
    });
    log.cancelled(`${plan}-s1`, 'grace');
    expect(outcome(log)).toMatchObject({ effect: 'unchanged', text: expect.stringContaining('requested by ada') });
    log.started({ task: `${plan}-s3` });
    log.aborted(`${plan}-s3`);
    expect(outcome(log)).toMatchObject({ effect: 'done', text: expect.stringContaining('runs in Nova') });
    log.completed({ task: `${plan}-s3` });
    log.aborted(`${plan}-s3`);
    expect(outcome(log)).toMatchObject({ effect: 'refused', text: expect.stringContaining('too late') });
    log.aborted('nope');
    expect(outcome(log).effect).toBe('refused');
  });
  it('closes the breaker of a host, and says when no failure of it is known', () => {
    const log = testLog();
    const task = `${log.released([{ serverId: 'vm-1', from: 'h1', to: 'h2' }])}-s1`;
    log.started({ task });
    log.failed({ task, hostAtFault: 'h2' });
    log.hostReleased('h2');
    expect(outcome(log)).toEqual({
      effect: 'done',
      text: 'h2 is a destination again: its failures so far no longer count',
    });
    log.hostReleased('h2');
    expect(outcome(log)).toMatchObject({ effect: 'unchanged' });
  });
  it('says where the drain of a host is open that changed its aggregate, and ends it', () => {
    const log = testLog();
    const drain = log.drainAsked('h1').data.commandId;
    log.about('new').drainAsked('h1');
    expect(outcome(log)).toMatchObject({
      effect: 'unchanged',
      text: expect.stringMatching(/^h1 is being drained already in gpu: requested by ada /),
    });
    expect(aggregateOfDrain(log.fold(), ['gpu', 'new'], 'h1')).toBe('gpu');
    expect(() => aggregateOfDrain(log.fold(), ['new'], 'h1')).toThrow('h1 is being drained in gpu');
    expect(askedDrain(log.fold(), 'h1')).toBe(drain);
    log.undrainAsked('h1');
    expect(outcome(log)).toEqual({ effect: 'done', text: 'the drain of h1 in gpu is withdrawn before it started' });
    log.drainAsked('h1');
    expect(outcome(log).effect).toBe('done');
  });
  it('quarantines and releases', () => {
    const log = testLog();
    log.quarantined('vm-1', 3600);
    expect(outcome(log).text).toBe('vm-1 is quarantined until 01:00:00Z (in 1 h)');
    log.quarantined('vm-1', -1);
    expect(outcome(log).text).toBe('vm-1 is quarantined until it is released');
    log.unquarantined('vm-1');
    expect(outcome(log).effect).toBe('done');
    log.unquarantined('vm-1');
    expect(outcome(log).effect).toBe('unchanged');
  });
  it('names the server of a quarantine where its name is known', () => {
    const log = testLog();
    const before = log.fold();
    log.quarantined('vm-1', -1);
    const after = log.fold();
    const event = log.events.at(-1)?.event as Control;
    const text = (name: string | null) => outcomeOf(event, 0, { before, after, nameOf: () => name }).text;
    expect(text('web-1')).toBe('web-1 (vm-1) is quarantined until it is released');
    expect(text(null)).toBe('vm-1 is quarantined until it is released');
  });
});

describe('a task that is closed', () => {
  const log = testLog();
  const plan = log.released([
    { serverId: 'vm1', from: 'h1', to: 'h2' },
    { serverId: 'vm2', from: 'h1', to: 'h2' },
    { serverId: 'vm3', from: 'h1', to: 'h2' },
  ]);
  for (const step of [1, 2]) log.started({ task: `${plan}-s${step}` });
  log.abortRefused({ task: `${plan}-s1` });
  const state = log.fold();
  const ask = (step: number, force = false) => requireClosable(state, 'gpu', `${plan}-s${step}`, { force });

  it('must have started, and Nova must have been asked to abort it, unless it is forced', () => {
    expect(() => ask(1)).not.toThrow();
    expect(() => ask(2)).toThrow(`no abort of ${plan}-s2 was requested`);
    expect(() => ask(2, true)).not.toThrow();
    expect(() => ask(3, true)).toThrow(`${plan}-s3 has not started`);
  });

  it('is left to its holder; a second request changes nothing', () => {
    const close = (person: string, more: { readonly force?: true } = {}) => {
      const before = log.fold();
      const event = log.closed(`${plan}-s1`, person, more);
      return outcomeOf(event as Control, Date.parse(event.time), { before, after: log.fold() });
    };
    expect(close('ada')).toMatchObject({
      effect: 'done',
      text: 'the move of name-of-vm1 (h1 -> h2) is being closed; Nova is asked to abort its migration first, if it works on it. It counts towards the limits until Nova shows that it no longer works on the VM; --force ends it without that',
    });
    expect(close('grace')).toMatchObject({ effect: 'unchanged' });
    expect(close('grace', { force: true })).toMatchObject({
      effect: 'done',
      text: expect.stringContaining('If Nova moves the VM on, that counts towards no limit'),
    });
    expect(close('ada', { force: true })).toMatchObject({ effect: 'unchanged' });
    log.failed({ task: `${plan}-s1`, errorType: 'Cancelled' });
    expect(close('ada')).toMatchObject({ effect: 'refused', text: expect.stringContaining('too late') });
  });
});

describe('the plan that is answered', () => {
  it('is the only one that waits; several are listed', () => {
    const log = testLog();
    for (const name of ['gpu', 'cpu']) log.about(name).configured({ approval: 'manual' });
    const first = log.about('gpu').proposed(moves);
    const choose = (planId?: string, steps: number[] | null = null) =>
      choosePlan(log.fold(), ['gpu', 'cpu'], log.nowMs, { planId, steps });
    expect(choose()).toEqual({ aggregate: 'gpu', planId: first });
    expect(() => choose(first, [7])).toThrow('step 7 of the plan does not wait for approval');
    const second = log.about('cpu').proposed(moves);
    expect(() => choose()).toThrow('several plans wait for approval: name one');
    expect(choose(second)).toEqual({ aggregate: 'cpu', planId: second });
    expect(() => choose('nope')).toThrow('no plan "nope"');
  });
});

describe('a plan between cells', () => {
  const asked = (from: string, to: string, between = ['old', 'new']) =>
    requireCells(between, ['old', 'new', 'gpu'], from, to);

  it('goes from one aggregate of [cells] aggregates to another', () => {
    expect(() => asked('old', 'new')).not.toThrow();
  });
  it.each([
    ['old', 'new', [], 'moves between cells are off'],
    ['old', 'nwe', undefined, 'does not name "nwe"'],
    ['gpu', 'new', undefined, 'does not name "gpu"'],
    ['old', 'old', undefined, 'the source and the target'],
  ] as const)('is refused from %s to %s, between %j: %s', (from, to, between, why) => {
    expect(() => asked(from, to, between === undefined ? undefined : [...between])).toThrow(why);
  });
});
