import type { StoredMessage } from '@kronos/eventlog/simulated';
import { headers } from '@nats-io/transport-node';
import { beforeEach, expect, it } from 'vitest';
import { Checker, type CloudRecord, type Rules } from './checker.ts';

const HOUR_MS = 3_600_000;
const rules: Rules = {
  maxConcurrentMigrations: 2,
  maxOutboundPerHost: 2,
  maxInboundPerHost: 2,
  maxConcurrentPerGroup: 1,
  cooldownMs: 0,
  instanceCooldownMs: 0,
  quarantineMs: 0,
  intervalMs: 300_000,
  decidedWithinMs: 1_200_000,
  settleMs: 0,
  approvalTtlMs: null,
  postWindowMs: 10_000,
  planTtlMs: HOUR_MS,
  ackWaitMs: 30_000,
  checkpointMs: 600_000,
  maxSkewMs: 5_000,
  openings: null,
  cellsKnown: false,
};
const SERVER = '00000000-0000-4000-8000-000000000001';

/** A world of two hosts and one server, as the checker sees it. */
let now = 0;
let closed = new Set<string>();
let cellsFit = true;
let around = { shared: '', reachable: true };
let hosts: readonly string[] = [];
let unprofiledSince: number | null = null;
/** Of its one migration, which nobody works on; null: it has none. */
let abandoned: { readonly taskState: string | null } | null = null;
/** Status of a person's cold migration of the server to h1; null: there is none. */
let cold: string | null = null;
let versions: Readonly<Record<string, number>> = {};
let sequences = new Map<string, number>();
let checker: Checker;
let last = 0;

beforeEach(() => begin());

function begin(more: Partial<Rules> = {}): void {
  now = Date.UTC(2026, 0, 1);
  closed = new Set();
  cellsFit = true;
  around = { shared: '', reachable: true };
  hosts = ['h1', 'h2'];
  unprofiledSince = null;
  abandoned = null;
  cold = null;
  versions = {};
  sequences = new Map();
  last = 0;
  const cloud: CloudRecord = {
    host: () => 'h1',
    companions: () => null,
    open: (host) => !closed.has(host),
    aggregatesWith: (host) => (host === around.shared ? ['one', 'two'] : ['one']),
    reachable: () => around.reachable,
    hypervisorVersion: (host) => versions[host] ?? 1,
    disabled: (host) => closed.has(host),
    shape: () => 'g.medium',
    cellsFit: () => cellsFit,
    taskState: () => abandoned?.taskState ?? null,
    unmeasuredSince: () => null,
    unprofiledSince: () => unprofiledSince,
    hostsOf: () => hosts,
    migrations: () => [
      ...(abandoned === null ? [] : [migration({ dest: 'h2', status: 'abandoned', byKronos: true })]),
      ...(cold === null ? [] : [migration({ dest: 'h1', status: cold, byKronos: false })]),
    ],
    running: () => [],
  };
  checker = new Checker(
    { ...rules, ...more },
    cloud,
    () => now,
    () => undefined,
  );
}

const migration = (one: { readonly dest: string; readonly status: string; readonly byKronos: boolean }) => ({
  id: 1,
  server: SERVER,
  source: one.dest === 'h1' ? 'h2' : 'h1',
  createdMs: now,
  ...one,
});

function store(family: string, type: string, service: string, data: object, stream = 'KRONOS_LOG'): void {
  const subject = `kronos.${family}.agg`;
  const h = headers();
  h.set('Nats-Expected-Last-Subject-Sequence', String(sequences.get(subject) ?? 0));
  const body = { type, id: `${type} ${++last}`, time: new Date(now).toISOString(), aggregate: 'agg' };
  const text = JSON.stringify({ ...body, by: { service, instance: `${service}-1` }, data });
  sequences.set(subject, last);
  const message: StoredMessage = { subject, sequence: last, storedAt: now, headers: h, data: Buffer.from(text) };
  checker.log.stored(stream, message);
}

/** A task comes to the work queue. */
const queue = (task: object): void => store('migrations', 'migration.requested', 'planner', task, 'KRONOS_MIGRATIONS');

function look(): void {
  checker.cloud.look([{ uuid: SERVER, host: 'h1' }], ['h1', 'h2']);
}

