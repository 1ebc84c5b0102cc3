import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { nextRunAct, progressOf, progressText, type RunHost, runHostOf } from './drainRun.ts';

const host = (name: string, set: Partial<RunHost> = {}): RunHost => ({
  host: name,
  aggregate: 'gpu',
  drainId: null,
  hooked: false,
  undrainAsked: false,
  ...set,
});
const rolling = { maxParallel: 1, rolling: true };
const next = (
  log: ReturnType<typeof testLog>,
  hosts: readonly RunHost[],
  options: { readonly maxParallel: number; readonly rolling: boolean },
) => {
  const act = nextRunAct(hosts, () => log.state(), options);
  return 'host' in act ? [act.do, act.host.host] : act;
};
/** A host that is disabled, and with `empty` drained. */
function drained(log: ReturnType<typeof testLog>, name: string, empty = true): string {
  const id = log.drainAsked(name).data.commandId;
  log.hostDisabled(id, name);
  if (empty) log.hostDrained(id, name);
  return id;
}
function stuck(log: ReturnType<typeof testLog>, name: string, cycles = 3): string {
  log.configured();
  const id = drained(log, name, false);
  const reason = { code: 'vm-locked', text: 'The VM is locked.' };
  const seen = {
    evacuations: [{ host: name, state: 'stuck' as const, left: 1 }],
    stuck: [{ serverId: 'v', serverName: 'db', host: name, phase: 'evacuate' as const, reason }],
  };
  for (let cycle = 0; cycle < cycles; cycle++) log.pass(60).decided('none', [], seen);
  return id;
}

describe('a run over several hosts', () => {
  it('asks for as many drains as may run, and for the next one when one has ended', () => {
    const log = testLog();
    const hosts = [host('h1'), host('h2'), host('h3')];
    const two = { maxParallel: 2, rolling: false };
    expect(next(log, hosts, two)).toEqual(['drain', 'h1']);
    const h1 = drained(log, 'h1', false);
    const h2 = drained(log, 'h2', false);
    const running = [host('h1', { drainId: h1 }), host('h2', { drainId: h2 }), host('h3')];
    expect(next(log, running.slice(0, 1).concat(hosts.slice(1)), two)).toEqual(['drain', 'h2']);
    expect(next(log, running, two)).toEqual({ do: 'wait' });
    log.hostDrained(h1, 'h1');
    expect(next(log, running, two)).toEqual(['drain', 'h3']);
  });

  it('ends when all are empty, and with a problem when only stuck ones are left', () => {
    const log = testLog();
    const empty = host('h1', { drainId: drained(log, 'h1') });
    const all = { maxParallel: 2, rolling: false };
    expect(next(log, [empty], all)).toEqual({ do: 'end', problem: null, stuck: [] });
    const blocked = host('h2', { drainId: stuck(log, 'h2') });
    expect(next(log, [empty, blocked], all)).toEqual({ do: 'end', problem: 'the drain of h2 is stuck', stuck: ['h2'] });
    // Another one is still under way.
    const other = host('h3', { drainId: drained(log, 'h3', false) });
    expect(next(log, [blocked, other], all)).toEqual({ do: 'wait' });
  });
});

describe('rolling maintenance', () => {
  it('empties a host, runs the hook, enables the host, and goes on with the next one', () => {
    const log = testLog();
    const second = host('h2');
    expect(next(log, [host('h1'), second], rolling)).toEqual(['drain', 'h1']);
    const drainId = drained(log, 'h1', false);
    expect(next(log, [host('h1', { drainId }), second], rolling)).toEqual({ do: 'wait' });
    log.hostDrained(drainId, 'h1');
    expect(next(log, [host('h1', { drainId }), second], rolling)).toEqual(['hook', 'h1']);
    expect(next(log, [host('h1', { drainId, hooked: true }), second], rolling)).toEqual(['undrain', 'h1']);
    const asked = host('h1', { drainId, hooked: true, undrainAsked: true });
    // The command is on its way, and then an executor enables the host.
    expect(next(log, [asked, second], rolling)).toEqual({ do: 'wait' });
    log.undrainAsked('h1');
    expect(next(log, [asked, second], rolling)).toEqual({ do: 'wait' });
    log.hostEnabled(drainId, 'h1');
    expect(next(log, [asked, second], rolling)).toEqual(['drain', 'h2']);
    expect(next(log, [asked], rolling)).toEqual({ do: 'end', problem: null, stuck: [] });
  });

  it('goes on past a host that was left disabled after its hook', () => {
    const log = testLog();
    const drainId = drained(log, 'h1');
    log.undrainAsked('h1');
    log.hostLeftDisabled(drainId, 'h1');
    const asked = host('h1', { drainId, hooked: true, undrainAsked: true });
    expect(next(log, [asked, host('h2')], rolling)).toEqual(['drain', 'h2']);
  });

  it('goes on while balancing may still make room for the VMs that are left', () => {
    const log = testLog();
    const drainId = stuck(log, 'h1', 2);
    expect(next(log, [host('h1', { drainId }), host('h2')], rolling)).toEqual({ do: 'wait' });
  });

  it('stops at a drain that is stuck, or that somebody ended before the hook', () => {
    const log = testLog();
    const drainId = stuck(log, 'h1');
    expect(next(log, [host('h1', { drainId }), host('h2')], rolling)).toEqual({
      do: 'end',
      problem: 'h1 is stuck with 1 VM that cannot leave: db (the VM is locked)',
      stuck: ['h1'],
    });
    log.hostEnabled(drainId, 'h1', false);
    expect(next(log, [host('h1', { drainId }), host('h2')], rolling)).toEqual({
      do: 'end',
      problem: 'the drain of h1 ended before its maintenance: somebody else enabled the host',
      stuck: [],
    });
  });
});

