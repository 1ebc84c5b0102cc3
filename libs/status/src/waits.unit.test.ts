import { type LogEventOf, serviceNames } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { heartbeat, runningLog, wellFacts } from '../testing/index.ts';
import { drainStatus } from './drains.ts';
import { judgeFacts } from './judge.ts';
import { statusOf } from './status.ts';
import { waitExists, waitStates } from './waits.ts';

type Log = ReturnType<typeof runningLog>;
type Evacuation = LogEventOf<'cycle.decided'>['data']['evacuations'][number];

const MOVES = [
  { serverId: 'a', from: 'h1', to: 'h2' },
  { serverId: 'b', from: 'h1', to: 'h3' },
];
const cooling = { code: 'vm-cooling-down', text: 'The VM was released a short while ago.', count: 1, serverName: 'db' };
const reason = { code: 'vm-locked', text: 'locked' };

/** A drain of h1 whose host is disabled, as the decision of one minute later sees it. */
function draining(log: Log, evacuation: Partial<Evacuation> = {}, decisions = 1): string {
  const id = log.drainAsked('h1').data.commandId;
  log.hostDisabled(id, 'h1');
  const end = { host: 'h1', state: 'running' as const, left: 1, ...evacuation };
  const stuck =
    end.state === 'stuck' ? [{ serverId: 'v', serverName: 'db', host: 'h1', phase: 'evacuate' as const, reason }] : [];
  for (let i = 0; i < decisions; i++) log.pass(60).decided('none', [], { evacuations: [end], stuck });
  return id;
}

const waits = (act: (log: Log) => void, seconds = 0) => {
  const log = runningLog();
  act(log);
  log.pass(seconds);
  const state = log.state('gpu');
  const found = waitStates(state, log.nowMs);
  for (const one of found) if (one.state === 'waits') expect(waitExists(state, one.wait, log.nowMs)).toBe(true);
  const named = (text: string) => text.replace(/gpu-\d+/, 'PLAN');
  return found.map(({ about, ...one }) => [
    named(`${about.kind} ${about.id}`),
    one.state === 'waits' ? named(`${one.wait.code} ${one.wait.of}`) : one.reasons.map(({ code }) => code).join(),
  ]);
};

describe('each task, plan and drain waits for a thing that exists', () => {
  it.each<[string, (log: Log) => void, string[][]]>([
    ['nothing is open', () => undefined, []],
    ['a plan waits for an answer', (log) => void log.proposed(MOVES), [['plan PLAN', 'approval PLAN']]],
    [
      'a released plan waits for its tasks, and its tasks for an executor',
      (log) => void log.released(MOVES),
      [
        ['plan PLAN', 'planner gpu'],
        ['task PLAN-s1', 'executor gpu'],
        ['task PLAN-s2', 'executor gpu'],
      ],
    ],
    [
      'one move runs, and another waits for its slot',
      (log) => {
        const plan = log.released(MOVES);
        log.dispatched(plan, 2);
        const task = `${plan}-s1`;
        log.started({ task });
        log.observed({ task, migrationId: 17 });
      },
      [
        ['task PLAN-s1', 'migration 17'],
        ['task PLAN-s2', 'slot PLAN-s1'],
      ],
    ],
    [
      'a pause holds tasks and drains',
      (log) => {
        log.dispatched(log.released(MOVES), 2);
        log.drainAsked('h9');
        log.paused();
      },
      [
        ['task PLAN-s1', 'resume gpu'],
        ['task PLAN-s2', 'resume gpu'],
        ['drain h9', 'resume gpu'],
      ],
    ],
    ['a drain begins', (log) => void log.drainAsked('h1'), [['drain h1', 'service h1']]],
    [
      'a drain waits for its first decision',
      (log) => void log.hostDisabled(log.drainAsked('h1').data.commandId, 'h1'),
      [['drain h1', 'decision gpu']],
    ],
    [
      'a VM of a drain cools down',
      (log) => void draining(log, { waits: [cooling] }),
      [['drain h1', 'vm db: the VM was released a short while ago']],
    ],
    [
      'a gate holds a drain',
      (log) => {
        draining(log);
        log.pass(60).decided('none', [], { outcome: 'gated', reason: { code: 'cooldown', text: 'cooling down' } });
      },
      [['drain h1', 'gate cooldown']],
    ],
    [
      'a plan that waits for an answer holds a drain',
      (log) => {
        draining(log);
        log.pass(60).proposed(MOVES.map((move) => ({ ...move, from: 'h8' })));
      },
      [
        ['plan PLAN', 'approval PLAN'],
        ['drain h1', 'approval PLAN'],
      ],
    ],
    [
      'the host of a drain has left the aggregate before a decision saw it',
      (log) => {
        log.hostDisabled(log.drainAsked('h1').data.commandId, 'h1');
        log.pass(60).decided();
      },
      [['drain h1', 'member h1']],
    ],
    [
      'the host of a drain, which was stuck, has left the aggregate',
      (log) => {
        draining(log, { state: 'stuck' }, 3);
        log.pass(60).decided();
      },
      [['drain h1', 'member h1']],
    ],
    ['a drain is stuck', (log) => void draining(log, { state: 'stuck' }, 3), [['drain h1', 'vm-locked']]],
    [
      'the planner sees no VM on the host, and Nova still names it',
      (log) => void draining(log, { state: 'done', left: 0 }),
      [['drain h1', 'empty h1']],
    ],
    ['a drain is done', (log) => void log.hostDrained(draining(log), 'h1'), [['drain h1', 'undrain h1']]],
    [
      'an end of a drain was asked for',
      (log) => {
        draining(log);
        log.undrainAsked('h1');
      },
      [['drain h1', 'service h1']],
    ],
  ])('%s', (_, act, expected) => {
    expect(waits(act)).toEqual(expected);
  });

  it('says of a wait for nothing that it is one', () => {
    const state = runningLog().state('gpu');
    const wait = { sinceMs: 0, lateMs: null };
    expect(waitExists(state, { ...wait, code: 'task', of: 'gone' }, 0)).toBe(false);
    expect(waitExists(state, { ...wait, code: 'approval', of: 'gone' }, 0)).toBe(false);
    expect(waitExists(state, { ...wait, code: 'resume', of: 'gpu' }, 0)).toBe(false);
    expect(waitExists(state, { ...wait, code: 'empty', of: 'h1' }, 0)).toBe(false);
    expect(waitExists(state, { ...wait, code: 'member', of: 'h1' }, 0)).toBe(false);
    const log = runningLog();
    draining(log);
    expect(waitExists(log.state('gpu'), { ...wait, code: 'member', of: 'h1' }, 0)).toBe(false);
  });
});

