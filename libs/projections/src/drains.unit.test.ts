import { describe, expect, it } from 'vitest';
import { type TestLog, testLog } from '../testing/index.ts';
import { canonicalState, fromParts, toParts } from './checkpoint.ts';
import { drainingHosts, drainLeft, openDrain } from './drains.ts';
import { fold } from './evolve.ts';
import { MAX_DRAINS, RECENT_DRAINS } from './state.ts';

/** A host whose drain was asked for; gives the id of the drain. */
const drain = (log: TestLog, host = 'h1'): string => log.drainAsked(host).data.commandId;
const drainOf = (log: TestLog, host = 'h1') => log.state().drains.get(host);
const outcomes = (log: TestLog) => log.state().recentDrains.map(({ host, outcome }) => [host, outcome]);

describe('a drain', () => {
  it('begins with the command and ends when the host is enabled', () => {
    const log = testLog();
    const id = drain(log);
    expect(drainingHosts(log.state(), [])).toEqual(['h1']);
    log.hostClaimed(id, 'h1');
    expect(drainOf(log)?.claim).toMatchObject({ act: 'disable', attempt: 1, executor: 'executor-1' });
    log.hostDisabled(id, 'h1');
    expect(drainOf(log)).toMatchObject({ claim: null, disabled: { byKronos: true } });
    log.hostDrained(id, 'h1');
    log.undrainAsked('h1', 'bob');
    expect(drainingHosts(log.state(), [])).toEqual([]);
    log.hostClaimed(id, 'h1', 'enable');
    log.hostEnabled(id, 'h1');
    expect(drainOf(log)).toBeUndefined();
    expect(log.state().recentDrains).toMatchObject([
      { host: 'h1', outcome: 'enabled', asked: { by: 'ada' }, undrainAsked: { by: 'bob' } },
    ]);
    expect(log.state().recentDrains[0]?.drainedAtMs).not.toBeNull();
  });

  it('ends when somebody else enables the host, or when the host is left disabled', () => {
    const log = testLog();
    const first = drain(log);
    log.hostDisabled(first, 'h1');
    log.hostEnabled(first, 'h1', false);
    const second = drain(log, 'h2');
    log.hostDisabled(second, 'h2', false);
    log.undrainAsked('h2');
    log.hostLeftDisabled(second, 'h2');
    expect(outcomes(log)).toEqual([
      ['h1', 'enabledByOthers'],
      ['h2', 'leftDisabled'],
    ]);
  });

  it('is the only one of its host in the whole cloud, and an undrain ends it wherever it was asked for', () => {
    const log = testLog();
    const first = drain(log);
    log.about('new');
    drain(log);
    expect(log.state('new').drains.size).toBe(0);
    expect(openDrain(log.fold(), 'h1')).toMatchObject({ aggregate: 'gpu', drain: { asked: { commandId: first } } });
    log.undrainAsked('h1', 'bob');
    expect(openDrain(log.fold(), 'h1')).toBeNull();
    expect(outcomes(log)).toEqual([['h1', 'withdrawn']]);
    const second = drain(log);
    expect(openDrain(log.fold(), 'h1')).toMatchObject({ aggregate: 'new', drain: { asked: { commandId: second } } });
  });

  it('is not changed by an undrain of another host or by a second undrain', () => {
    const log = testLog();
    const id = drain(log);
    log.hostDisabled(id, 'h1');
    log.undrainAsked('h2');
    expect(drainingHosts(log.state(), [])).toEqual(['h1']);
    log.undrainAsked('h1', 'bob');
    log.undrainAsked('h1', 'eve');
    expect(drainOf(log)).toMatchObject({ undrainAsked: { by: 'bob' } });
  });

  it('is withdrawn at once while nothing was done, and after a failed attempt', () => {
    const log = testLog();
    drain(log);
    log.undrainAsked('h1');
    const second = drain(log, 'h2');
    log.hostClaimed(second, 'h2');
    log.undrainAsked('h2');
    // The claim may still be acted on: what became of it decides.
    expect(drainOf(log, 'h2')).toBeDefined();
    log.hostActFailed(second, 'h2');
    expect(outcomes(log)).toEqual([
      ['h1', 'withdrawn'],
      ['h2', 'withdrawn'],
    ]);
  });

  it('keeps the failure of an attempt until the host is disabled', () => {
    const log = testLog();
    const id = drain(log);
    log.hostClaimed(id, 'h1');
    log.hostActFailed(id, 'h1');
    expect(drainOf(log)).toMatchObject({ claim: null, failure: { attempt: 1, status: 403 } });
    log.hostClaimed(id, 'h1', 'disable', 2);
    log.hostDisabled(id, 'h1');
    expect(drainOf(log)?.failure).toBeNull();
  });

  it('shows the progress that a decision saw after the host was disabled', () => {
    const log = testLog();
    log.configured();
    const id = drain(log);
    const evacuations = [{ host: 'h1', state: 'stuck' as const, left: 2 }];
    log.pass(60).decided('none', [], { evacuations });
    expect(drainOf(log)?.progress).toBeNull();
    log.pass(10).hostDisabled(id, 'h1');
    const reason = { code: 'vm-locked', text: 'locked' };
    const stuck = [{ serverId: 'v', serverName: 'db', host: 'h1', phase: 'evacuate' as const, reason }];
    log.pass(60).decided('none', [], { evacuations, stuck });
    expect(drainOf(log)?.progress).toMatchObject({ state: 'stuck', left: 2, stuck: [{ serverName: 'db', reason }] });
    expect(drainOf(log)?.progress?.cycles).toBe(1);
    log.pass(60).decided('none', [], { evacuations, stuck });
    expect(drainOf(log)?.progress?.cycles).toBe(2);
    // A cycle that a gate ended says nothing.
    log.pass(60).decided('none', [], { outcome: 'gated' });
    expect(drainOf(log)?.progress?.state).toBe('stuck');
  });

  it('counts the VMs that left after the look', () => {
    const log = testLog();
    log.configured();
    const id = drain(log);
    log.hostDisabled(id, 'h1');
    const evacuations = [{ host: 'h1', state: 'running' as const, left: 3 }];
    const plan = log.pass(60).decided(
      'released',
      [
        { serverId: 'a', from: 'h1', to: 'h2' },
        { serverId: 'b', from: 'h1', to: 'h2' },
        { serverId: 'c', from: 'h3', to: 'h2' },
      ],
      { evacuations },
    );
    const left = () => drainLeft(log.state().drains.get('h1') ?? { progress: null });
    for (const [step, expected] of [
      [1, 2],
      [3, 2],
      [2, 1],
    ]) {
      log.pass(10).started({ task: `${plan}-s${step}` });
      log.completed({ task: `${plan}-s${step}` });
      expect(left()).toBe(expected);
    }
    // A snapshot of before the second departure has counted that VM.
    log.decided('none', [], { evacuations: [{ host: 'h1', state: 'running', left: 2 }], snapshotMs: log.nowMs - 5000 });
    expect(left()).toBe(1);
    log.pass(60).decided('none', [], { evacuations: [{ host: 'h1', state: 'running', left: 1 }] });
    expect(left()).toBe(1);
  });

  it('is not changed by events of another drain, by a second command, or by one that names no drain', () => {
    const log = testLog();
    const id = drain(log);
    const before = canonicalState(log.fold());
    log.drainAsked('h1', 'bob');
    log.hostDisabled('another', 'h1');
    log.hostClaimed('another', 'h1');
    log.hostDrained(id, 'h9');
    log.undrainAsked('h9');
    expect(drainOf(log)?.asked).toMatchObject({ commandId: id, by: 'ada' });
    expect(drainOf(log)).toEqual(fold(log.events.slice(0, 1)).aggregates.get('gpu')?.drains.get('h1'));
    expect(before).not.toBe(canonicalState(log.fold()));
  });

  it('belongs to one aggregate: addressed to all it makes them unplannable', () => {
    const log = testLog();
    log.about('_all_').drainAsked('h1');
    expect(log.fold().all.unreadables).toMatchObject([{ claimedType: 'host.drainAsked', remedy: 'skip' }]);
  });

  it('folds the same from a checkpoint', () => {
    const log = testLog();
    const id = drain(log);
    log.hostClaimed(id, 'h1');
    const restored = fromParts(JSON.parse(JSON.stringify(toParts(log.fold(), 'x'))));
    log.hostDisabled(id, 'h1');
    if (!restored.ok) throw new Error(restored.problem);
    expect(canonicalState(fold(log.events, restored.state))).toBe(canonicalState(log.fold()));
  });
});

describe('drains', () => {
  it('are bounded, those in force and those that are over', () => {
    const log = testLog();
    for (let n = 0; n <= MAX_DRAINS; n++) log.drainAsked(`h${n}`);
    expect(log.state().drains.size).toBe(MAX_DRAINS);
    for (let n = 0; n <= RECENT_DRAINS; n++) log.undrainAsked(`h${n}`);
    expect(log.state().recentDrains).toHaveLength(RECENT_DRAINS);
  });
});
