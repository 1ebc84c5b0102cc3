import { beforeEach, expect, it } from 'vitest';
import { type CellRule, CellsChecker, type CloudServer, cellRules } from './cellsChecker.ts';

const TASK = 'p1-s1';
let server: CloudServer | null;
let checker: CellsChecker;
let nowMs: number;

beforeEach(() => {
  server = { host: 'o1', vmState: 'active', taskState: null };
  const cloud = { server: () => server, hostsOf: (name: string) => (name === 'new' ? ['n1'] : ['o1']) };
  nowMs = 0;
  checker = new CellsChecker(cloud, new Map([['vm', 'active']]), () => nowMs);
});

const put = (type: string, more: object = {}): void => {
  const data = { planId: 'p1', taskId: TASK, serverId: 'vm', attempt: 1, ...more };
  checker.stored({ data: new TextEncoder().encode(JSON.stringify({ type, data })) });
};
const post = (body: object, status = 202): void =>
  checker.called({ method: 'POST', path: '/v2.1/servers/vm/action', body, status });
const at = (host: string, vmState = 'active', taskState: string | null = null): void => {
  server = { host, vmState, taskState };
};
const proposed = (): void => {
  const steps = [1, 2].map((step) => ({
    step,
    taskId: `p1-s${step}`,
    serverId: step === 1 ? 'vm' : 'other',
    from: 'o1',
    cell: { target: 'new' },
  }));
  put('plan.proposed', { release: 'proposed', steps });
};
const approved = (): void => {
  proposed();
  put('plan.approved', { steps: null });
};
const started = (): void => {
  approved();
  put('migration.started');
  post({ migrate: { host: 'n1' } });
};
const verifying = (): void => {
  started();
  at('n1', 'resized');
  put('migration.verifying');
};
const verified = (): void => {
  verifying();
  put('migration.verified');
};
const asked = (act: 'confirm' | 'revert'): void => put(`migration.${act}Requested`);
const broken = (): CellRule[] => [...new Set(checker.breaches.map(({ rule }) => rule))];

it('accepts a move that is verified and confirmed', () => {
  verified();
  asked('confirm');
  post({ confirmResize: null }, 204);
  at('n1');
  put('migration.completed', { outcome: 'migrated', host: 'n1', warnings: [] });
  put('migration.failed', { taskId: 'p1-s2', serverId: 'other', retryPending: false });
  checker.settled();
  expect(broken()).toEqual([]);
});

it('accepts a confirm that a person asked for before the checks have passed, and a revert', () => {
  verifying();
  put('migration.confirmAsked');
  asked('confirm');
  expect(broken()).toEqual([]);
});

it('accepts a server in ERROR that the result reports', () => {
  started();
  at('o1', 'error');
  put('migration.failed', { retryPending: false, reason: { code: 'server-in-error' } });
  put('migration.failed', { taskId: 'p1-s2', serverId: 'other', retryPending: false });
  checker.settled();
  expect(broken()).toEqual([]);
});

const cases: readonly [CellRule, string, readonly (() => void)[]][] = [
  ['post-twice', 'a second request', [started, () => post({ resize: { flavorRef: '1' } })]],
  ['unasked', 'a request without an attempt', [approved, () => post({ migrate: null })]],
  ['unasked', 'the result of a task that was never proposed', [() => put('migration.failed')]],
  ['unapproved', 'a start without approval', [proposed, () => put('migration.started')]],
  [
    'unapproved',
    'the start of a step that was rejected',
    [
      proposed,
      () => put('plan.rejected', { steps: [1] }),
      () => put('plan.approved', { steps: null }),
      () => put('migration.started'),
    ],
  ],
  ['started-twice', 'an attempt that starts again', [started, () => put('migration.started')]],
  ['twice', 'another attempt of the server', [started, () => put('migration.started', { attempt: 2 })]],
  ['unverified', 'a confirm without its checks', [verifying, () => asked('confirm')]],
  ['unverified', 'a confirm that the log does not have', [verified, () => post({ confirmResize: null })]],
  ['unverified', 'a revert before VERIFY_RESIZE', [started, () => asked('revert')]],
  ['unverified', 'verified without VERIFY_RESIZE', [started, () => put('migration.verified')]],
  ['unverified', 'verified on another host', [verifying, () => at('o1', 'resized'), () => put('migration.verified')]],
  ['both', 'a revert after a confirm', [verified, () => asked('confirm'), () => asked('revert')]],
  [
    'final',
    'two results',
    [
      started,
      () => put('migration.failed', { retryPending: false }),
      () => put('migration.failed', { retryPending: false }),
    ],
  ],
  ['untrue', 'an arrival that did not happen', [started, () => put('migration.completed', { host: 'n1' })]],
  ['untrue', 'a failure of a server that has moved', [started, () => at('n1'), () => put('migration.failed')]],
  ['changed', 'a server that was left in VERIFY_RESIZE', [verified, () => put('migration.completed')]],
  ['changed', 'a server that stopped', [() => at('o1', 'stopped'), () => checker.settled()]],
  ['liveness', 'a task without a result', [approved, () => checker.settled()]],
];
it.each(cases)('finds %s: %s', (rule, _, acts) => {
  for (const act of acts) act();
  expect(broken()).toContain(rule);
});

it('shows every rule', () => {
  expect(new Set(cases.map(([rule]) => rule))).toEqual(new Set(cellRules));
});

it('what a lost log started may only end: one request in its window, and nothing for long', () => {
  approved();
  put('migration.started');
  checker.wiped();
  post({ migrate: { host: 'n1' } });
  put('migration.verifying');
  put('migration.skipped');
  expect(checker.breaches).toEqual([]);
  post({ migrate: { host: 'n1' } });
  expect(broken()).toEqual(['post-twice']);
  nowMs = 12_000;
  post({ migrate: { host: 'n1' } });
  nowMs = 400_000;
  put('migration.verifying');
  expect(broken()).toEqual(['post-twice', 'unasked']);
});

it('a confirm that a lost log has asked for may still arrive, and not later', () => {
  verified();
  asked('confirm');
  checker.wiped();
  post({ confirmResize: null }, 204);
  expect(checker.breaches).toEqual([]);
  nowMs = 400_000;
  post({ confirmResize: null }, 204);
  expect(broken()).toEqual(['unverified']);
});

it('nothing is started on a log that nobody has stated', () => {
  checker.wiped();
  approved();
  put('migration.started');
  expect(broken()).toEqual(['unapproved']);
  put('installation.created', { statement: 'newLog' });
  put('migration.started', { taskId: 'p1-s2', serverId: 'other' });
  expect(checker.breaches).toHaveLength(1);
});

it('what a lost log left is for a person, and counts again once it is mended', () => {
  started();
  checker.wiped();
  at('n1', 'resized');
  expect(checker.left()).toEqual([]);
  nowMs = 400_000;
  expect(checker.left()).toEqual(['vm']);
  checker.settled();
  expect(checker.breaches).toEqual([]);
  checker.mended('vm');
  checker.settled();
  expect(broken()).toEqual(['changed']);
});