describe('a run of which only its hosts and its start are known', () => {
  const of = (log: ReturnType<typeof testLog>, since: number) =>
    ['h1', 'h2'].map((name) => runHostOf({ aggregate: 'gpu', host: name, since }, log.state()));

  it('knows the drain that a host is in, and a host that had its maintenance', () => {
    const log = testLog();
    log.configured();
    const since = log.events.at(-1)?.sequence ?? 0;
    expect(of(log, since)).toEqual([host('h1'), host('h2')]);
    const drainId = drained(log, 'h1');
    expect(of(log, since)).toEqual([host('h1', { drainId }), host('h2')]);
    expect(next(log, of(log, since), rolling)).toEqual(['hook', 'h1']);
    log.undrainAsked('h1');
    log.hostEnabled(drainId, 'h1');
    expect(of(log, since)).toEqual([host('h1', { drainId, hooked: true, undrainAsked: true }), host('h2')]);
    expect(next(log, of(log, since), rolling)).toEqual(['drain', 'h2']);
  });

  it('stops at a drain that ended before the host was empty', () => {
    const log = testLog();
    const drainId = drained(log, 'h1', false);
    log.undrainAsked('h1');
    log.hostEnabled(drainId, 'h1');
    expect(next(log, of(log, 0), rolling)).toEqual({
      do: 'end',
      problem: 'the drain of h1 ended before its maintenance: the host is enabled',
      stuck: [],
    });
  });

  it('takes no drain that ended before its start as one of its own', () => {
    const log = testLog();
    const drainId = drained(log, 'h1');
    log.undrainAsked('h1');
    log.hostEnabled(drainId, 'h1');
    expect(of(log, log.events.at(-1)?.sequence ?? 0)).toEqual([host('h1'), host('h2')]);
  });
});

describe('the progress of a host', () => {
  it('is what the log says of this drain', () => {
    const log = testLog();
    const text = (drainId: string | null): string => progressText(progressOf({ host: 'h1', drainId }, log.state()));
    expect(text(null)).toBe('waiting');
    const id = log.drainAsked('h1').data.commandId;
    expect(text(id)).toBe('its service is being disabled');
    log.hostClaimed(id, 'h1');
    log.hostActFailed(id, 'h1');
    expect(text(id)).toBe('its service is not disabled: forbidden by policy');
    log.hostDisabled(id, 'h1');
    expect(text(id)).toBe('disabled; the next plan moves its VMs away');
    log.hostDrained(id, 'h1');
    expect(text(id)).toBe('drained: no VM is left on it');
    log.undrainAsked('h1');
    expect(text(id)).toBe('its service is being enabled');
    log.hostEnabled(id, 'h1');
    expect(text(id)).toBe('the host is enabled');
    log.drainAsked('h1');
    expect(text(id)).toBe('the host is enabled');
  });

  it('says how many VMs are left, how many of them are in moves, and about when the host is empty', () => {
    const log = testLog();
    log.configured();
    const id = log.drainAsked('h1').data.commandId;
    log.hostDisabled(id, 'h1');
    const moves = [1, 2].map((n) => ({ serverId: `vm${n}`, from: 'h1', to: 'h2', ramMb: 60_000 }));
    const text = (): string => progressText(progressOf({ host: 'h1', drainId: id }, log.state()));
    const evacuations = [{ host: 'h1', state: 'running' as const, left: 5 }];
    const plan = log.pass(60).decided('released', moves, { evacuations });
    log.dispatched(plan, 2);
    log.pass(1).started({ task: `${plan}-s1` });
    expect(text()).toBe(
      'disabled; 5 VMs on it, 2 of them in moves (1 under way), 3 in later plans; empty after about 1 h 7 min of moves (assumed pace)',
    );
    log.pass(300).completed({ task: `${plan}-s1` }, 300);
    expect(text()).toMatch(
      /^disabled; 4 VMs on it, 1 of them in moves \(0 under way\), 3 in later plans; empty after about/,
    );
    log.pass(300).completed({ task: `${plan}-s2` }, 300);
    expect(text()).toBe('disabled; 3 VMs on it');
  });
});