/** A move to h2 is requested on fresh reads. The request leaves and arrives that many ms after its start. */
function request(leaves = 0, arrives = leaves, attempt = 1): void {
  const task = { taskId: 'agg-1-s1', planId: 'agg-1', serverId: SERVER, attempt };
  queue(task);
  store('results', 'migration.started', 'executor', { ...task, from: 'h1', destination: 'h2', groups: [] });
  checker.cloud.read(`/v2.1/servers/${SERVER}`);
  const body = { 'os-migrateLive': { host: 'h2' } };
  const path = `/v2.1/servers/${SERVER}/action`;
  const leftMs = now + leaves;
  now += arrives;
  checker.cloud.called({ method: 'POST', path, body, atMs: now, leftMs, requestId: 'req-1', status: 202 });
}

/** The first attempt failed, and Nova's words are these. */
function refused(text: string): void {
  const ended = { taskId: 'agg-1-s1', serverId: SERVER, attempt: 1, destination: 'h2', errorType: 'MigrationFailed' };
  const reason = { code: 'no-valid-host', text };
  const next = { attempt: 2, destination: 'h2' };
  store('results', 'migration.failed', 'executor', { ...ended, cause: 'scheduler', reason, retryPending: true, next });
}

const broken = (): string[] => checker.breaches.map(({ rule }) => rule);

it.each([
  ['within its window, however late it arrives', 9_900, 14_000, false],
  ['after its window', 11_100, 11_100, true],
] as const)('a request that leaves %s: %i ms, arrives after %i ms: a breach is %s', (_, leaves, arrives, isBreach) => {
  look();
  request(leaves, arrives);
  expect(broken().includes('post-late')).toBe(isBreach);
});

it('a move to a host that has long been closed is a breach', () => {
  closed.add('h2');
  look();
  now += 200_000;
  look();
  request();
  expect(broken()).toContain('closed-host');
});

it('a move to a host that was opened since the last look is no breach', () => {
  closed.add('h2');
  look();
  now += 200_000;
  closed.delete('h2');
  request();
  expect(broken()).not.toContain('closed-host');
});

const taken = (digest: string): void => {
  const data = { snapshotId: 'agg-1', observedFrom: new Date(now).toISOString(), body: { digest } };
  store('snapshots', 'snapshot.taken', 'scorer', data, 'KRONOS_SNAPSHOTS');
};
/** A decision by all that is on the log, without a plan. */
const decided = (more: object): void =>
  store('plans', 'cycle.decided', 'planner', {
    snapshotId: 'agg-1',
    basis: last,
    digests: { snapshot: 'none' },
    plan: null,
    ...more,
  });
const decide = (digest: string): void => decided({ digests: { snapshot: digest } });

it.each([
  ['second', false],
  ['first', true],
])(
  'of two snapshots with one id a decision is judged by the one that it names: too late on the %s is %s',
  (named, late) => {
    taken('first');
    now += HOUR_MS;
    taken('second');
    decide(named);
    expect(broken().includes('fresh')).toBe(late);
  },
);

/** A decision by the log up to `basis`, stored after everything that is on its subject. */
const decideAt = (basis: number): void => decided({ basis, digests: { snapshot: 'first' } });

it.each([
  ['one that its basis does not have', 1, true],
  ['that of its basis', 0, false],
])('the expectation of a decision is %s, %i events later: a breach is %s', (_, behind, isBreach) => {
  taken('first');
  store('plans', 'plan.dispatched', 'planner', { planId: 'agg-0' });
  decideAt(last - behind);
  expect(broken().includes('expectation')).toBe(isBreach);
});

/** A task is requested, and ends as expired after a time, by a service. */
function expire(service: string, afterMs: number): void {
  const task = { taskId: 'agg-1-s1', planId: 'agg-1', serverId: SERVER, attempt: 1 };
  queue(task);
  now += afterMs;
  store('results', 'migration.failed', service, { ...task, errorType: 'Cancelled', reason: { code: 'expired' } });
}

it.each([
  ['executor', 0.5, true],
  ['executor', 1.1, false],
  ['planner', 1.1, true],
  ['planner', 2.1, false],
] as const)('a task that the %s calls expired after %f times to live: a breach is %s', (service, ttls, isBreach) => {
  expire(service, ttls * rules.planTtlMs);
  expect(broken().includes('expired')).toBe(isBreach);
});