describe('a wait that is longer than expected', () => {
  const after = (act: (log: Log) => void, seconds: number) => {
    const log = runningLog();
    act(log);
    log.pass(seconds);
    return wellFacts(log, { heartbeats: serviceNames.map((service) => heartbeat(service, log.nowMs)) });
  };
  const found = (act: (log: Log) => void, seconds: number) =>
    judgeFacts(after(act, seconds)).filter(({ code }) => code === 'wait-long');

  it('is an alarm that names what is waited for and what to do', () => {
    expect(found((log) => void draining(log, { state: 'done', left: 0 }), 301)).toMatchObject([
      {
        about: 'h1',
        text: expect.stringMatching(/the drain of h1 waits for Nova, which still names h1 .*, longer than expected/),
        remedy: expect.stringContaining('openstack server list --all-projects --host h1'),
      },
    ]);
    expect(found((log) => void draining(log, { waits: [cooling] }), 3700)).toMatchObject([{ about: 'h1' }]);
    expect(
      found((log) => {
        log.dispatched(log.released(MOVES), 2);
        log.paused();
      }, 3700),
    ).toMatchObject([{ remedy: 'Run `kronos resume -a gpu`.' }]);
  });

  it('of a drain whose host has left the aggregate names the aggregate, and no service', () => {
    const gone = (log: Log): void => {
      draining(log);
      for (let i = 0; i < 10; i++) log.pass(60).decided();
    };
    expect(found(gone, 0)).toEqual([]);
    expect(found(gone, 60)).toMatchObject([
      {
        about: 'h1',
        text: expect.stringMatching(
          /^the drain of h1 waits for h1 to be in gpu with its nova-compute up, where the last/,
        ),
        remedy: expect.stringMatching(/openstack aggregate add host gpu h1`, or `kronos undrain h1`/),
      },
    ]);
  });

  it('has its code and its thing in the status', () => {
    const [gpu] = statusOf(after((log) => void draining(log, { state: 'done', left: 0 }), 301)).aggregates;
    expect(gpu?.waits).toMatchObject([{ about: { kind: 'drain', id: 'h1' }, code: 'empty', of: 'h1' }]);
  });

  it('is judged by how long moves took', () => {
    const moved = (log: Log): void => {
      for (let i = 0; i < 25; i++) {
        const task = `${log.released([{ serverId: `v${i}`, from: 'h1', to: 'h2' }])}-s1`;
        log.started({ task });
        log.pass(20).completed({ task }, 20);
      }
      const task = `${log.released([{ serverId: 'w', from: 'h1', to: 'h2' }])}-s1`;
      log.dispatched(task.slice(0, -3), 1);
      log.started({ task });
    };
    expect(found(moved, 900)).toMatchObject([{ text: expect.stringContaining("waits for Nova's migration") }]);
    expect(found(moved, 300)).toEqual([]);
  });

  it('is none before, nor where another finding tells it', () => {
    expect(found((log) => void draining(log, { state: 'done', left: 0 }), 299)).toEqual([]);
    expect(found((log) => void log.drainAsked('h1'), 600)).toEqual([]);
    expect(found((log) => void draining(log, { state: 'stuck' }, 3), 90_000)).toEqual([]);
  });
});

it('the progress of a drain says how many of the VMs wait, and how many are left', () => {
  const progress = (left: number, count: number) => {
    const log = runningLog();
    draining(log, { left, waits: [{ ...cooling, count }] });
    const drain = log.state('gpu').drains.get('h1');
    if (drain === undefined) throw new Error('no drain');
    return drainStatus(log.state('gpu'), drain).text;
  };
  expect(progress(13, 1)).toBe('disabled; 13 VMs on it, of which 1 waits: db (the VM was released a short while ago)');
  expect(progress(13, 2)).toContain('of which 2 wait: db and 1 more (');
  expect(progress(2, 2)).toBe(
    'disabled; 2 VMs on it, which wait: db and 1 more (the VM was released a short while ago)',
  );
  expect(progress(1, 1)).toBe('disabled; 1 VM on it, which waits: db (the VM was released a short while ago)');
});
