import { readFileSync } from 'node:fs';
import { type Foreign, SERVER_IN_ERROR, serviceNames } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { heartbeat, runningLog, wellFacts, wellPolicy } from '../testing/index.ts';
import { type Cause, type CauseCode, causes } from './causes.ts';
import type { Facts, Heartbeat } from './facts.ts';
import { judgeFacts } from './judge.ts';
import { statusOf } from './status.ts';

const moves = [
  { serverId: 'a', from: 'h1', to: 'h2' },
  { serverId: 'b', from: 'h1', to: 'h3' },
];
const codes = (facts: Facts) => judgeFacts(facts).map(({ code }) => code);
const { nowMs } = runningLog();
const without = (service: string, ...others: Heartbeat[]) => [
  ...serviceNames.filter((one) => one !== service).map((one) => heartbeat(one, nowMs)),
  ...others,
];
type Parts = NonNullable<Heartbeat['failing'][number]['parts']>;
const failing = (service: Heartbeat['service'], check: string, reason: string, parts?: Parts) =>
  without(
    service,
    heartbeat(service, nowMs, { failing: [{ check, reason, ...(parts === undefined ? {} : { parts }) }] }),
  );
/** A check that fails with these parts: its reason says nothing, so that only their codes are judged. */
const failingBy = (
  service: Heartbeat['service'],
  check: string,
  ...parts: readonly (readonly [code: string, part: string, text: string, sinceMs?: number])[]
) =>
  failing(
    service,
    check,
    'for people',
    parts.map(([code, part, text, sinceMs = null]) => ({ code, part, text, sinceMs })),
  );

const LATE = 'the last snapshot was stored 6.2 s after its time, more than max_clock_skew';
const SLOW = 'a decision took 75 s, and one is due every 60 s';

type Change = NonNullable<Parameters<typeof wellFacts>[1]>;
type Newest = NonNullable<Facts['aggregates'][number]['newest']>;
type Policies = Newest['policies'];
type Decision = NonNullable<Facts['aggregates'][number]['lastDecision']>;
type Log = ReturnType<typeof runningLog>;

const changed = (change: Change) => wellFacts(undefined, change);
const newest = (more: Partial<Newest> | null, change: Change = {}) => changed({ ...change, newest: more });
const beats = (heartbeats: readonly Heartbeat[], input: Change['input'] = {}) => changed({ heartbeats, input });
const nats = (state: 'unreachable' | 'unavailable' | 'refused' | 'notProvisioned', text: string) =>
  changed({ facts: { nats: { state, text } } });
/** A stream of 100 bytes. */
const filled = (bytes: number, stream = 'KRONOS_LOG', change: Change = {}) =>
  changed({ ...change, facts: { streams: [{ stream, messages: 1, bytes, maxBytes: 100, discard: 'new' }] } });
const undecided = (seconds: number) => ({ undecidedSinceMs: nowMs - seconds * 1000 });
const heard = (secondsAgo: number) => ({ storedAtMs: nowMs - secondsAgo * 1000, timeMs: nowMs - secondsAgo * 1000 });
const decided = (more: Partial<Decision>, change: Change = {}) =>
  changed({ ...change, input: { lastDecision: { stuck: [], warnings: [], ...more } } });
const outOfService = (state: 'down' | 'unknown' | 'disabled', ...hosts: string[]) => ({
  outOfService: [{ state, count: hosts.length, hosts }],
});
const cannotLeave = (serverName: string, text: string, { host = 'h1', code = 'x' } = {}) => ({
  ...{ serverId: `id-${serverName}`, serverName, host, phase: 'evacuate' as const },
  reason: { code, text },
});
const policy = (more: Partial<Policies[number]>): Facts => newest({ policies: [{ ...wellPolicy, ...more }] });
const skipped = (code: string, text: string, more: Partial<Policies[number]> = {}) =>
  policy({ participates: false, reason: { code, text }, ...more });

/** Moves of others that undo moves of Kronos. */
const othersMoved = (more: Pick<Foreign, 'count' | 'waitUntil' | 'stayUntil'>) => {
  const at = '2026-01-01T00:00:00Z';
  const moves = [{ serverId: 'db', serverName: 'db', from: 'h2', to: 'h1', at, undoes: true }];
  return decided({ foreign: { undone: more.count, moves, ...more } });
};

