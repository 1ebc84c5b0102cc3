import type { HostLoad, LogEventOf, PolicyImbalance, StoredEvent } from '@kronos/contracts';
import { type StepInput, type TestLog, testCourse, testLog } from '@kronos/projections/testing';

type Decided = LogEventOf<'cycle.decided'>['data'];

const MINUTE = 60;
const HOUR = 3600;
const DAY = 24 * HOUR;

const above: PolicyImbalance[] = ['cpu', 'memory'].map((policy) => ({
  policy,
  imbalance: 0.4,
  threshold: 0.2,
  participates: true,
  detected: true,
  sustainedCycles: 2,
}));
const below = above.map((policy) => ({ ...policy, imbalance: 0.1, detected: false, sustainedCycles: 0 }));
const vm = (number: number): string => `vm${number}`;
const move = (number: number, from: string, to: string, more: Partial<StepInput> = {}): StepInput => ({
  serverId: vm(number),
  from,
  to,
  ...more,
});
const load = (host: string, cpu: number): HostLoad => ({
  host,
  values: { cpu, memory: 0.5 },
  vms: { cpu: cpu - 0.05, memory: 0.4 },
  arrived: { cpu: 0.08, memory: 0.05 },
});

/** The cases that the fold distinguishes beyond the types and the fields of events, each in an aggregate of its own. */
const TURNS: { readonly [aggregate: string]: (log: TestLog) => void } = {
  course: (log) => {
    const plan = log.decided('released', [move(1, 'h1', 'h2'), move(2, 'h1', 'h3')], {
      course: testCourse,
      policies: above,
    });
    log.dispatched(plan, 2);
    for (const step of [1, 2]) log.pass(1).started({ task: `${plan}-s${step}` });
    log.pass(MINUTE).decided('none', [], { policies: above, reason: { code: 'no-budget', text: 'all in flight' } });
    log.completed({ task: `${plan}-s1` }, 25);
    log
      .pass(MINUTE)
      .decided('none', [], { policies: above, outcome: 'gated', reason: { code: 'cooldown', text: 'cooling down' } });
    log.completed({ task: `${plan}-s2`, host: 'h4' }, 50, [{ code: 'other-host', text: 'it is on h4' }]);
    log.pass(MINUTE).decided('none', [], { policies: above, course: { ...testCourse, neededBudget: 5 } });
    log.pass(MINUTE).decided('none', [], { policies: below });
  },
  waits: (log) => {
    const waits = (code: string, detail: Record<string, string | number>) =>
      log.pass(5 * MINUTE).decided('none', [], { policies: above, reason: { code, text: 'forecast', detail } });
    const until = (minutes: number) => new Date(log.nowMs + minutes * 60_000).toISOString();
    waits('expected-to-pass', { until: until(10), secondsWithPlan: 120 });
    log.pass(5 * MINUTE).decided('none', [], { policies: below });
    waits('expected-to-return', { until: until(3) });
    waits('expected-to-return', {});
    waits('balanced', {});
    log.pass(20 * MINUTE).decided('released', [move(1, 'h1', 'h2')], { policies: above });
  },
  loads: (log) => {
    const plan = log.decided('released', [move(1, 'h1', 'h2'), move(2, 'h1', 'h3')], { policies: above });
    const seen = (cpu: number, policies = above) => {
      log.pass(MINUTE).decided('none', [], { policies });
      stated(log, { loads: [load('h1', cpu), load('h2', 1 - cpu), load('h3', 0.2)] });
    };
    stated(log, { loads: [load('h1', 0.9), load('h2', 0.1), load('h3', 0.1)] });
    for (const step of [1, 2]) log.started({ task: `${plan}-s${step}` });
    seen(0.8);
    log.completed({ task: `${plan}-s1` });
    log.failed({ task: `${plan}-s2`, hostAtFault: 'h3' });
    seen(0.7);
    seen(0.6);
    for (let minute = 0; minute < 10; minute++) seen(0.5);
    seen(0.5, below.slice(0, 1));
  },
  windows: (log) => {
    const closesIn = (seconds: number) => ({ startBefore: new Date(log.nowMs + seconds * 1000).toISOString() });
    const steps = () => [
      move(1, 'h1', 'h2', closesIn(0)),
      move(2, 'h1', 'h3', { dependsOn: [1] }),
      move(3, 'h1', 'h4'),
    ];
    log.released(steps().slice(0, 2));
    log.pass(MINUTE).released(steps());
    const waiting = log
      .pass(DAY)
      .proposed([move(4, 'h1', 'h2', closesIn(MINUTE)), move(5, 'h1', 'h2', closesIn(HOUR))]);
    log.pass(MINUTE).approved(waiting, [1]);
    log.pass(MINUTE).approved(waiting);
  },
  closes: (log) => {
    const plan = log.released([move(1, 'h1', 'h2'), move(2, 'h1', 'h3')]);
    const [first = '', second = ''] = [1, 2].map((step) => `${plan}-s${step}`);
    for (const task of [first, second]) log.started({ task });
    log.pass(MINUTE).closed(first, 'ada');
    log.pass(MINUTE).closed(first, 'grace', { force: true });
    log.pass(MINUTE).closed(first, 'linus');
    log.closed(second, 'ada', { force: true });
  },
  proposals: (log) => {
    const steps = [move(1, 'h1', 'h2'), move(2, 'h1', 'h3', { dependsOn: [1] }), move(3, 'h1', 'h4')];
    log.rejected(log.pass(MINUTE).proposed(steps), [1]);
    log.approved(log.pass(MINUTE).proposed(steps), [2]);
    log.rejected(log.pass(MINUTE).proposed(steps));
    log.approved('no-such-plan');
    const late = log.pass(MINUTE).decided('proposed', steps, { window: { open: true, until: null } });
    log.pass(2 * HOUR).approved(late);
    const replaced = log.pass(MINUTE).proposed(steps);
    log.approved(log.pass(MINUTE).proposed(steps.slice(1)));
    log.approved(replaced);
    log.withdrawn(log.pass(MINUTE).proposed(steps));
    const during = log.pass(MINUTE).proposed(steps);
    log.configured({ dryRun: true });
    log.approved(during);
  },
  attempts: (log) => {
    const moves = [1, 2, 3, 4, 5, 6].map((n) => move(n, 'h1', `h${n + 1}`, { alternates: ['h9'], delaySeconds: n }));
    const plan = log.released(moves);
    const task = (step: number) => `${plan}-s${step}`;
    log.dispatched(plan, moves.length);
    log.started({ task: task(1) }).data.groups.push('g1');
    log.observed({ task: task(1), migrationId: null, requestId: 'req-1' });
    log.observed({ task: task(1) });
    log.failed({
      task: task(1),
      cause: 'scheduler',
      retry: { destination: 'h9', notBeforeSeconds: 30 },
      nova: { runningMs: 900 },
    });
    log.started({ task: task(1), attempt: 2, destination: 'h9', forced: true }, 'executor-2');
    log.started({ task: task(1), attempt: 1 });
    log.completed({ task: task(1), attempt: 2, destination: 'h9' });
    log.completed({ task: task(1), attempt: 2, destination: 'h9' });
    log.failed({ task: task(2), errorType: 'PreFlightError', started: false, cause: 'destination' });
    log.started({ task: task(3) });
    log.aborted(task(3));
    log.failed({ task: task(3), errorType: 'Cancelled' });
    log.started({ task: task(4) });
    log.closed(task(4));
    log.failed({ task: task(4), errorType: 'Closed' });
    log.cancelled(task(5));
    log.failed({ task: task(5), errorType: 'Cancelled', started: false });
    log.started({ task: task(6) });
    log.failed({
      task: task(6),
      errorType: 'MigrationFailed',
      cause: 'server',
      reason: { code: 'error', text: 'the server is in ERROR' },
    });
    log.completed({ task: 'no-such-task' });
    log.pass(MINUTE).decided('none', [], {
      novaRefusals: [{ serverId: vm(1), host: 'h2', shape: 'shape', mark: 'mark' }],
    });
    stated(log, { absence: { gone: [vm(4), vm(6)], back: [vm(2)] } });
    log.hostReleased('h2');
    log.unquarantined(vm(6));
    for (const after of [2 * HOUR, 2 * DAY, 8 * DAY, 40 * DAY])
      log.pass(after).decided('none', [], { policies: below });
  },
  drains: (log) => {
    const drainOf = (host: string) => {
      const asked = log.drainAsked(host);
      if (asked.type !== 'host.drainAsked') throw new Error('not a drain');
      return asked.data.commandId;
    };
    const [first, second] = [drainOf('h1'), drainOf('h2')];
    drainOf('h1');
    const seen = (state: 'done' | 'stuck' | 'running', left: number, waits?: Decided['evacuations'][number]['waits']) =>
      log.pass(MINUTE).decided('none', [], {
        evacuations: [{ host: 'h1', state, left, ...(waits === undefined ? {} : { waits }) }],
        stuck: [
          {
            serverId: vm(2),
            serverName: 'two',
            host: 'h1',
            phase: 'evacuate',
            reason: { code: 'vm-locked', text: 'locked', detail: { by: 'ada' } },
          },
        ],
      });
    seen('running', 3);
    log.hostClaimed(first, 'h1');
    log.hostDisabled(first, 'h1');
    seen('running', 3);
    seen('running', 3, [{ code: 'vm-cooldown', text: 'moved lately', count: 1, serverName: 'one' }]);
    const plan = log.pass(MINUTE).released([move(1, 'h1', 'h2', { phase: 'evacuate' })]);
    log.started({ task: `${plan}-s1` });
    log.completed({ task: `${plan}-s1` });
    seen('stuck', 2);
    seen('done', 0);
    log.hostDrained(first, 'h1');
    log.hostClaimed(second, 'h2');
    log.undrainAsked('h2');
    log.hostActFailed(second, 'h2');
    log.undrainAsked('h1');
    log.hostEnabled(first, 'h1', false);
  },
  controls: (log) => {
    log.quarantined(vm(1));
    log.quarantined(vm(2), 600);
    log.about('_all_').quarantined(vm(1), HOUR);
    log.paused();
    log.about('controls').paused('grace');
    log.paused('ada');
    log.pass(3 * HOUR).decided('none', [], { policies: below });
    log.about('_all_').resumed();
    log.about('controls').resumed();
    log.configured({ dryRun: true });
    log.pass(MINUTE).released([move(1, 'h1', 'h2')]);
    log.configured({ approval: 'manual' }, '1.0.1');
    log.pass(MINUTE).released([move(1, 'h1', 'h2')]);
    log.eventSkipped(log.events.length);
    const again = log.events.find(({ event }) => event.type === 'aggregate.paused')?.event;
    if (again?.type === 'aggregate.paused') log.again(again);
  },
};

/** States more in the last decision. */
function stated(log: TestLog, more: Pick<Decided, 'loads' | 'absence'>): void {
  const event = log.events.at(-1)?.event;
  if (event?.type !== 'cycle.decided') throw new Error('the last event is no decision');
  Object.assign(event.data, more);
}

/** @param after the sequence of the event before the first one */
export function everyTurn(after: number): StoredEvent[] {
  const log = testLog();
  for (const [aggregate, turn] of Object.entries(TURNS)) {
    log.pass(MINUTE).about(aggregate).configured({ approval: 'auto', cooldownSeconds: 60 });
    turn(log.pass(MINUTE));
  }
  return log.events.map(({ sequence, storedAt, event }) => {
    if (event.type === 'event.skipped') {
      event.data.sequence += after;
      event.data.through += after;
    }
    return { sequence: sequence + after, storedAt, event };
  });
}