/** A plan that waits for approval is approved, and its task is on the work queue some time later; another plan moves the server. */
function movedAgain(dispatchedMs: number, againMs: number): void {
  const step = { taskId: 'agg-1-s1', serverId: SERVER, phase: 'spread', dependsOn: [] };
  const proposed = (snapshotId: string, taskId: string): void =>
    decided({ snapshotId, release: 'proposed', plan: { steps: [{ ...step, taskId }] } });
  begin({ instanceCooldownMs: 600_000, approvalTtlMs: HOUR_MS });
  proposed('agg-1', 'agg-1-s1');
  store('controls', 'plan.approved', 'operator', { planId: 'agg-1' });
  now += dispatchedMs;
  const task = { taskId: 'agg-1-s1', planId: 'agg-1', serverId: SERVER, attempt: 1 };
  queue(task);
  now += againMs;
  proposed('agg-2', 'agg-2-s1');
}

it.each([
  [490_000, false],
  [400_000, true],
])(
  'the cooldown of a server begins with the approval of its plan: moved again %i ms after it is queued, a breach is %s',
  (againMs, isBreach) => {
    movedAgain(120_000, againMs);
    expect(broken().includes('instance-cooldown')).toBe(isBreach);
  },
);

/** Closed from now on, after as much. */
const closing = (afterMs: number): Partial<Rules> => {
  const atMs = Date.UTC(2026, 0, 1) + afterMs;
  return { openings: { evacuationIgnoresWindows: true, open: (_, __, ms) => ms < atMs } };
};
/** Closed from a time on, for as long, ms. */
const closedFrom = (fromMs: number, ms: number): Partial<Rules> => ({
  openings: { evacuationIgnoresWindows: false, open: (_, __, atMs) => atMs < fromMs || atMs >= fromMs + ms },
});
const STEP = { taskId: 'agg-1-s1', planId: 'agg-1', serverId: SERVER, attempt: 1, phase: 'spread' };
const planOf = (phase: string, release: object): void =>
  decided({
    snapshotTime: new Date(now).toISOString(),
    ...release,
    plan: { steps: [{ ...STEP, phase, dependsOn: [] }] },
  });
const planned = (phase: string): void => planOf(phase, { release: 'released', reason: { code: 'planned' } });
const endForWindow = (errorType: string): void =>
  store('results', 'migration.failed', 'executor', { ...STEP, errorType, reason: { code: 'window-closed' } });
const start = (phase: string): void => {
  queue({ ...STEP, phase });
  store('results', 'migration.started', 'executor', { ...STEP, phase, from: 'h1', destination: 'h2', groups: [] });
};

it.each([
  ['spread', -60_000, false],
  ['spread', 60_000, true],
  ['evacuate', 60_000, false],
] as const)('%s planned for release %d ms after its window closed: a breach is %s', (phase, afterMs, isBreach) => {
  begin(closing(HOUR_MS));
  now += HOUR_MS + afterMs;
  planned(phase);
  expect(broken().includes('window')).toBe(isBreach);
});

it.each([
  ['spread', 5_000, false],
  ['spread', 60_000, true],
  ['evacuate', 60_000, false],
] as const)('%s started %d ms after its window closed: a breach is %s', (phase, afterMs, isBreach) => {
  begin(closing(HOUR_MS));
  planned(phase);
  now += HOUR_MS + afterMs;
  start(phase);
  expect(broken().includes('window')).toBe(isBreach);
});

it.each([
  ['Cancelled', 120_000, false],
  ['Cancelled', -600_000, true],
  ['PreFlightError', 120_000, true],
] as const)(
  'a task that ends as %s because its window closed, %d ms after that: a breach is %s',
  (errorType, afterMs, isBreach) => {
    begin(closing(HOUR_MS));
    planned('spread');
    now += HOUR_MS + afterMs;
    endForWindow(errorType);
    expect(broken().includes('window')).toBe(isBreach);
  },
);

it.each([
  ['closed', false],
  ['was open', true],
])(
  'the window of an approved plan %s before its tasks were on the work queue, and they end for it: a breach is %s',
  (_, isBreach) => {
    const fromMs = Date.UTC(2026, 0, 1) + 600_000;
    begin({ approvalTtlMs: HOUR_MS, ...closedFrom(fromMs, isBreach ? 0 : 300_000) });
    planOf('spread', { release: 'proposed' });
    store('controls', 'plan.approved', 'operator', { planId: 'agg-1' });
    now = fromMs + 301_000;
    queue(STEP);
    endForWindow('Cancelled');
    expect(broken().includes('window')).toBe(isBreach);
  },
);