describe('the causal order', () => {
  const table: Readonly<Record<string, Cause>> = causes;
  const explained = ({ explains }: Cause) => (explains === 'everything' ? [] : explains);

  it('names only causes that there are', () => {
    for (const cause of Object.values(table)) for (const code of explained(cause)) expect(table).toHaveProperty(code);
  });
  it('has no circle: every finding has a root', () => {
    const below = (code: string, above: readonly string[]): void => {
      expect(above, [...above, code].join(' explains ')).not.toContain(code);
      for (const next of explained(table[code] as Cause)) below(next, [...above, code]);
    };
    for (const code of Object.keys(table)) below(code, []);
  });
  it('lets nothing that is merely worth knowing hide an alarm', () => {
    for (const cause of Object.values(table)) if (cause.severity === 'info') expect(cause.explains).toEqual([]);
  });
  it('has a section of the runbook for each cause', () => {
    const runbook = readFileSync(new URL('../../../docs/runbook.md', import.meta.url), 'utf8');
    const sections = new Set([...runbook.matchAll(/^### (.+)$/gm)].map(([, name = '']) => name.toLowerCase()));
    for (const [code, { section }] of Object.entries(table)) expect(sections, code).toContain(section);
  });
});

const brokenGroups = { brokenGroups: { code: 'group-broken', text: 'anti-affinity group web (a, b on h1)' } };

describe('status', () => {
  it('is well when everything that must be true is', () => {
    expect(judgeFacts(wellFacts())).toEqual([]);
    expect(statusOf(wellFacts()).well).toBe(true);
  });

  it.each<[CauseCode, string, Facts, RegExp]>([
    [
      'nats-unreachable',
      'NATS does not answer',
      nats('unreachable', 'no NATS server answers'),
      /no NATS server answers/,
    ],
    [
      'jetstream-unavailable',
      'JetStream does not answer',
      nats('unavailable', 'KRONOS_LOG: no answer in time'),
      /no answer in time/,
    ],
    [
      'nats-refused',
      'NATS refuses the credentials of this command',
      nats('refused', 'Authorization Violation'),
      /Authorization Violation/,
    ],
    [
      'not-provisioned',
      'the streams are missing',
      nats('notProvisioned', 'stream KRONOS_LOG is missing'),
      /is missing/,
    ],
    ['stream-filling', 'the log has little room', filled(81), /81 % full/],
    ['log-full', 'the log has no room', filled(99), /nothing is planned/],
    ['stream-full', 'the work queue has no room', filled(99, 'KRONOS_MIGRATIONS'), /accepts no messages/],
    [
      'log-full',
      'the log refused an event',
      beats(failingBy('planner', 'appends', ['stream-full', 'KRONOS_LOG', 'plans: maximum bytes exceeded (10077)'])),
      /maximum bytes exceeded \(10077\)/,
    ],
    [
      'checkpoint-wrong',
      'a service started from a wrong checkpoint',
      beats(failing('planner', 'checkpoint', 'the checkpoint at event 1571 is wrong: it lacks gpu')),
      /event 1571 is wrong/,
    ],
    [
      'storage-full',
      'the server is out of storage',
      beats(
        failingBy('scorer', 'appends', ['storage-full', 'KRONOS_SNAPSHOTS', 'gpu: insufficient resources (10023)']),
      ),
      /out of storage: .*insufficient resources \(10023\)/,
    ],
    [
      'append-refused',
      'NATS refuses what a service writes',
      beats(failing('ledger', 'appends', 'KRONOS_CHECKPOINTS: message size exceeds maximum allowed (10054)')),
      /10054/,
    ],
    [
      'append-refused',
      'the disk of the server is full: what is written has no answer',
      beats(failingBy('planner', 'appends', ['append-unanswered', 'KRONOS_LOG', 'no answer in time']), undecided(80)),
      /does not store: KRONOS_LOG.*no answer in time/,
    ],
    [
      'services-unknown',
      'heartbeats cannot be read',
      changed({ facts: { services: { known: false, text: 'no permission' } } }),
      /unknown: no permission/,
    ],
    ['service-missing', 'a service has never reported', beats(without('ledger')), /no instance has sent a heartbeat/],
    [
      'service-missing',
      'a service has ceased to report',
      beats(without('planner', heartbeat('planner', nowMs, heard(40)))),
      /last heartbeat/,
    ],
    [
      'service-missing',
      'all instances of a service have ceased to report',
      beats(
        without(
          'planner',
          heartbeat('planner', nowMs, { instance: 'planner-a', ...heard(40) }),
          heartbeat('planner', nowMs, { instance: 'planner-b', ...heard(41) }),
        ),
      ),
      /planner-a, planner-b ended, hang, or cannot reach NATS/,
    ],
    [
      'service-missing',
      'a service was stopped',
      beats(without('planner', heartbeat('planner', nowMs, { state: 'stopped' }))),
      /was stopped/,
    ],
    [
      'service-missing',
      'no executor serves the aggregate',
      beats(without('executor', heartbeat('executor', nowMs, { aggregates: ['cpu'] }))),
      /no instance serves this aggregate: those that run serve cpu/,
    ],
    [
      'service-missing',
      'the executor of the aggregate has ended, and one of another aggregate runs',
      beats(
        without(
          'executor',
          heartbeat('executor', nowMs, { instance: 'executor-a', ...heard(40) }),
          heartbeat('executor', nowMs, { instance: 'executor-b', aggregates: ['cpu'] }),
        ),
      ),
      /executor-a sent its last heartbeat/,
    ],
    [
      'service-unready',
      'a service hangs in its start',
      beats(without('planner', heartbeat('planner', nowMs, { state: 'starting' }))),
      /is starting/,
    ],
    ['service-unready', 'a check does not pass', beats(failing('planner', 'log', 'a gap')), /log: a gap/],
    [
      'openstack-unread',
      'Nova does not answer',
      beats(
        failingBy(
          'scorer',
          'openstack',
          ['KRONOS_HTTP_UNREACHABLE', 'servers', 'servers: refused'],
          ['KRONOS_HTTP_UNREACHABLE', 'services', 'services: refused'],
        ),
      ),
      /servers: refused \(and 1 more\)/,
    ],
    [
      'prometheus-unread',
      'Prometheus does not answer',
      beats(failing('scorer', 'prometheus', 'refused')),
      /Prometheus is not read: refused/,
    ],
    [
      'clock-skew',
      'the clock of a service is wrong',
      beats(without('scorer', heartbeat('scorer', nowMs, { timeMs: nowMs + 60_000 }))),
      /its clock is 1 min 3 s ahead of/,
    ],
    [
      'local-clock',
      "this machine's clock is behind",
      newest({ storedAtMs: nowMs + 60_000 }),
      /behind the NATS server's/,
    ],
    ['snapshot-none', 'nothing was ever observed', newest(null), /no snapshot yet/],
    ['snapshot-late', 'no snapshot comes', newest({ storedAtMs: nowMs - 123_000 }), /2 min 3 s old/],
    [
      'snapshot-undecided',
      'snapshots are not decided',
      changed({ input: undecided(63) }),
      /no snapshot was decided since/,
    ],
    [
      'snapshot-undecided',
      'snapshots of a short interval are not decided',
      newest({ intervalSeconds: 5, storedAtMs: nowMs - 1000 }, { input: undecided(8) }),
      /no snapshot was decided since/,
    ],
    [
      'cycle-slow',
      'a cycle takes longer than the interval',
      newest(
        { storedAtMs: nowMs - 123_000 },
        {
          heartbeats: failingBy('scorer', 'snapshots', ['snapshot-late', 'gpu', 'no'], ['cycle-slow', 'cycle', SLOW]),
        },
      ),
      /^a decision took 75 s, and one is due every 60 s$/,
    ],
    [
      'decision-slow',
      'a decision takes longer than the interval',
      beats(failingBy('planner', 'decisions', ['decision-slow', 'gpu', SLOW])),
      /^a decision took 75 s, and one is due every 60 s$/,
    ],
    [
      'snapshot-stored-late',
      'a snapshot takes long to store',
      beats(failingBy('planner', 'decisions', ['stored-late', 'gpu', LATE])),
      /^the last snapshot was stored 6.2 s after its time, more than max_clock_skew$/,
    ],
    ['snapshot-unjudged', 'an older scorer says nothing about hosts', unjudged(), /unknown/],
    [
      'observation-problem',
      'the aggregate does not fit together',
      newest({ problems: [{ code: 'server-vanished', text: 'vm-1 is gone' }] }),
      /vm-1 is gone/,
    ],
    [
      'migration-abandoned',
      'Nova keeps a row that nobody works on',
      newest({
        abandoned: { code: 'migration-abandoned', text: 'Nova no longer works on migration 7 of vm-1 (queued)' },
      }),
      /migration 7 of vm-1/,
    ],
    [
      'ports-unread',
      'the ports of VMs cannot be read',
      newest({ unreadPorts: { code: 'ports-unread', text: 'the ports of vm-1 are not known, so they stay' } }),
      /the ports of vm-1/,
    ],
    ['host-down', 'a host is down', newest(outOfService('down', 'h1')), /nova-compute is down \(1 of 3 hosts of gpu\)/],
    ['host-unknown', 'a host is in an unknown state', newest(outOfService('unknown', 'h1')), /unknown state/],
    [
      'policy-no-host',
      'a policy matches no host',
      skipped('policy-partial', 'no value for 3 of 3 hosts', { matchedHosts: 0 }),
      /none of 3 hosts/,
    ],
    ['policy-no-server', 'a policy matches no VM', policy({ matchedServers: 0 }), /none of 9 VMs/],
    ['policy-skipped', 'a policy is skipped', skipped('policy-stale', 'h1 is stale'), /skipped: h1 is stale/],
    [
      'prometheus-unread',
      'a query is not answered',
      skipped('policy-unreachable', 'refused'),
      /Prometheus is not read: refused/,
    ],
    ['event-unreadable', 'an event cannot be read', after((log) => void log.unreadable()), /cannot be read/],
    ['plan-undispatched', 'tasks are not queued', after((log) => void log.released(moves), 90), /not on the queue/],
    [
      'task-unstarted',
      'moves are not started',
      after((log) => log.dispatched(log.released(moves), 2), 300),
      /no move has started/,
    ],
    [
      'close-waits',
      'a close waits for Nova',
      after(closeAsked, 300),
      /the close of .* by ada has waited 5 min: .*; the move counts towards/,
    ],
    ['abort-unanswered', 'an abort has no effect', after(abortAsked, 300), /after the abort request/],
    [
      'resize-late',
      'a server stays in VERIFY_RESIZE',
      after(verified, 2 * 3600),
      /VERIFY_RESIZE on n1 since .* waits to be/,
    ],
    [
      'move-forced',
      'a move was forced past the scheduler',
      after((log) => void started(log, { forced: true })),
      /^name-of-a \(gpu-\d+-s1\) was forced past the scheduler$/,
    ],
    [
      'host-broken',
      'moves to a host failed again and again',
      after((log) => {
        const plan = brokenAfter(log, 2);
        for (const n of [1, 2]) log.failed({ task: `${plan}-s${n}`, hostAtFault: 'h2' });
      }),
      /^receives no VM until .*: too many moves to it failed$/,
    ],
    [
      'predictions-off',
      'hosts do not change with the moves',
      predictedWrongly(),
      /^ten minutes after moves, .*\(60 comparisons\): /,
    ],
    [
      'plan-expired',
      'a plan has passed its deadline with an open move',
      after(started, 5 * 3600),
      /has expired, but not/,
    ],
    ['move-long', 'a move does not end', after(started, 5 * 3600), /has been migrating since/],
    [
      'foreign-moves',
      'others moved several VMs',
      othersMoved({ count: 2, waitUntil: '2026-01-01T01:00:00Z' }),
      /^2 migrations that Kronos did not start undo its moves: .*; nothing is balanced until 2026-01-01T01:00:00Z$/,
    ],
    [
      'failover-room',
      'a host cannot fail',
      decided({
        failover: {
          ...{ hosts: 1, tested: 3, lacking: 1 },
          failures: [{ hosts: ['h1'], servers: 4, stranded: 1, names: ['db'], proven: true }],
        },
      }),
      /^no room for 1 of 3 failures of one host: without h1, 1 of 4 VMs would have no host \(db\)$/,
    ],
    [
      'server-stuck',
      'a server cannot leave',
      decided({ stuck: [cannotLeave('db', 'no room')] }),
      /db cannot leave h1: no room/,
    ],
    ['decision-warning', 'a decision warns', decided({ warnings: [{ code: 'x', text: 'no repair' }] }), /no repair/],
  ])('alarms with %s when %s', (code, _, facts, text) => {
    const all = judgeFacts(facts);
    const alarm = all.find((one) => one.code === code);
    expect(all.map((one) => one.code)).toContain(code);
    expect(alarm?.text).toMatch(text);
    expect(alarm?.remedy).toMatch(/\.$/);
    expect(statusOf(facts).well).toBe(false);
  });

  it('does not know a newer snapshot as undecided within its interval, nor a heartbeat as late within three', () => {
    expect(codes(changed({ input: undecided(61) }))).toEqual([]);
    expect(codes(newest({ storedAtMs: nowMs - 121_000 }))).toEqual([]);
    expect(codes(beats(without('planner', heartbeat('planner', nowMs, heard(29)))))).toEqual([]);
  });
  it('does not call a clock wrong whose report waited for NATS', () => {
    expect(codes(beats(without('scorer', heartbeat('scorer', nowMs, { timeMs: nowMs - 60_000 }))))).toEqual([]);
  });
  it('needs no executor in a dry run, until there is something to move', () => {
    const dry = runningLog();
    dry.configured({ dryRun: true, cooldownSeconds: 600 });
    expect(codes(wellFacts(dry, { heartbeats: without('executor') }))).toEqual([]);
    expect(codes(wellFacts(runningLog(), { heartbeats: without('executor') }))).toEqual(['service-missing']);
  });
  it('says that a plan was decided after its window had closed', () => {
    const log = runningLog();
    log.decided('none', moves, { reason: { code: 'planned', text: '2 of at most 5 moves' } });
    expect(statusOf(wellFacts(log)).aggregates[0]).toMatchObject({
      doing: 'not released: 2 of at most 5 moves; the window closed before the decision was made',
      waitsFor: 'the next window',
    });
  });
  it('says until when the window blocks a plan, and is well', () => {
    const log = runningLog();
    log.configured({ windows: ['22:00-06:00'] });
    log.decided('none', moves, {
      reason: {
        code: 'outside-window',
        text: '2 of at most 5 moves, blocked by the window until 2026-01-05T22:00:00.000Z',
      },
      window: { open: false, until: '2026-01-05T22:00:00.000Z' },
    });
    const { well, aggregates } = statusOf(wellFacts(log));
    expect(well).toBe(true);
    expect(aggregates[0]).toMatchObject({
      doing: 'not released: 2 of at most 5 moves, blocked by the window until 2026-01-05T22:00:00.000Z',
      waitsFor: 'the next window',
    });
  });
  it('names the VM that others moved, and is well', () => {
    const facts = othersMoved({ count: 1, stayUntil: '2026-01-01T01:00:00Z' });
    expect(judgeFacts(facts).map(({ code, text }) => `${code}: ${text}`)).toEqual([
      'foreign-move: a migration that Kronos did not start undoes one of its moves: it moved db from h2 to h1 at 2026-01-01T00:00:00Z; the VM stays there until 2026-01-01T01:00:00Z',
    ]);
    expect(statusOf(facts).well).toBe(true);
  });
  it('says what is worth knowing and is well nevertheless', () => {
    const facts = newest(outOfService('disabled', 'h1'), {
      heartbeats: [
        ...without('planner'),
        heartbeat('planner', nowMs, { options: { 'engine.cooldown': 600 } }),
        heartbeat('planner', nowMs, { instance: 'planner-2', version: '1.1.0', options: { 'engine.cooldown': 60 } }),
        heartbeat('planner', nowMs, { instance: 'planner-0', ...heard(40) }),
      ],
    });
    expect(judgeFacts(facts).map(({ code, about, text }) => `${code}: ${about}: ${text}`)).toEqual([
      expect.stringMatching(/^replica-lost: planner: planner-0 ended without an orderly stop/),
      'replicas-differ: planner: its replicas have different options: engine.cooldown',
      expect.stringMatching(
        /^versions-differ: services: several versions are running: 1.0.0 \(.*\), 1.1.0 \(planner\)/,
      ),
      'host-disabled: h1: nova-compute is disabled (1 of 3 hosts of gpu)',
    ]);
    expect(statusOf(facts).well).toBe(true);
  });
});

describe('moves that went wrong', () => {
  it('leave a server in ERROR: an alarm until it is released', () => {
    const [alarm, ...others] = judgeFacts(after(damaged));
    expect(others).toEqual([]);
    expect(alarm).toMatchObject({ code: 'server-in-error', about: 'gpu' });
    expect(alarm?.text).toMatch(/is in ERROR on h2 after its move from h1 to h2 .*: the guest is lost/);
    const released = after((log) => {
      damaged(log);
      log.unquarantined('a');
    });
    expect(codes(released)).toEqual([]);
  });
  it('crashes its executors: an alarm from the second try on, and none once one survived', () => {
    const poisonous = (...tries: number[]) =>
      judgeFacts(
        after((log) => {
          const task = `${started(log)}-s1`;
          for (const one of tries) log.suspected({ task }, one);
        }),
      );
    expect(poisonous(1)).toEqual([]);
    const [alarm, ...others] = poisonous(1, 2);
    expect(others).toEqual([]);
    expect(alarm).toMatchObject({ code: 'move-poisonous', about: 'gpu' });
    expect(alarm?.text).toMatch(/crashed its executor in isolation: try 2 started/);
    expect(poisonous(1, 2, 0)).toEqual([]);
  });
  it('in VERIFY_RESIZE: none for an hour, then one with the commands, and none when it was confirmed', () => {
    expect(judgeFacts(after((log) => void verified(log), 3600))).toEqual([]);
    let task = '';
    const facts = after((log) => {
      task = verified(log);
    }, 5 * 3600);
    const [late, ...others] = judgeFacts(facts);
    expect(others).toEqual([]);
    expect(late).toMatchObject({
      code: 'resize-late',
      remedy: `Check the guest, then run \`kronos cells confirm ${task}\` or \`kronos cells revert ${task}\`.`,
    });
    expect(late?.explains.map(({ code }) => code).toSorted()).toEqual(['move-long', 'plan-expired']);
    expect(judgeFacts(after((log) => void log.completed({ task: verified(log) }), 5 * 3600))).toEqual([]);
  });
  it('cannot be aborted: an alarm at once, in the words of Nova, and one for all that follows', () => {
    const [now, ...others] = judgeFacts(after(abortRefused));
    expect(others).toEqual([]);
    expect(now).toMatchObject({ code: 'abort-refused', explains: [] });
    expect(now?.text).toContain('Cannot abort while it is in task_state None (409)');
    const [later, ...more] = judgeFacts(after(abortRefused, 5 * 3600));
    expect(more).toEqual([]);
    expect(later?.explains.map(({ code }) => code).toSorted()).toEqual([
      'abort-unanswered',
      'move-long',
      'plan-expired',
    ]);
  });
  it('whose close waits for Nova is one alarm, with what Nova said', () => {
    const [alarm, ...others] = judgeFacts(after(closeAsked, 5 * 3600));
    expect(others).toEqual([]);
    expect(alarm).toMatchObject({ code: 'close-waits' });
    const [{ moves = [] } = {}] = statusOf(after(closeAsked)).aggregates;
    expect(moves.map(({ note }) => note).join()).toContain('ada closed it: it waits until Nova');
    expect(alarm?.text).toContain('and refused to abort it: Cannot abort while it is in task_state None');
    expect(alarm?.explains.map(({ code }) => code)).toContain('abort-refused');
  });
  it('whose close with force nobody carries out does not blame Nova', () => {
    const forced = (log: Log) => log.closed(`${started(log)}-s1`, 'ada', { force: true });
    const [{ moves = [] } = {}] = statusOf(after(forced)).aggregates;
    expect(moves.map(({ note }) => note).join()).toContain('ada closed it: it ends within a minute');
    const waits = judgeFacts(after(forced, 300)).find(({ code }) => code === 'close-waits');
    expect(waits?.text).toContain('neither an executor nor a planner has ended the task');
    expect(waits?.remedy).not.toContain('kronos close');
  });
  it('of planners with different options the one that yields is named, on one line', () => {
    const facts = beats(
      without(
        'planner',
        heartbeat('planner', nowMs, { instance: 'planner-2', options: { 'engine.cooldown': 60 } }),
        heartbeat('planner', nowMs, {
          options: { 'engine.cooldown': 600 },
          failing: [{ check: 'options', reason: 'planner-2 started later with another cooldown' }],
        }),
      ),
    );
    expect(judgeFacts(facts)).toMatchObject([{ code: 'options-conflict', explains: [{ code: 'replicas-differ' }] }]);
  });
});

it('a log that is in doubt is one alarm, from any number of services', () => {
  const doubt = { failing: [{ check: 'identity', reason: 'the log ends at 60, and a checkpoint has seen 1571' }] };
  const all = serviceNames.map((service) => heartbeat(service, nowMs, service === 'scorer' ? {} : doubt));
  const found = { code: 'log-in-doubt', about: 'KRONOS_LOG', text: doubt.failing[0]?.reason };
  expect(judgeFacts(beats(all, undecided(80)))).toMatchObject([
    { ...found, explains: [{ code: 'snapshot-undecided' }] },
  ]);
});

describe('one cause gives one alarm', () => {
  const one = (facts: Facts, code: CauseCode, explains: readonly CauseCode[]) => {
    const [alarm, ...others] = judgeFacts(facts);
    expect(others).toEqual([]);
    expect(alarm?.code).toBe(code);
    expect(alarm?.explains.map((each) => each.code).toSorted()).toEqual([...explains].toSorted());
    return alarm;
  };

  it('when NATS is unreachable', () => {
    const facts = newest(null, { facts: { nats: { state: 'unreachable', text: 'x' } } });
    expect(codes(facts)).toEqual(['nats-unreachable']);
  });
  it('when the planner is dead: in all aggregates, with undispatched plans', () => {
    const log = runningLog();
    log.released(moves);
    log.pass(90);
    const facts = wellFacts(log, {
      heartbeats: serviceNames.flatMap((service) => (service === 'planner' ? [] : [heartbeat(service, log.nowMs)])),
      input: { undecidedSinceMs: log.nowMs - 80_000 },
    });
    const [gpu] = facts.aggregates;
    if (gpu === undefined) throw new Error('no aggregate');
    const both = { ...facts, aggregates: [gpu, { ...gpu, aggregate: 'cpu' }] };
    const alarm = one(both, 'service-missing', [
      'snapshot-undecided',
      'snapshot-undecided',
      'plan-undispatched',
      'plan-undispatched',
    ]);
    expect(alarm?.about).toBe('planner');
  });
  it('when services run that do not know an aggregate: to be named in their configuration, not to be started', () => {
    const beat = (service: (typeof serviceNames)[number]) => heartbeat(service, nowMs, { aggregates: ['cpu'] });
    const facts = wellFacts(runningLog(), { heartbeats: serviceNames.map(beat) });
    expect(judgeFacts(facts)[0]).toMatchObject({
      code: 'service-missing',
      text: 'no instance serves this aggregate: those that run serve cpu',
      remedy: expect.stringMatching(/^Name the aggregate in \[engine\] aggregates/),
    });
  });
  it('when decisions take longer than the interval, so that snapshots are not decided: one for each aggregate', () => {
    const slow = failingBy('planner', 'decisions', ['decision-slow', 'gpu', SLOW], ['decision-slow', 'cpu', SLOW]);
    expect(judgeFacts(beats(slow, undecided(80)))).toMatchObject([
      { code: 'decision-slow', about: 'gpu', text: SLOW, explains: [{ code: 'snapshot-undecided', about: 'gpu' }] },
      { code: 'decision-slow', about: 'cpu', text: SLOW, explains: [] },
    ]);
  });
  it('when the scorer is dead; the planner is not blamed for it', () => {
    const facts = newest({ storedAtMs: nowMs - 600_000 }, { heartbeats: without('scorer') });
    one(facts, 'service-missing', ['snapshot-late']);
  });
  it('when nova-api is down: two services, all lists, hosts, a policy and the snapshots that stop', () => {
    const failingCheck = (service: 'scorer' | 'executor') =>
      heartbeat(service, nowMs, {
        failing: [
          { check: 'openstack', reason: 'not read: servers: connection refused; services: connection refused' },
          { check: 'snapshots', reason: 'no snapshot since 12:00:00Z: gpu' },
        ],
      });
    const facts = newest(
      {
        ...outOfService('unknown', 'h1', 'h2', 'h3'),
        storedAtMs: nowMs - 200_000,
        problems: [
          { code: 'servers-unknown', text: 'servers could not be read: connection refused' },
          { code: 'hypervisors-unknown', text: 'hypervisors could not be read: connection refused' },
          { code: 'aggregate-not-found', text: 'no aggregate gpu' },
        ],
        policies: [
          {
            ...{ ...wellPolicy, participates: false, imbalance: null },
            reason: { code: 'policy-no-destination', text: 'no host is up' },
          },
        ],
      },
      {
        heartbeats: serviceNames.map((service) =>
          service === 'scorer' || service === 'executor' ? failingCheck(service) : heartbeat(service, nowMs),
        ),
      },
    );
    const [alarm, ...others] = judgeFacts(facts);
    expect(others).toEqual([]);
    expect(alarm).toMatchObject({ code: 'openstack-unread', about: 'scorer, executor, gpu' });
    expect(alarm?.explains.length).toBeGreaterThan(5);
  });
  it('when Prometheus is down', () => {
    const facts = skipped('policy-unreachable', 'refused', { matchedHosts: 0, matchedServers: 0 });
    const services = { known: true as const, heartbeats: failing('scorer', 'prometheus', 'refused') };
    one({ ...facts, services }, 'prometheus-unread', ['policy-no-server']);
  });
  it('when the log is full: services that cannot append, and what then stands still', () => {
    const heartbeats = failingBy('planner', 'appends', ['stream-full', 'KRONOS_LOG', 'maximum bytes exceeded (10077)']);
    one(filled(99, 'KRONOS_LOG', { heartbeats, input: undecided(80) }), 'log-full', ['snapshot-undecided']);
  });
  it('when the stream of snapshots is full: an old snapshot; another full stream does not explain it', () => {
    const full = (stream: string) => filled(100, stream, { newest: { storedAtMs: nowMs - 3_600_000 } });
    one(full('KRONOS_SNAPSHOTS'), 'stream-full', ['snapshot-late']);
    expect(codes(full('KRONOS_SERVICES'))).toEqual(expect.arrayContaining(['stream-full', 'snapshot-late']));
  });
  it('when a host is down, of which a server cannot be taken', () => {
    const facts = decided({ stuck: [cannotLeave('db', 'down')] }, { newest: outOfService('down', 'h1') });
    one(facts, 'host-down', ['server-stuck']);
  });
  it('of VMs that cannot leave a host, each reason is one alarm with its own remedy', () => {
    const locked = (name: string) => cannotLeave(name, 'The VM is locked.', { code: 'vm-locked' });
    const full = cannotLeave('b', 'No host takes it: h2 is full.', { code: 'capacity' });
    const found = judgeFacts(decided({ stuck: [locked('a'), full, locked('c')] }));
    expect(found.map(({ code, text, remedy }) => [code, text, remedy])).toEqual([
      ['server-stuck', 'a, c cannot leave h1: the VM is locked', expect.stringMatching(/openstack server unlock VM/)],
      ['server-stuck', 'b cannot leave h1: no host takes it: h2 is full', expect.stringMatching(/^Make room, enable/)],
    ]);
    expect(found[0]?.places.map(({ server }) => server)).toEqual(['id-a', 'id-c']);
  });
  it('of VMs whose obstacles differ, each VM is named with its own', () => {
    const stuckBy = (serverName: string, obstacle: string) =>
      cannotLeave(serverName, `No host takes it: ${obstacle}.`, { code: 'no-destination' });
    const textOf = (...stuck: readonly ReturnType<typeof stuckBy>[]) =>
      judgeFacts(decided({ stuck })).map(({ text }) => text);
    expect(textOf(stuckBy('a', 'h2 is full'), stuckBy('b', 'h3 holds group web'), stuckBy('c', 'h2 is full'))).toEqual([
      'a, c cannot leave h1: no host takes it: h2 is full; b cannot leave h1: no host takes it: h3 holds group web',
    ]);
    expect(textOf(...['v', 'w', 'x', 'y', 'z'].map((name) => stuckBy(name, `h-${name} is full`)))).toEqual([
      expect.stringMatching(
        /^v cannot leave h1: .*; x cannot leave h1: no host takes it: h-x is full; 2 more obstacles$/,
      ),
    ]);
  });
  it.each(['past-threshold', 'soft-rule-broken', 'budget-used', 'no-forecast', 'expected-to-pass'])(
    'a decision that knows what it does (%s) raises no alarm',
    (code) => {
      const facts = decided({ warnings: [{ code, text: code }] });
      expect(judgeFacts(facts)).toMatchObject([{ code: 'decision-note', severity: 'info', text: code }]);
      expect(statusOf(facts).well).toBe(true);
    },
  );
  it('hosts and groups that no move repairs have an alarm each', () => {
    const warnings = [
      { code: 'host-over-capacity', text: 'h1 has too much', detail: { host: 'h1' } },
      { code: 'host-over-capacity', text: 'h2 has too much', detail: { host: 'h2' } },
      { code: 'repair-impossible', text: 'group one', detail: { group: 'g1' } },
      { code: 'repair-impossible', text: 'group two', detail: { group: 'g2' } },
    ];
    const found = judgeFacts(decided({ warnings }));
    expect(found.map(({ text }) => text)).toEqual(warnings.map(({ text }) => text));
    expect(found[0]?.remedy).toMatch(/allocation ratio/);
  });
  it.each<[string, string, Facts, RegExp]>([
    [
      'sink-failing',
      'a receiver refuses notifications',
      beats(
        without(
          'ledger',
          heartbeat('ledger', nowMs, {
            sinks: [{ sink: 'chat', sinceMs: nowMs - 300_000, reason: 'the receiver answers 400: no_text' }],
          }),
        ),
      ),
      /^has taken no notification since .*: the receiver answers 400: no_text$/,
    ],
    [
      'replica-lost',
      'one of two replicas ended',
      beats(
        without(
          'planner',
          heartbeat('planner', nowMs),
          heartbeat('planner', nowMs, { instance: 'planner-b', ...heard(40) }),
        ),
      ),
      /^planner-b ended without an orderly stop/,
    ],
    [
      'versions-differ',
      'an upgrade is half done',
      beats(without('planner', heartbeat('planner', nowMs, { version: '9.9.9' }))),
      /several versions are running: .*9\.9\.9 \(planner\)/,
    ],
    [
      'cell-down',
      'a cell does not answer',
      newest({ problems: [{ code: 'servers-of-down-cell', text: 'cell2 is down' }] }),
      /cell2 is down/,
    ],
    [
      'policy-host-load',
      'hosts have load that no VM has',
      policy({ profileSum: { policy: 'cpu', ratio: 0.4, host: 'h2', sum: 0.2, value: 0.5, cause: 'load-without-vm' } }),
      /h2/,
    ],
    [
      'group-broken',
      'members of a hard group share a host, and nobody repairs it',
      newest(brokenGroups),
      /^anti-affinity group web \(a, b on h1\)$/,
    ],
    [
      'event-skipped',
      'a custodian skipped an event that nobody could read',
      after((log) => {
        log.unreadable();
        log.eventSkipped(log.events.length);
        log.decided();
      }),
      /^unreadable events were skipped: .*carol/,
    ],
    ['policy-few-servers', 'most VMs have no value', policy({ matchedServers: 2 }), /^only 2 of 9 VMs have a value/],
    [
      'policy-answer-partial',
      'a store of Prometheus is away',
      policy({ vms: { cause: 'warning', text: 'no StoreAPIs matched' } }),
      /^the answer about VMs may lack some: no StoreAPIs matched$/,
    ],
  ])('says %s when %s, and nothing else', (code, _, facts, text) => {
    expect(judgeFacts(facts).map((one) => [one.code, one.text])).toEqual([[code, expect.stringMatching(text)]]);
  });
  it('a broken group is no news while the planner repairs it', () => {
    const log = runningLog();
    log.configured({ dryRun: false, enforceHardAffinity: true });
    expect(judgeFacts(wellFacts(log, { newest: brokenGroups }))).toEqual([]);
  });
  it.each([
    ['nothing-scored', 'not balancing'],
    ['partly-scored', 'balancing in part'],
    ['stuck', 'stuck'],
    ['evacuating', 'evacuating'],
    ['balanced', 'watching'],
  ])('an aggregate whose decision says %s is shown as %s', (code, words) => {
    const log = runningLog();
    log.pass(60).decided('none', [], { reason: { code, text: 'The reason.' } });
    expect(statusOf(wellFacts(log)).aggregates[0]?.doing).toBe(`${words}: the reason`);
  });
  it('values that do not add up are an alarm, but not while samples of a move arrive', () => {
    const profileSum = { policy: 'cpu', host: 'h2', sum: 0.13, value: 0.063, cause: 'unit', factor: 0.5 } as const;
    const off = (ratio: number) => [{ ...wellPolicy, profileSum: { ...profileSum, ratio } }];
    const seen = (policies: Policies, beforeMoves: Policies | null) =>
      codes(newest({ policies }, { input: { beforeMoves } }));
    const alarm = ['policy-profile-sum'];
    // The judgement from before the moves holds until the next one: an alarm neither begins nor ends.
    expect([seen(off(2), [wellPolicy]), seen(off(2), []), seen([wellPolicy], off(2))]).toEqual([[], [], alarm]);
    expect([seen(off(2), null), seen([wellPolicy], null)]).toEqual([alarm, []]);
    // No move makes that.
    expect([seen(off(100), [wellPolicy]), seen(off(0.01), [])]).toEqual([alarm, alarm]);
  });
  it('a broken host explains the VMs that its failures quarantined, and no others', () => {
    const log = runningLog();
    const plan = brokenAfter(log, 1);
    log.failed({ task: `${plan}-s1`, hostAtFault: 'h2' });
    log.pass(1).failed({ task: `${plan}-s2` });
    log.decided();
    const stuck = (serverId: string, host: string, code: string) => ({
      ...cannotLeave(serverId, `${serverId} is held`, { host, code }),
      serverId,
    });
    const of = (...all: ReturnType<typeof stuck>[]) =>
      judgeFacts(wellFacts(log, { input: { lastDecision: { stuck: all, warnings: [] } } })).map((one) => [
        one.code,
        ...one.explains.map(({ text }) => text),
      ]);
    const held = 'v1 cannot leave h1: v1 is held';
    expect(of(stuck('v1', 'h1', 'vm-quarantined'))).toEqual([['host-broken', held]]);
    // Its own failure, another reason, and a VM that nothing of this keeps on the broken host.
    expect(of(stuck('v2', 'h1', 'vm-quarantined'))).toEqual([['host-broken'], ['server-stuck']]);
    expect(of(stuck('v1', 'h1', 'vm-locked'))).toEqual([['host-broken'], ['server-stuck']]);
    expect(of(stuck('v3', 'h2', 'vm-quarantined'))).toEqual([['host-broken'], ['server-stuck']]);
  });
  it('a host that Kronos disabled for a drain is no news, another one is', () => {
    const log = runningLog();
    log.hostDisabled(log.drainAsked('h1').data.commandId, 'h1');
    const disabled = (...hosts: string[]) => {
      const newest = outOfService('disabled', ...hosts);
      return judgeFacts(wellFacts(log, { newest })).map(({ code, about, text }) => [code, about, text]);
    };
    expect(disabled('h1')).toEqual([]);
    // The reader of the count knows which hosts it has.
    expect(disabled('h1', 'h2')).toEqual([
      ['host-disabled', 'h2', 'nova-compute is disabled (2 of 3 hosts of gpu; Kronos drains h1)'],
    ]);
  });
  it('names a threshold that no moves reach, and raises no alarm', () => {
    const warning = { code: 'threshold-unreachable', text: 'no moves bring cpu below 0.6', detail: { policy: 'cpu' } };
    const found = judgeFacts(decided({ warnings: [warning] }));
    expect(found).toMatchObject([{ code: 'threshold-unreachable', severity: 'info', places: [{ policy: 'cpu' }] }]);
  });
  it('but another place has an alarm of its own', () => {
    const stuck = [cannotLeave('db', 'full', { host: 'h2' })];
    expect(codes(decided({ stuck }, { newest: outOfService('down', 'h1') }))).toEqual(['host-down', 'server-stuck']);
    // A scorer that is late is no excuse of the planner's.
    expect(codes(beats(without('scorer'), undecided(80)))).toEqual(['service-missing', 'snapshot-undecided']);
  });
});

/** Moves whose hosts had the same load before and after. */
function predictedWrongly(): Facts {
  const log = runningLog();
  log.decided('none', [], {
    policies: [
      { policy: 'cpu', imbalance: 0.1, threshold: 0.2, detected: false, participates: true, sustainedCycles: 0 },
    ],
  });
  const none = { count: 0, error: 0 };
  const last = Array.from({ length: 60 }, (_, i) => {
    const change = (i % 2 === 0 ? 1 : -1) * (0.04 + 0.01 * (i % 5));
    return { host: ['h1', 'h2', 'h3'][i % 3] ?? 'h1', change, error: -change + 0.002 * ((i % 3) - 1) };
  });
  const calibration = new Map([['cpu', { soon: none, later: none, last }]]);
  return wellFacts(log, { input: { state: { ...log.state('gpu'), calibration } } });
}

function unjudged(): Facts {
  const facts = wellFacts();
  const [gpu] = facts.aggregates;
  if (gpu?.newest == null) throw new Error('no snapshot');
  const { outOfService: _, ...rest } = gpu.newest;
  return { ...facts, aggregates: [{ ...gpu, newest: rest }] };
}

function after(act: (log: Log) => void, seconds = 0): Facts {
  const log = runningLog();
  act(log);
  log.pass(seconds);
  return wellFacts(log, { heartbeats: serviceNames.map((service) => heartbeat(service, log.nowMs)) });
}

function damaged(log: Log): void {
  const task = `${started(log)}-s1`;
  log.completed({ task }, 30, [{ code: SERVER_IN_ERROR, text: 'the guest is lost' }]);
}

function abortRefused(log: Log): string {
  const task = `${started(log)}-s1`;
  log.aborted(task);
  log.abortRefused({ task }, 'Cannot abort while it is in task_state None');
  return task;
}

function started(log: Log, more: { readonly forced?: boolean } = {}): string {
  const plan = log.released(moves);
  log.dispatched(plan, 2);
  log.started({ task: `${plan}-s1`, ...more });
  return plan;
}

/** Dispatches a plan of two moves to h2. The host breaker excludes h2 after this many failures. */
function brokenAfter(log: Log, breakerFailures: number): string {
  log.configured({ dryRun: false, breakerFailures, breakerWindowSeconds: 100, breakerDurationSeconds: 500 });
  const plan = log.released(['v1', 'v2'].map((serverId) => ({ serverId, from: 'h1', to: 'h2' })));
  log.dispatched(plan, 2);
  return plan;
}

function drainFailed(log: Log): string {
  const id = log.drainAsked('h1').data.commandId;
  log.hostClaimed(id, 'h1');
  log.hostActFailed(id, 'h1');
  return id;
}

/** A move between cells that a person has to confirm. */
function verified(log: Log): string {
  const plan = log.cellsProposed([{ serverId: 'a', from: 'h1', to: 'n1' }], {
    change: (data) => ({
      ...data,
      steps: data.steps.map((step) =>
        step.cell === undefined ? step : { ...step, cell: { ...step.cell, confirm: 'manual' } },
      ),
    }),
  });
  log.approved(plan);
  const task = `${plan}-s1`;
  log.dispatched(plan, 1);
  log.started({ task });
  log.verifying({ task });
  log.verified({ task });
  return task;
}

function abortAsked(log: Log): void {
  log.aborted(`${started(log)}-s1`);
}

function closeAsked(log: Log): void {
  log.closed(abortRefused(log));
}

describe('a drain', () => {
  const blocked = (facts: Facts) => judgeFacts(facts).filter(({ code }) => code === 'drain-blocked');

  it('is an alarm when its service cannot be changed, or when no executor has changed it', () => {
    expect(blocked(after((log) => void drainFailed(log)))).toMatchObject([
      { severity: 'alarm', about: 'h1', text: expect.stringContaining('(403): forbidden by policy') },
    ]);
    expect(blocked(after((log) => void log.drainAsked('h1'), 130))).toMatchObject([
      { text: expect.stringContaining('no executor has disabled') },
    ]);
  });

  it('is none while it goes on, while the aggregate is paused, or once the host is disabled', () => {
    expect(blocked(after((log) => void log.drainAsked('h1'), 60))).toEqual([]);
    const whilePaused = after((log) => {
      log.drainAsked('h1');
      log.paused();
    }, 130);
    expect(blocked(whilePaused)).toEqual([]);
    expect(blocked(after((log) => void log.hostDisabled(drainFailed(log), 'h1'), 3600))).toEqual([]);
  });

  it('is shown with the person who asked for it', () => {
    const { aggregates } = statusOf(after((log) => void log.drainAsked('h1')));
    expect(aggregates[0]?.drains).toMatchObject([{ host: 'h1', state: 'disabling', by: 'ada' }]);
  });
});