it.each([
  ['closed', false],
  ['was open', true],
])(
  'a window %s between the snapshot of a plan and its decision, and the task ends for it: a breach is %s',
  (_, isBreach) => {
    const fromMs = Date.UTC(2026, 0, 1) + 120_000;
    begin(closedFrom(fromMs, isBreach ? 0 : 600_000));
    const snapshotTime = new Date(now).toISOString();
    // No planner ran meanwhile; the next window is open.
    now = fromMs + 780_000;
    planOf('spread', { release: 'released', snapshotTime });
    endForWindow('Cancelled');
    expect(broken().includes('window')).toBe(isBreach);
  },
);

it.each([
  ['the same host', [], false, ['h1', 'h2'], ['refused-again']],
  [
    'a host that has taken a server since',
    [{ uuid: '00000000-0000-4000-8000-000000000002', host: 'h2' }],
    false,
    ['h1', 'h2'],
    [],
  ],
  ['a host that was disabled then', [], true, ['h1', 'h2'], []],
  ['the same host, from a VM whose host has left the aggregate,', [], false, ['h2'], []],
])('%s is asked for again after Nova refused it', (_, newcomers, disabled, left, breaches) => {
  look();
  now += HOUR_MS;
  request();
  if (disabled) closed.add('h2');
  look();
  refused('No valid host was found. There are not enough hosts available.');
  closed.delete('h2');
  hosts = left;
  now += 100_000;
  checker.cloud.look([{ uuid: SERVER, host: 'h1' }, ...newcomers], ['h1', 'h2']);
  request(0, 0, 2);
  expect(broken()).toEqual(breaches);
});

it.each([
  ['known', true, ['topology']],
  ['unknown', false, []],
])('a host whose NUMA cells do not take the server is asked for where they are %s', (_, cellsKnown, breaches) => {
  begin({ cellsKnown });
  look();
  now += HOUR_MS;
  cellsFit = false;
  request();
  expect(broken()).toEqual(breaches);
});

it('where NUMA cells are known, Nova refuses no host because of them', () => {
  begin({ cellsKnown: true });
  look();
  now += HOUR_MS;
  request();
  refused('Insufficient compute resources: Requested instance NUMA topology cannot fit the given host NUMA topology.');
  expect(broken()).toEqual(['topology']);
});

it.each([
  ['decided late', 'released'],
  ['approved late', 'proposed'],
] as const)(
  'a task of a plan that was %s, and whose window had closed by then, is a breach on the work queue',
  (_, release) => {
    begin(release === 'proposed' ? { approvalTtlMs: HOUR_MS } : {});
    const startBefore = new Date(now + 60_000).toISOString();
    const request = (taskId: string): void => queue({ ...STEP, taskId });
    const snapshotTime = new Date(now).toISOString();
    if (release === 'released') now += 60_000;
    decided({
      snapshotTime,
      release,
      plan: {
        steps: [
          { ...STEP, dependsOn: [], startBefore },
          { ...STEP, taskId: 'agg-1-s2', dependsOn: ['agg-1-s1'] },
          { ...STEP, taskId: 'agg-1-s3', dependsOn: [] },
        ],
      },
    });
    if (release === 'proposed') {
      now += 60_000;
      store('controls', 'plan.approved', 'operator', { planId: 'agg-1' });
    }
    request('agg-1-s3');
    store('plans', 'plan.dispatched', 'planner', { planId: 'agg-1', tasks: 1 });
    expect(broken().filter((name) => name === 'window' || name === 'atomic')).toEqual([]);
    request('agg-1-s2');
    expect(broken()).toContain('window');
  },
);

it.each([
  ['executor', null, 'migrating', true],
  ['executor', {}, 'migrating', true],
  ['executor', {}, null, false],
  ['planner', {}, null, true],
  ['executor', { force: true }, 'migrating', false],
  ['planner', { force: true }, 'migrating', false],
] as const)(
  'a task that the %s ends as closed, by the command %j, with task_state %s: a breach is %s',
  (service, how, taskState, isBreach) => {
    request();
    if (how !== null) store('controls', 'migration.closed', 'operator', { taskId: 'agg-1-s1', ...how });
    abandoned = { taskState };
    const ended = { taskId: 'agg-1-s1', attempt: 1, errorType: 'Cancelled', reason: { code: 'closed' } };
    store('results', 'migration.failed', service, ended);
    expect(broken().includes('closed')).toBe(isBreach);
  },
);

it.each([
  ['after', 60_000, false],
  ['before', -60_000, true],
] as const)(
  'a decision that waits for the cooldown of a plan whose window closed %s its release: a breach is %s',
  (_, openMs, isBreach) => {
    const at = new Date(now).toISOString();
    const startBefore = new Date(now + openMs).toISOString();
    const plan = { steps: [{ ...STEP, dependsOn: [], startBefore }] };
    decided({ snapshotTime: at, release: 'released', plan });
    now += 120_000;
    const reason = { code: 'cooldown', detail: { after: 'release', at } };
    decided({ snapshotId: 'agg-2', snapshotTime: at, release: 'none', reason });
    expect(broken().includes('cooldown')).toBe(isBreach);
  },
);

it('a doubled message of an attempt may leave the queue while a later attempt is on it, which may not until the one after it is there', () => {
  const attemptIsQueued = (attempt: number): string => {
    queue({ taskId: 'agg-1-s1', serverId: SERVER, attempt });
    return `$JS.ACK.KRONOS_MIGRATIONS.executor.1.${last}`;
  };
  const leaves = (reply: string): void => {
    checker.queue.delivered(reply);
    checker.queue.answered(reply, '+ACK');
  };
  look();
  request();
  const [first, again] = [attemptIsQueued(1), attemptIsQueued(1)];
  refused('No valid host was found.');
  leaves(first);
  expect(broken()).toEqual(['acked-early']);
  const second = attemptIsQueued(2);
  const ended = { taskId: 'agg-1-s1', serverId: SERVER, attempt: 2, destination: 'h2', errorType: 'PreFlightError' };
  store('results', 'migration.failed', 'executor', {
    ...ended,
    retryPending: true,
    next: { attempt: 3, destination: 'h3' },
  });
  leaves(again);
  expect(broken()).toEqual(['acked-early']);
  leaves(second);
  expect(broken()).toEqual(['acked-early', 'acked-early']);
});

it.each([
  ['spread', ['blind']],
  ['evacuate', []],
])('a VM whose load is not known for long is moved by the phase %s', (phase, breaches) => {
  look();
  unprofiledSince = now;
  now += HOUR_MS;
  taken('first');
  planOf(phase, { release: 'released', digests: { snapshot: 'first' } });
  expect(broken().filter((rule) => rule === 'blind')).toEqual(breaches);
});

it.each([
  ['two-aggregates', { shared: 'h2', reachable: true }],
  ['unreachable', { shared: '', reachable: false }],
] as const)('what is %s for longer than it takes to see it gets no plan and no request', (rule, change) => {
  const planned = (): void => {
    taken('first');
    planOf('spread', { release: 'released', digests: { snapshot: 'first' } });
    request();
  };
  look();
  now += HOUR_MS;
  around = { ...change };
  look();
  now += 60_000;
  planned();
  expect(broken()).not.toContain(rule);
  now += HOUR_MS;
  planned();
  // It ends, and the checker has not looked since.
  around = { shared: '', reachable: true };
  planned();
  expect(broken().filter((one) => one === rule)).toHaveLength(2);
});

it.each([
  ['is older since before the snapshot of the plan', 1_200_000 + HOUR_MS, ['older-host']],
  ['is older since an upgrade of the source that followed', 0, []],
])('a move to a host whose hypervisor %s', (_, snapshotAfterMs, breaches) => {
  const atMs = now;
  look();
  versions = { h1: 2 };
  now += 1_200_000;
  look();
  now += HOUR_MS;
  const snapshotTime = new Date(atMs + snapshotAfterMs).toISOString();
  taken('first');
  planOf('spread', { release: 'released', digests: { snapshot: 'first' }, snapshotTime });
  request();
  expect(broken().filter((one) => one === 'older-host')).toEqual(breaches);
});

it.each([
  ['no-migration-seen', null, false],
  ['moved-since', null, true],
  ['moved-since', 'migrating', true],
  ['moved-since', 'post-migrating', false],
  ['moved-since', 'finished', false],
])(
  'a server on a host to which no completed migration took it, with the warning %s and a cold migration there %s: a breach is %s',
  (code, status, isBreach) => {
    cold = status;
    look();
    request();
    const ended = {
      taskId: 'agg-1-s1',
      serverId: SERVER,
      attempt: 1,
      destination: 'h2',
      host: 'h1',
      outcome: 'migrated',
    };
    store('results', 'migration.completed', 'executor', { ...ended, warnings: [{ code, text: 'text' }] });
    expect(broken().includes('untrue')).toBe(isBreach);
  },
);
