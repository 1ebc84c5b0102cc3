import { describe, expect, it } from 'vitest';
import { SAMPLE_MS, sampleTask } from '../testing/sample.ts';
import type { Account, JudgedFailure } from './failure.ts';
import { defaultTaskOptions, type TaskOptions } from './options.ts';
import { decide, evolve, initialState } from './task.ts';
import type { AttemptOrders, Ended, Fact, MigrationFacts, NovaLook, ServerFacts, Task, TaskLog } from './taskFacts.ts';
import { type TaskState, UnexpectedFact } from './taskStages.ts';

const T0 = SAMPLE_MS;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Past every deadline of the sample task. */
const TOO_LONG = 24 * 60 * MINUTE;

type Body = Fact extends infer F ? (F extends { readonly at: unknown } ? Omit<F, 'at'> : never) : never;

/** A task's life, told fact by fact. Time goes by only where it is said. */
class Life {
  state: TaskState;
  #elapsed = 0;

  constructor(options: Partial<TaskOptions> = {}, changes: Partial<Task> = {}, deliveries = 1) {
    this.state = initialState(sampleTask(changes), { ...defaultTaskOptions, ...options }, deliveries);
  }

  get mono(): number {
    return 500 + this.#elapsed;
  }

  pass(ms: number): this {
    this.#elapsed += ms;
    return this;
  }

  when(...facts: Body[]): this {
    for (const fact of facts)
      this.state = evolve(this.state, { ...fact, at: { mono: this.mono, wall: T0 + this.#elapsed } });
    return this;
  }

  later(ms: number, ...facts: Body[]): this {
    return this.pass(ms).when(...facts);
  }

  get command() {
    return decide(this.state);
  }

  /** Its request to Nova once the log has the reason. */
  get abort() {
    if (this.command.do === 'appendAbortRequested') this.when({ kind: 'appended', began: this.mono });
    return this.command;
  }

  get stage(): string {
    return this.state.stage.at;
  }

  /** The outcome that is about to be written. */
  get ended(): Ended {
    const { stage } = this.state;
    if (stage.at !== 'ending') throw new Error(`it is ${stage.at}, not ending`);
    return stage.ended;
  }

  /** Writes the outcome as it stands. */
  written(): this {
    if (this.command.do === 'readLog') this.when(logSays({ kind: 'started', ...nothingSeen }));
    return this.when({ kind: 'appended', began: this.mono });
  }
}

const nothingSeen = { newestMigrationId: 7, migrationId: null, requestId: null, stop: null };
const logSays = (attempt: TaskLog['attempt'], expected = 40): Body => ({ kind: 'log', log: { attempt, expected } });
const waiting = logSays({ kind: 'waiting' });
const mayStart: Body = { kind: 'mayStart', grant: { expected: 41, disturbed: false } };
const go: Body = { kind: 'checked', verdict: { kind: 'go', newestMigrationId: 7, forced: false }, tookMs: 100 };
const refusedBy = (failure: Partial<JudgedFailure>): Body => ({
  kind: 'checked',
  tookMs: 100,
  verdict: {
    kind: 'no',
    failure: {
      errorType: 'PreFlightError',
      reason: { code: 'test', text: 'test' },
      cause: 'unknown',
      fault: 'none',
      hostAtFault: null,
      ...failure,
    },
  },
});
const accepted: Body = { kind: 'posted', answer: { kind: 'accepted', requestId: 'req-1' } };
const unknown: Body = { kind: 'posted', answer: { kind: 'unknown', text: 'cut off' } };
const refused = (status: number, text: string): Body => ({ kind: 'posted', answer: { kind: 'refused', status, text } });

const row = (status: string, changes: Partial<MigrationFacts> = {}): MigrationFacts => ({
  id: 8,
  type: 'live-migration',
  status,
  sourceCompute: 'h1',
  destCompute: 'h2',
  ...changes,
});
const on = (host: string, changes: Partial<ServerFacts> = {}): ServerFacts => ({
  host,
  status: 'ACTIVE',
  vmState: 'active',
  taskState: null,
  ...changes,
});
const silence: AttemptOrders = { stopAsked: false, closeAsked: null, ended: false };
const blind: Body = { kind: 'blind', text: 'down', orders: silence };
const seen = (
  migrations: readonly MigrationFacts[],
  server: NovaLook['server'] = null,
  {
    remaining,
    accepted = false,
    ...orders
  }: Partial<AttemptOrders> & { readonly remaining?: number; readonly accepted?: boolean } = {},
): Body => ({
  kind: 'looked',
  orders: { ...silence, ...orders },
  look: {
    migrations,
    server,
    accepted,
    progress:
      remaining === undefined
        ? null
        : {
            memoryTotalBytes: 1000,
            memoryProcessedBytes: 1000 - remaining,
            memoryRemainingBytes: remaining,
            diskTotalBytes: 0,
            diskProcessedBytes: 0,
            diskRemainingBytes: 0,
          },
  },
});

const refusedAbort: Body = {
  kind: 'abortAnswered',
  answer: 'refused',
  refusal: { status: 409, text: 'it is in task_state None' },
};
/** Nova's account of a failed migration. */
const told = (story: Account['story'], account: Partial<Account> = {}): Body => ({
  kind: 'explained',
  orders: silence,
  account: { story, asked: true, hosts: { source: 'up', destination: 'up' }, ...account },
});

const claimed = (life = new Life()) =>
  life.when(waiting, mayStart, go, mayStart, { kind: 'appended', began: life.mono });
const posted = (life = new Life()) => claimed(life).when(accepted);
const running = (life = new Life()) =>
  posted(life).when(seen([row('accepted')]), { kind: 'appended', began: life.mono }, seen([row('running')]));

const appended: Body = { kind: 'appended', began: 0 };
const abortAccepted: Body = { kind: 'abortAnswered', answer: 'accepted' };
const begun = logSays({ kind: 'started', ...nothingSeen });
const over = logSays({ kind: 'ended', next: null });
const queues = seen([row('queued')]);
const runs = seen([row('running')]);
const arrived = seen([row('completed')], on('h2'));
const wasCancelled = seen([row('cancelled')], on('h1'));
/** No row of a migration, and the server idle on its source. */
const idleWithout = seen([], on('h1'));
const fails = (errorType: string, code: string) => ({ type: 'failed', errorType, reason: { code } });
const finished = (kind: 'done' | 'handOver') => ({ do: 'finish', outcome: { kind } });

describe('a move that goes well', () => {
  it('reads the log, waits for its start, checks, claims, asks Nova, follows, and ends with the host', () => {
    const life = new Life();
    const commands: string[] = [];
    const facts: Body[] = [
      waiting,
      mayStart,
      go,
      mayStart,
      appended,
      accepted,
      seen([]),
      seen([row('accepted', { destCompute: null })]),
      appended,
      runs,
      arrived,
      begun,
      appended,
    ];
    for (const fact of facts) {
      commands.push(life.command.do);
      life.when(fact);
    }
    expect(commands).toEqual([
      'readLog',
      'awaitStart',
      'check',
      'awaitStart',
      'appendStarted',
      'post',
      'look',
      'look',
      'appendObserved',
      'look',
      'look',
      'readLog',
      'appendEnded',
    ]);
    expect(life.command).toMatchObject(finished('done'));
  });

  it('claims with the sequence that the log was folded to, and the newest migration known', () => {
    const life = new Life().when(waiting, mayStart, go, mayStart);
    expect(life.command).toEqual({ do: 'appendStarted', expected: 41, newestMigrationId: 7, forced: false });
  });

  it('says how long it waited and ran, and what was copied', () => {
    const life = posted();
    life.later(4 * SECOND, queues, appended);
    life.later(5 * SECOND, seen([row('running')], null, { remaining: 400 }));
    life.later(20 * SECOND, arrived);
    expect(life.ended).toMatchObject({
      type: 'completed',
      outcome: 'migrated',
      host: 'h2',
      warnings: [],
      nova: {
        migrationId: 8,
        requestId: 'req-1',
        status: 'completed',
        queuedMs: 9000,
        runningMs: 20000,
        totalMs: 29000,
        memoryBytes: 600,
      },
    });
  });

  it('keeps a paused server: PAUSED on the destination is as well as ACTIVE', () => {
    const life = running().when(seen([row('completed')], on('h2', { status: 'PAUSED', vmState: 'paused' })));
    expect(life.ended).toMatchObject({ type: 'completed', warnings: [] });
  });

  it('calls nothing when the server is on its destination already', () => {
    const life = new Life().when(waiting, mayStart, {
      kind: 'checked',
      verdict: { kind: 'there', host: 'h2' },
      tookMs: 100,
    });
    expect(life.ended).toMatchObject({ type: 'completed', outcome: 'alreadyThere', host: 'h2', nova: null });
  });
});

describe('what the log says first', () => {
  it('leaves a task alone that no released plan has', () => {
    expect(new Life().when(logSays({ kind: 'unknown' })).command).toMatchObject({
      ...finished('done'),
      why: { code: 'unknown-task' },
    });
  });

  it('acknowledges an attempt that has ended', () => {
    expect(new Life().when(over).command).toMatchObject({ ...finished('done'), why: { code: 'already-ended' } });
  });

  it('publishes the next attempt that a predecessor announced and did not publish, then acknowledges', () => {
    const next = { attempt: 2, destination: 'h3', notBeforeMs: T0 };
    const life = new Life().when(logSays({ kind: 'ended', next }));
    expect(life.command).toEqual({ do: 'publishNext', next });
    expect(life.when({ kind: 'lostTrack' }).command).toEqual({ do: 'publishNext', next });
    expect(life.when({ kind: 'published' }).command).toMatchObject(finished('done'));
  });

  it('looks again when another has begun the attempt while it waited', () => {
    expect(new Life().when(waiting, { kind: 'overtaken' }).command).toEqual({ do: 'readLog' });
  });

  it('ends without a start what must not start', () => {
    const failure: JudgedFailure = {
      errorType: 'Cancelled',
      reason: { code: 'expired', text: 'too late' },
      cause: 'kronos',
      fault: 'none',
      hostAtFault: null,
    };
    const life = new Life().when(waiting, { kind: 'mustEnd', failure, expected: 55 });
    expect(life.command).toMatchObject({ do: 'appendEnded', expected: 55 });
    expect(life.ended).toMatchObject({ type: 'failed', errorType: 'Cancelled', started: false, next: null });
  });

  it('is requeued when it is delayed, and goes to another executor when this one stops', () => {
    expect(new Life().when(waiting, { kind: 'requeued', delayMs: 60 }).command).toMatchObject({
      do: 'finish',
      outcome: { kind: 'later', delayMs: 60 },
    });
    expect(new Life().when(waiting, { kind: 'draining' }).command).toMatchObject(finished('handOver'));
  });
});

describe('the start', () => {
  it('decides again after a conflict, without a second pre-flight while the first is fresh', () => {
    const life = new Life().when(waiting, mayStart, go, mayStart, { kind: 'conflict' });
    expect(life.command.do).toBe('awaitStart');
    life.when({ kind: 'mayStart', grant: { expected: 44, disturbed: false } });
    expect(life.command).toMatchObject({ do: 'appendStarted', expected: 44 });
  });

  it('checks again when the pre-flight is too old', () => {
    const life = new Life().when(waiting, mayStart, go, mayStart, { kind: 'conflict' }).pass(10 * SECOND + 1);
    expect(life.when(mayStart).command.do).toBe('check');
  });

  it('starts on a pre-flight that took long, as nothing fresher can be had', () => {
    const life = new Life().when(waiting, mayStart).later(30 * SECOND, go, mayStart);
    expect(life.command.do).toBe('appendStarted');
  });

  it('checks again when its hosts were touched meanwhile', () => {
    const life = new Life().when(waiting, mayStart, go, mayStart, { kind: 'conflict' });
    expect(life.when({ kind: 'mayStart', grant: { expected: 44, disturbed: true } }).command.do).toBe('check');
  });

  it('asks the log when nobody knows whether the start was written, and never asks Nova on a guess', () => {
    const life = new Life().when(waiting, mayStart, go, mayStart, { kind: 'lostTrack' });
    expect(life.command.do).toBe('readLog');
    expect(life.when(begun).command.do).toBe('look');
  });

  it('asks Nova within 10 s of the moment at which the start was begun to be written', () => {
    const life = new Life().when(waiting, mayStart, go, mayStart);
    const began = life.mono;
    life.later(3 * SECOND, { kind: 'appended', began });
    expect(life.command).toEqual({ do: 'post', by: began + 10 * SECOND, forced: false });
  });

  it('waits, longer each time, while an API does not answer pre-flight, and spends no attempt on it', () => {
    const unreachable: Body = { kind: 'checked', verdict: { kind: 'unreachable', text: 'down' }, tookMs: 100 };
    const life = new Life().when(waiting);
    const waits: number[] = [];
    for (let i = 0; i < 6; i += 1) {
      life.when(mayStart, unreachable);
      const { command } = life;
      if (command.do === 'awaitStart') waits.push(command.notBefore - life.mono);
    }
    expect(waits).toEqual([5000, 10000, 20000, 40000, 60000, 60000]);
  });

  it('starts nothing on a pre-flight whose reads took too long: it waits, and checks again', () => {
    const slow: Body = { ...go, tookMs: defaultTaskOptions.checkMaxMs + 1 };
    const life = new Life().when(waiting, mayStart, slow);
    expect(life.command).toMatchObject({ do: 'awaitStart', notBefore: life.mono + 5 * SECOND, checkedAt: null });
    expect(life.when(mayStart).command).toMatchObject({ do: 'check' });
    expect(life.when(go, mayStart).command).toMatchObject({ do: 'appendStarted' });
  });

  it('starts on a pre-flight of a slow API', () => {
    const slow: Body = { ...go, tookMs: defaultTaskOptions.checkMaxMs };
    expect(new Life().when(waiting, mayStart, slow, mayStart).command).toMatchObject({ do: 'appendStarted' });
  });

  it('only says what it would have done in a dry run', () => {
    const life = new Life({ dryRun: true }).when(waiting, mayStart, go);
    expect(life.command).toMatchObject({ do: 'appendEnded', ended: { type: 'skipped' } });
    expect(life.when(appended).command).toMatchObject(finished('done'));
  });

  it('carries a forced move from pre-flight to the event and the request', () => {
    const forced: Body = { kind: 'checked', verdict: { kind: 'go', newestMigrationId: 7, forced: true }, tookMs: 100 };
    const life = new Life().when(waiting, mayStart, forced, mayStart);
    expect(life.command).toMatchObject({ do: 'appendStarted', forced: true });
    expect(life.when(appended).command).toMatchObject({ do: 'post', forced: true });
  });
});

describe('the next attempt', () => {
  it('goes to the next alternate at once when the destination was at fault', () => {
    const life = new Life().when(waiting, mayStart, refusedBy({ fault: 'destination', hostAtFault: 'h2' }));
    expect(life.ended).toMatchObject({
      errorType: 'PreFlightError',
      hostAtFault: 'h2',
      started: false,
      next: { attempt: 2, destination: 'h3', notBeforeMs: T0 },
    });
    life.when(appended);
    expect(life.command).toMatchObject({ do: 'publishNext', next: { attempt: 2, destination: 'h3' } });
  });

  it('goes to the same destination after a growing wait when the infrastructure was at fault', () => {
    const waits = [1, 2, 3].map((attempt) => {
      const life = new Life({}, { attempt }).when(waiting, mayStart, refusedBy({ fault: 'infrastructure' }));
      const { ended } = life;
      return ended.type === 'failed' && ended.next !== null
        ? [ended.next.destination, ended.next.notBeforeMs - T0]
        : null;
    });
    expect(waits).toEqual([
      ['h2', 30000],
      ['h2', 60000],
      ['h2', 120000],
    ]);
  });

  it('does not follow the last one allowed', () => {
    const life = new Life({}, { attempt: 4 }).when(waiting, mayStart, refusedBy({ fault: 'infrastructure' }));
    expect(life.ended).toMatchObject({ next: null });
  });

  it('does not follow when there is no further alternate', () => {
    const last = { attempt: 3, destination: 'h4' };
    const life = new Life({}, last).when(waiting, mayStart, refusedBy({ fault: 'destination' }));
    expect(life.ended).toMatchObject({ next: null });
  });

  it('does not follow what no attempt can cure', () => {
    expect(new Life().when(waiting, mayStart, refusedBy({ fault: 'none' })).ended).toMatchObject({ next: null });
  });

  it('does not follow when it could not start before the plan expires', () => {
    const late = { notAfter: new Date(T0 + 20 * SECOND).toISOString() };
    const life = new Life({}, late).when(waiting, mayStart, refusedBy({ fault: 'infrastructure' }));
    expect(life.ended).toMatchObject({ next: null });
  });
});

describe('the answer to the request', () => {
  it('closes the attempt when the request surely did not reach Nova', () => {
    const life = claimed().when({ kind: 'posted', answer: { kind: 'notSent', text: 'refused connection' } });
    expect(life.ended).toMatchObject({
      errorType: 'NovaClientError',
      started: true,
      next: { attempt: 2, destination: 'h2' },
    });
  });

  it('looks for the migration when nobody knows whether the request arrived', () => {
    expect(claimed().when(unknown).command.do).toBe('look');
  });

  it.each([
    [400, 'Compute host h2 could not be found.', 'MigrationFailed', 'h3'],
    [400, 'Migration pre-check error: CPU does not match', 'MigrationFailed', 'h3'],
    [400, 'Additional properties are not allowed', 'NovaClientError', null],
    [400, 'Instance vm with vTPM cannot be migrated', 'MigrationFailed', null],
    [403, 'Policy does not allow it', 'NovaClientError', null],
    [404, 'Instance vm could not be found.', 'Cancelled', null],
    [409, "Cannot 'os-migrateLive' instance vm while it is in vm_state stopped", 'MigrationFailed', null],
    [409, "Cannot 'os-migrateLive' instance vm while it is in task_state image_snapshot", 'NovaClientError', 'h2'],
    [429, 'Too many requests', 'NovaClientError', 'h2'],
  ])('takes %i %s as %s, next to %s', (status, text, errorType, next) => {
    const { ended } = claimed().when(refused(status, text));
    expect(ended).toMatchObject({ type: 'failed', errorType, started: true });
    expect(ended.type === 'failed' ? (ended.next?.destination ?? null) : undefined).toBe(next);
  });

  it('looks when Nova says that the server is migrating: it may be this very request, sent twice by a proxy', () => {
    const life = claimed().when(
      refused(409, "Cannot 'os-migrateLive' instance vm while it is in task_state migrating"),
    );
    expect(life.command.do).toBe('look');
    life.when(runs);
    expect(life.command).toMatchObject({ do: 'appendObserved', migrationId: 8 });
  });
});

describe('which migration is ours', () => {
  it('is none that was there before the request, however complete it looks', () => {
    const life = posted().when(seen([row('completed', { id: 7 })], on('h1', { taskState: 'migrating' })));
    expect(life.stage).toBe('seeking');
  });

  it('is none of another type, source or destination', () => {
    const others = [
      row('running', { id: 9, type: 'resize' }),
      row('running', { id: 10, sourceCompute: 'h9' }),
      row('running', { id: 11, destCompute: 'h9' }),
    ];
    expect(posted().when(seen(others, on('h1', { taskState: 'migrating' }))).stage).toBe('seeking');
  });

  it('is a newer one off the source whose destination is not chosen yet', () => {
    expect(posted().when(seen([row('accepted', { id: 12, destCompute: null })])).command).toMatchObject({
      do: 'appendObserved',
      migrationId: 12,
      requestId: 'req-1',
    });
  });

  it('is the oldest of several', () => {
    expect(posted().when(seen([row('running', { id: 14 }), row('error', { id: 13 })])).command).toMatchObject({
      migrationId: 13,
    });
  });

  it('may take its time: an empty list is not an end, whatever the server shows', () => {
    const life = posted();
    for (let i = 0; i < 11; i += 1) life.later(5 * SECOND, idleWithout);
    expect(life.stage).toBe('seeking');
  });

  it('does not exist when after 60 s there is none, and the server is idle on its source', () => {
    const life = posted().later(60 * SECOND, idleWithout);
    expect(life.ended).toMatchObject({
      errorType: 'NovaClientError',
      reason: { code: 'no-migration', text: expect.stringContaining('after 60 s') },
      started: true,
      next: { attempt: 2, destination: 'h2' },
    });
  });

  it('is still to come while nova-conductor has not begun the request, for as long as one may be queued', () => {
    const accepted = seen([], on('h1'), { accepted: true });
    const life = posted()
      .later(MINUTE, accepted)
      .later(20 * MINUTE, accepted);
    expect(life.stage).toBe('seeking');
    expect(life.later(20 * MINUTE, accepted).ended).toMatchObject({ reason: { code: 'no-migration' } });
  });

  it('is still to come while Nova works on the server', () => {
    const life = posted().later(10 * MINUTE, seen([], on('h1', { taskState: 'migrating' })));
    expect(life.stage).toBe('seeking');
  });

  it('is not needed when the server has arrived all the same', () => {
    const life = posted().later(60 * SECOND, seen([], on('h2')));
    expect(life.ended).toMatchObject({ type: 'completed', host: 'h2', warnings: [{ code: 'no-migration-seen' }] });
  });

  it('was somebody else’s when the server is elsewhere', () => {
    const life = posted().later(60 * SECOND, seen([], on('h9')));
    expect(life.ended).toMatchObject({ ...fails('Cancelled', 'moved-by-others'), next: null });
  });

  it('ends with the server', () => {
    expect(posted().when(seen([], 'gone')).ended).toMatchObject({ errorType: 'Cancelled', next: null });
    expect(running().when(seen([], 'gone')).ended).toMatchObject({ reason: { code: 'server-gone' } });
  });
});

describe('a successor', () => {
  it('asks nothing of Nova for an attempt that has begun: it looks', () => {
    const life = new Life({}, {}, 2).when(begun);
    expect(life.command).toMatchObject({ do: 'look', migrationId: null });
  });

  it('follows the migration that its predecessor had found', () => {
    const life = new Life({}, {}, 2).when(
      logSays({ kind: 'started', newestMigrationId: 7, migrationId: 8, requestId: 'req-1', stop: null }),
    );
    expect(life.command).toMatchObject({ do: 'look', migrationId: 8 });
    expect(life.when(arrived).ended).toMatchObject({ type: 'completed' });
  });

  it('closes the attempt after 60 s of its own, when Nova has nothing', () => {
    const life = new Life({}, {}, 2).later(30 * MINUTE, begun);
    expect(life.later(59 * SECOND, idleWithout).stage).toBe('seeking');
    expect(life.later(1 * SECOND, idleWithout).ended).toMatchObject({
      errorType: 'NovaClientError',
      next: { attempt: 2 },
    });
  });

  it('knows by the log why its predecessor asked for an abort, and goes on with it', () => {
    const stop = { cause: 'deadline', limitMs: 5, text: 'late' } as const;
    const taken = () =>
      new Life({}, {}, 2).when(
        logSays({ kind: 'started', newestMigrationId: 7, migrationId: 8, requestId: null, stop }),
      );
    expect(taken().when(runs).command).toMatchObject({ do: 'abort', migrationId: 8 });
    expect(taken().when(wasCancelled).ended).toMatchObject({ ...fails('MigrationTimeout', 'deadline'), next: null });
  });

  it('hands over in its turn when the executor stops', () => {
    expect(running().when({ kind: 'draining' }).command).toMatchObject({ outcome: { kind: 'handOver' } });
    expect(posted().when({ kind: 'draining' }).command).toMatchObject({ outcome: { kind: 'handOver' } });
  });
});

describe('the end of a migration', () => {
  it('is not the absence of it from a list', () => {
    expect(running().when(seen([], on('h2'))).stage).toBe('following');
  });

  it('is not an unknown status', () => {
    expect(running().when(seen([row('thinking')])).stage).toBe('following');
  });

  it('is not an API that does not answer; the looks become rarer', () => {
    const life = running();
    const waits: number[] = [];
    for (let i = 0; i < 5; i += 1) {
      life.when(blind);
      const { command } = life;
      if (command.do === 'look') waits.push(command.afterMs);
    }
    expect(waits).toEqual([10000, 20000, 40000, 60000, 60000]);
    expect(life.when(runs).command).toMatchObject({ do: 'look', afterMs: 5000 });
  });

  it('needs the server, too', () => {
    expect(running().when(seen([row('completed')])).command).toMatchObject({ do: 'look', afterMs: 1000 });
  });

  it('trusts the host and not the status: error after the switch-over is a move done, with Nova’s words as a warning', () => {
    const life = running().when(seen([row('error')], on('h2')));
    expect(life.command.do).toBe('explain');
    life.when(told({ text: 'Timed out waiting for a reply', event: 'compute_post_live_migration', host: null }));
    expect(life.ended).toMatchObject({
      type: 'completed',
      host: 'h2',
      warnings: [{ code: 'ended-otherwise', text: expect.stringContaining('Timed out waiting for a reply') }],
      nova: { reason: 'Timed out waiting for a reply' },
    });
  });

  it.each(['error', 'completed'])('says of a server in ERROR on its destination that it is: %s', (status) => {
    const life = running().when(seen([row(status)], on('h2', { status: 'ERROR', vmState: 'error' })));
    life.when(told(null, { hosts: { source: 'up', destination: 'down' } }));
    const { ended } = life;
    if (ended.type !== 'completed') throw new Error('the host is not trusted');
    expect(ended.warnings.map(({ code }) => code)).toEqual(
      status === 'error' ? ['ended-otherwise', 'server-in-error'] : ['server-in-error'],
    );
    expect(ended.warnings.at(-1)?.text).toBe('the server is in ERROR on h2, whose nova-compute is down');
  });

  it('warns of a server that is neither ACTIVE nor in ERROR', () => {
    const life = running().when(
      seen([row('completed')], on('h2', { status: 'SHUTOFF', vmState: 'stopped' })),
      told(null),
    );
    expect(life.ended).toMatchObject({ type: 'completed', warnings: [{ code: 'server-not-up' }] });
  });

  it('waits for Nova to agree with itself when completed and host differ, then says so', () => {
    const life = running().when(seen([row('completed')], on('h1')));
    expect(life.stage).toBe('following');
    life.later(60 * SECOND, seen([row('completed')], on('h1')));
    expect(life.ended).toMatchObject({ ...fails('MigrationFailed', 'host-did-not-change'), next: null });
  });

  it('is a completed move when the server was moved on by somebody since', () => {
    const life = running().when(seen([row('running', { id: 9 }), row('completed')], on('h1')));
    expect(life.ended).toMatchObject({ type: 'completed', host: 'h1', warnings: [{ code: 'moved-since' }] });
  });

  it('waits for the roll-back to end', () => {
    const life = running().when(seen([row('error')], on('h1', { taskState: 'migrating' })));
    expect(life.stage).toBe('following');
    expect(life.when(seen([row('error')], on('h1'))).stage).toBe('explaining');
  });

  it('was somebody’s doing when it is cancelled and nobody here asked for it', () => {
    expect(running().when(wasCancelled).ended).toMatchObject({
      ...fails('Cancelled', 'aborted-by-others'),
      next: null,
    });
  });

  it('is nothing of ours when the server is on a third host', () => {
    expect(running().when(seen([row('failed')], on('h9'))).ended).toMatchObject(fails('Cancelled', 'moved-by-others'));
  });
});

describe('why a migration failed', () => {
  const failed = (text: string, event: string | null, life = running()): Ended =>
    life.when(seen([row('failed')], on('h1')), told({ text, event, host: null })).ended;

  it('is the destination’s fault when the hypervisor failed: the next alternate at once', () => {
    expect(failed('Live migration failed.', 'compute_live_migration')).toMatchObject({
      errorType: 'MigrationFailed',
      hostAtFault: 'h2',
      nova: { reason: 'Live migration failed.' },
      next: { destination: 'h3', notBeforeMs: T0 },
    });
  });

  it('is the scheduler’s refusal: the next alternate at once, and no host is charged', () => {
    expect(failed('No valid host was found.', 'conductor_live_migrate_instance')).toMatchObject({
      reason: { code: 'no-valid-host' },
      cause: 'scheduler',
      hostAtFault: null,
      next: { destination: 'h3' },
    });
  });

  it('is the server’s own state: no alternate, and no host is charged', () => {
    const text = 'Instance i in power_state pending. Cannot live migrate while the instance is in this state.';
    expect(failed(text, 'conductor_live_migrate_instance')).toMatchObject({
      reason: { code: 'server-refused' },
      cause: 'server',
      hostAtFault: null,
      next: null,
    });
  });

  it('is the infrastructure’s when Nova lost its message bus: the same destination, later', () => {
    expect(failed('Timed out waiting for a reply to message ID 1', 'conductor_live_migrate_instance')).toMatchObject({
      errorType: 'NovaClientError',
      hostAtFault: null,
      next: { destination: 'h2', notBeforeMs: T0 + 30000 },
    });
  });

  it('is final when the server went to ERROR on its source', () => {
    const life = running().when(seen([row('error')], on('h1', { status: 'ERROR', vmState: 'error' })));
    life.when(told(null));
    expect(life.ended).toMatchObject({ ...fails('MigrationFailed', 'server-in-error'), next: null });
  });

  it('is asked for a few times, and goes without an answer in the end', () => {
    const life = running().when(seen([row('failed')], on('h1')));
    for (let i = 0; i < 4; i += 1) life.when(blind);
    expect(life.command).toMatchObject({ do: 'explain', afterMs: 5000 });
    expect(life.when(blind).ended).toMatchObject({ reason: { code: 'migration-failed' } });
  });
});

describe('deadlines', () => {
  it('count from running, not from the request', () => {
    const life = posted();
    life.later(20 * MINUTE, queues, appended);
    life.later(5 * MINUTE, runs);
    expect(life.later(10 * MINUTE - 1, runs).stage).toBe('following');
    expect(life.later(1, runs).abort).toMatchObject({ do: 'abort', migrationId: 8 });
  });

  it('grow with the memory and the local disk', () => {
    const life = running(new Life({}, { ramMb: 20 * 1024, diskGb: 10 }));
    expect(life.later(30 * MINUTE - 1, runs).stage).toBe('following');
    expect(life.later(1, runs).abort.do).toBe('abort');
  });

  it('grow when the bytes come slowly and steadily', () => {
    const life = running();
    for (let minute = 1; minute <= 15; minute += 1)
      life.later(MINUTE, seen([row('running')], null, { remaining: 1000 - minute * 40 }));
    expect(life.stage).toBe('following');
  });

  it('have one of their own for Nova’s queue: ended there, the same destination later', () => {
    const life = posted().when(queues, appended);
    life.later(30 * MINUTE, queues);
    expect(life.abort.do).toBe('abort');
    life.when(abortAccepted, wasCancelled);
    expect(life.ended).toMatchObject({ ...fails('MigrationTimeout', 'queue'), next: { destination: 'h2' } });
  });

  it('are past when nothing is copied any more', () => {
    const life = running().when(seen([row('running')], null, { remaining: 500 }));
    life.later(5 * MINUTE, seen([row('running')], null, { remaining: 400 }));
    life.later(9 * MINUTE, seen([row('running')], null, { remaining: 450 }));
    expect(life.stage).toBe('following');
    expect(life.later(MINUTE, seen([row('running')], null, { remaining: 400 })).abort.do).toBe('abort');
  });

  it('are waited out up to the hard limit with on_deadline=wait', () => {
    const life = running(new Life({ onDeadline: 'wait' }));
    expect(life.later(719 * MINUTE, runs).stage).toBe('following');
    expect(life.later(MINUTE, runs).abort.do).toBe('abort');
  });

  it('end as MigrationTimeout, for good, once the move is seen ended', () => {
    const life = running().later(10 * MINUTE, runs, appended, abortAccepted);
    expect(life.stage).toBe('following');
    expect(life.when(wasCancelled).ended).toMatchObject({ ...fails('MigrationTimeout', 'deadline'), next: null });
  });

  it('lose to a migration that completes first', () => {
    const life = running().later(10 * MINUTE, runs, appended, abortAccepted);
    expect(life.when(arrived).ended).toMatchObject({ type: 'completed', warnings: [] });
  });
});

describe('an abort', () => {
  const stopped = (status = 'running') => posted().when(seen([row(status)], null, { stopAsked: true }), appended);

  it('is asked of Nova when an operator asks for it', () => {
    const life = stopped().when(seen([row('running')], null, { stopAsked: true }));
    // Not a byte of it leaves later than this.
    expect(life.abort).toEqual({ do: 'abort', migrationId: 8, by: life.mono + defaultTaskOptions.postWindowMs });
  });

  it('is on the log with its reason before Nova is asked', () => {
    const life = stopped().when(runs);
    expect(life.command).toEqual({ do: 'appendAbortRequested', stop: { cause: 'operator' } });
    expect(life.when({ kind: 'lostTrack' }).command.do).toBe('appendAbortRequested');
    expect(life.when({ kind: 'conflict' }).command.do).toBe('abort');
  });

  it.each(['queued', 'preparing', 'running'])('can be asked for while Nova says %s', (status) => {
    expect(stopped().when(seen([row(status)])).abort.do).toBe('abort');
  });

  it.each(['accepted', 'running (post-copy)'])('waits while Nova says %s, which cannot be aborted', (status) => {
    expect(stopped().when(seen([row(status)])).command.do).toBe('look');
  });

  it('that Nova refuses does not end the following', () => {
    const life = stopped().when(runs, appended, refusedAbort, appended);
    expect(life.when(runs).command.do).toBe('look');
    life.when(arrived);
    expect(life.ended).toMatchObject({ type: 'completed' });
  });

  it('that Nova refused is asked for again when the status has changed, or after a while', () => {
    const life = stopped('queued').when(queues, appended, refusedAbort, appended);
    expect(life.when(queues).command.do).toBe('look');
    expect(life.when(runs).abort.do).toBe('abort');
    life.when(abortAccepted);
    expect(life.when(runs).command.do).toBe('look');
    expect(life.later(30 * SECOND, runs).abort.do).toBe('abort');
  });

  it('by an operator ends as Cancelled, without a further attempt', () => {
    const life = stopped().when(runs, appended, abortAccepted);
    expect(life.when(wasCancelled).ended).toMatchObject({ ...fails('Cancelled', 'operator'), next: null });
  });

  it('of a move that fails by itself meanwhile ends with Nova’s reason, and without a further attempt', () => {
    const life = stopped().when(seen([row('failed')], on('h1')), told({ text: 'no route', event: null, host: null }));
    expect(life.ended).toMatchObject({
      errorType: 'MigrationFailed',
      reason: { text: expect.stringContaining('no route') },
      next: null,
    });
  });

  it('that was accepted is no reason: what ends in error was not aborted', () => {
    const life = running();
    life.later(TOO_LONG, runs);
    expect(life.abort.do).toBe('abort');
    life.when(abortAccepted, seen([row('error')], on('h1')));
    life.when(told(null));
    expect(life.ended).toMatchObject(fails('NovaClientError', 'compute-restarted'));
  });

  it('that Nova refuses is on the log once, in Nova’s own words', () => {
    const life = stopped().when(runs, appended, refusedAbort);
    const refusal = { status: 409, text: 'it is in task_state None' };
    expect(life.command).toEqual({ do: 'appendAbortRefused', migrationId: 8, refusal });
    expect(life.when({ kind: 'lostTrack' }).command.do).toBe('appendAbortRefused');
    expect(life.when(appended).stage).toBe('following');
    life.later(30 * SECOND, runs, refusedAbort);
    expect(life.stage).toBe('following');
  });

  it('of an attempt that Nova never made into a migration ends it without a further one', () => {
    const life = posted().later(60 * SECOND, seen([], on('h1'), { stopAsked: true }));
    expect(life.ended).toMatchObject({ errorType: 'Cancelled', next: null });
  });
});

describe('a migration that Nova has abandoned', () => {
  const idle = (status: string, host = 'h1', changes: Partial<ServerFacts> = {}) =>
    seen([row(status)], on(host, changes));
  /** Queued, its server idle for longer than Nova ever takes. */
  const forgotten = (host = 'h1') => {
    const life = posted().when(queues, appended);
    return life.when(idle('queued', host)).later(MINUTE, idle('queued', host));
  };
  const asked = (host?: string) => {
    const life = forgotten(host);
    expect(life.command).toMatchObject({ do: 'appendAbortRequested', stop: { cause: 'abandoned' } });
    return life.when(appended);
  };
  const refused = (host?: string) => asked(host).when(refusedAbort, appended);

  it('shows by an idle server and an abort that Nova refuses: on its source, it ends without quarantine or retry', () => {
    expect(refused().when(idle('queued')).ended).toMatchObject({
      errorType: 'NovaClientError',
      reason: { code: 'abandoned', text: expect.stringContaining('still calls migration 8 queued') },
      next: null,
      started: true,
    });
  });

  it('is not shown by an idle server while nova-conductor has the request, for as long as one may be queued', () => {
    const life = posted().when(seen([row('accepted')]), appended);
    life.when(idle('accepted')).later(20 * MINUTE, idle('accepted'));
    expect(life.command).toMatchObject({ do: 'look' });
    expect(life.later(20 * MINUTE, idle('accepted')).command).toMatchObject({
      do: 'appendAbortRequested',
      stop: { cause: 'abandoned' },
    });
  });

  it('ends as done, with a warning, when its server is on its destination', () => {
    expect(refused('h2').when(idle('queued', 'h2')).ended).toMatchObject({
      type: 'completed',
      host: 'h2',
      warnings: [{ code: 'abandoned' }],
    });
  });

  it('is named when Nova refuses the abort that an operator asked for', () => {
    const life = posted().when(seen([row('queued')], on('h1'), { stopAsked: true }), appended);
    life.when(seen([row('queued')], on('h1'), { stopAsked: true }), appended);
    life.when(refusedAbort, appended).pass(MINUTE);
    expect(life.when(idle('queued')).ended).toMatchObject({
      errorType: 'Cancelled',
      reason: { code: 'abandoned', text: expect.stringContaining('refuses to abort it') },
    });
  });

  it('is not one whose abort Nova accepts, or does not answer', () => {
    for (const answer of ['accepted', 'unknown'] as const)
      expect(asked().when({ kind: 'abortAnswered', answer }, idle('queued')).stage).toBe('following');
  });

  it('is not one that has moved on since', () => {
    expect(refused().when(idle('preparing')).stage).not.toBe('ending');
  });

  it('is not one whose server is at work, is not seen, or has no host', () => {
    for (const server of [on('h1', { taskState: 'migrating' }), null, { ...on('h1'), host: null }])
      expect(refused().when(seen([row('queued')], server)).stage).toBe('following');
  });

  it('is not one that copies: an administrator may have reset the state of its server', () => {
    const life = running();
    for (let remaining = 900; remaining > 0; remaining -= 100)
      life.later(20 * SECOND, seen([row('running')], on('h1'), { remaining }));
    expect(life.command.do).toBe('look');
  });

  it('whose row is lost ends by the host of its idle server, after ten minutes', () => {
    const lost = () =>
      running()
        .when(idleWithout)
        .later(9 * MINUTE, idleWithout);
    expect(lost().stage).toBe('following');
    expect(lost().later(MINUTE, idleWithout).ended).toMatchObject({
      errorType: 'NovaClientError',
      reason: { code: 'abandoned', text: expect.stringContaining('no longer lists migration 8') },
    });
    expect(
      lost()
        .when(seen([], on('h2')))
        .later(MINUTE, seen([], on('h2'))).ended,
    ).toMatchObject({ type: 'completed', host: 'h2', warnings: [{ code: 'abandoned' }] });
  });

  it('whose row is lost before it was queued ends after ten minutes, too', () => {
    const lost = posted()
      .when(seen([row('accepted')]), appended)
      .when(idleWithout);
    expect(lost.later(9 * MINUTE, idleWithout).stage).toBe('following');
    expect(lost.later(MINUTE, idleWithout).ended).toMatchObject({ reason: { code: 'abandoned' } });
  });

  it('whose row is there again, or whose server is at work, goes on', () => {
    const life = running()
      .when(idleWithout)
      .later(9 * MINUTE, seen([row('running')], on('h1', { taskState: 'migrating' })));
    expect(life.later(2 * MINUTE, seen([], on('h1', { taskState: 'migrating' }))).stage).toBe('following');
    expect(life.later(11 * MINUTE, seen([], on('h1', { taskState: 'migrating' }))).stage).toBe('following');
  });
});

describe('a task that an operator closes', () => {
  const asked = { by: 'ada', comment: 'row lost' };
  const working = on('h1', { taskState: 'migrating' });
  const closing = seen([row('running')], working, { closeAsked: asked });
  const unanswered = { ...blind, orders: { ...silence, closeAsked: asked } } as Body;
  const cellDown = seen([row('running')], null, { closeAsked: asked });

  it.each([
    ['Nova works on its server', closing],
    ['Nova does not answer', unanswered],
    ['the cell of its server does not answer', cellDown],
  ])('keeps its slots while %s, and ends when Nova shows that nothing works on it', (_, look) => {
    const life = running().when(closing);
    expect(life.abort.do).toBe('abort');
    life.when({ kind: 'abortAnswered', answer: 'unknown' });
    for (let i = 0; i < 20; i++) {
      life.later(MINUTE, look);
      expect(['following', 'aborting']).toContain(life.stage);
      // It is aborted again after a while.
      if (life.stage === 'aborting') life.when(abortAccepted);
    }
    life.pass(MINUTE);
    expect(life.when(seen([row('running')], on('h1'), { closeAsked: asked })).ended).toMatchObject({
      errorType: 'Cancelled',
      reason: { code: 'closed', text: expect.stringContaining('closed by ada (row lost)') },
    });
  });

  it('keeps its slots after Nova has refused to abort what it works on', () => {
    const life = running().when(closing);
    expect(life.abort.do).toBe('abort');
    life.when(refusedAbort, appended);
    expect(life.when(closing).stage).toBe('following');
    expect(life.later(10 * MINUTE, closing).stage).toBe('aborting');
  });

  it('is not ended while Nova has its server on the destination and has not ended the migration', () => {
    const life = running().when(seen([row('running')], on('h2'), { closeAsked: asked }));
    expect(life.abort.do).toBe('abort');
    life.when(abortAccepted, seen([row('running')], on('h2'), { closeAsked: asked }));
    expect(life.stage).toBe('following');
    life.when(seen([row('completed')], on('h2'), { closeAsked: asked }));
    expect(life.ended).toMatchObject({ type: 'completed', warnings: [] });
  });

  it('is not ended when its server is idle on the source but Nova has not ended the migration', () => {
    const letGo = seen([row('running')], on('h1'), { closeAsked: asked });
    const followed = () => {
      const life = running().when(letGo);
      expect(life.abort.do).toBe('abort');
      return life.when(refusedAbort, appended);
    };
    expect(followed().when(seen([row('failed')], on('h1'), { closeAsked: asked })).stage).toBe('explaining');
    expect(followed().when(letGo).stage).toBe('following');
    expect(followed().later(31 * SECOND, letGo).ended).toMatchObject({ reason: { code: 'closed' } });
  });

  it('is not ended while Nova may still begin its migration', () => {
    const life = posted().when(seen([], on('h1'), { closeAsked: asked }));
    expect(life.stage).toBe('seeking');
    expect(life.later(2 * MINUTE, seen([], on('h1'), { closeAsked: asked })).ended).toMatchObject(
      fails('Cancelled', 'operator'),
    );
  });
});

describe('a task that an operator closes with force', () => {
  const closeAsked = { by: 'ada', comment: 'row lost', force: true as const };

  const working = on('h1', { taskState: 'migrating' });
  const closing = seen([row('running')], working, { closeAsked });
  const closed = { reason: { code: 'closed', text: expect.stringContaining('Nova called migration 8 running') } };

  it('ends as Cancelled, in the person’s words, where nothing else ends it', () => {
    const unanswered = { ...blind, orders: { ...silence, closeAsked } } as Body;
    const idle = running().when(seen([row('running')], on('h1'), { closeAsked }));
    expect(idle.abort.do).toBe('abort');
    idle.when(refusedAbort, appended).later(31 * SECOND, seen([row('running')], on('h1'), { closeAsked }));
    for (const life of [idle, running().when(unanswered, unanswered), running().when(blind, unanswered)])
      expect(life.ended).toMatchObject({
        errorType: 'Cancelled',
        reason: { code: 'closed', text: expect.stringContaining('closed by ada (row lost)') },
        next: null,
        started: true,
      });
    expect(posted().when(seen([], on('h1'), { closeAsked })).ended).toMatchObject({ reason: { code: 'closed' } });
  });

  it.each([
    [seen([row('cancelled')], on('h1'), { closeAsked }), fails('Cancelled', 'operator')],
    [seen([row('completed')], on('h2'), { closeAsked }), { type: 'completed', host: 'h2', warnings: [] }],
  ])('is aborted first while Nova works on it, and ends with the migration', (last, ended) => {
    const life = running().when(closing);
    expect(life.abort.do).toBe('abort');
    life.when(abortAccepted).later(2 * SECOND, closing);
    expect(life.stage).toBe('following');
    expect(life.when(last).ended).toMatchObject(ended);
  });

  it('is not asked about again when Nova does not say why it failed', () => {
    const life = running().when(seen([row('failed')], on('h1')));
    expect(life.when(blind).stage).toBe('explaining');
    const unanswered = { ...blind, orders: { ...silence, closeAsked } } as Body;
    expect(life.when(unanswered).ended).toMatchObject({ reason: { code: 'migration-failed' }, next: null });
    const answered = { ...told(null), orders: { ...silence, stopAsked: true } } as Body;
    const stopped = running().when(seen([row('failed')], on('h1')), answered);
    expect(stopped.ended).toMatchObject({ reason: { code: 'migration-failed' }, next: null });
  });

  it('does not end at one look that Nova does not answer', () => {
    const life = running().when({ ...blind, orders: { ...silence, closeAsked } });
    expect(life.stage).toBe('following');
    expect(life.when(closing).abort.do).toBe('abort');
  });

  it('ends with the migration where Nova ends it between the reads of its row and of the server', () => {
    const life = running().when(closing);
    expect(life.abort.do).toBe('abort');
    life.when(abortAccepted).when(seen([row('running')], on('h1'), { closeAsked }));
    expect(life.stage).toBe('following');
    const last = seen([row('cancelled')], on('h1'), { closeAsked });
    expect(life.when(last).ended).toMatchObject(fails('Cancelled', 'operator'));
  });

  it('ends at once when Nova refuses to abort it', () => {
    const life = running().when(closing);
    expect(life.abort.do).toBe('abort');
    life.when(refusedAbort, appended);
    expect(life.when(closing).ended).toMatchObject(closed);
  });

  it('ends after a while when Nova does not end what it works on', () => {
    const life = running().when(closing);
    expect(life.abort.do).toBe('abort');
    life.when(abortAccepted).later(29 * SECOND, closing);
    expect(life.stage).not.toBe('ending');
    const ignored = running().when(closing);
    expect(ignored.abort.do).toBe('abort');
    ignored.when(abortAccepted).later(31 * SECOND, closing);
    expect(ignored.ended).toMatchObject(closed);
  });

  it('that Nova has not begun is aborted when it begins, and ends after a while when it does not', () => {
    const waits = seen([], working, { closeAsked });
    expect(posted().when(waits, closing).stage).toBe('noting');
    const life = posted()
      .when(waits)
      .later(29 * SECOND, waits);
    expect(life.stage).toBe('seeking');
    expect(life.later(2 * SECOND, waits).ended).toMatchObject({ reason: { code: 'closed' } });
  });

  it('ends as done, with a warning, when its server is on its destination and Nova does not end the migration', () => {
    const there = seen([row('running')], on('h2', { taskState: 'migrating' }), { closeAsked });
    const life = running().when(there);
    expect(life.abort.do).toBe('abort');
    life.when(abortAccepted, there);
    expect(life.stage).toBe('following');
    life.later(31 * SECOND, there);
    expect(life.ended).toMatchObject({ type: 'completed', warnings: [{ code: 'closed' }, { code: 'server-not-up' }] });
  });

  it('is put down when another has ended it', () => {
    const life = running().when(seen([row('running')], null, { ended: true }));
    expect(life.command.do).toBe('readLog');
    expect(life.when(over).command).toMatchObject({ do: 'finish' });
  });
});

describe('a compute that crashed', () => {
  const ended = (account: Partial<Account>, status = 'failed', server: Partial<ServerFacts> = {}): Ended =>
    running().when(seen([row(status)], on('h1', server)), told(null, account)).ended;

  it('as destination is left out, and the next alternate taken at once, without quarantine', () => {
    expect(ended({ hosts: { source: 'up', destination: 'down' } })).toMatchObject({
      ...fails('NovaClientError', 'host-down'),
      hostAtFault: 'h2',
      next: { destination: 'h3', notBeforeMs: T0 },
    });
  });

  it('as source is waited for', () => {
    expect(ended({ hosts: { source: 'down', destination: 'up' } })).toMatchObject({
      ...fails('NovaClientError', 'vm-source-down'),
      hostAtFault: null,
      next: { destination: 'h2' },
    });
  });

  it('on both ends at once charges no host: what both report through is down', () => {
    expect(ended({ hosts: { source: 'down', destination: 'down' } })).toMatchObject({
      errorType: 'NovaClientError',
      reason: { code: 'nova-internal', text: expect.stringContaining('the message bus or nova-conductor') },
      cause: 'nova',
      hostAtFault: null,
      next: { destination: 'h2' },
    });
  });

  it('and is back shows by an error without a reason, the server well', () => {
    expect(ended({}, 'error')).toMatchObject(fails('NovaClientError', 'compute-restarted'));
  });

  it('is not what a failure shows, nor an error with a reason, nor a Nova that does not say', () => {
    expect(ended({}, 'failed')).toMatchObject({ errorType: 'MigrationFailed', hostAtFault: 'h2' });
    expect(ended({ asked: false }, 'error')).toMatchObject({ errorType: 'MigrationFailed', hostAtFault: 'h2' });
    const story = { text: 'no route', event: null, host: null };
    expect(ended({ story }, 'error')).toMatchObject({ errorType: 'MigrationFailed', hostAtFault: 'h2' });
  });

  it('that leaves its server in ERROR on the source ends the task, without quarantine', () => {
    const server = { status: 'ERROR', vmState: 'error' };
    expect(ended({ hosts: { source: 'down', destination: 'up' } }, 'error', server)).toMatchObject({
      ...fails('NovaClientError', 'server-in-error'),
      next: null,
    });
    expect(ended({}, 'error', server)).toMatchObject(fails('MigrationFailed', 'server-in-error'));
  });
});

describe('writing the outcome', () => {
  const done = () => running().when(arrived);

  it('expects the sequence of the log as it stands, and reads again after a conflict', () => {
    const life = done().when(logSays({ kind: 'started', ...nothingSeen }, 60));
    expect(life.command).toMatchObject({ do: 'appendEnded', expected: 60 });
    expect(life.when({ kind: 'conflict' }).command.do).toBe('readLog');
    expect(life.when(logSays({ kind: 'started', ...nothingSeen }, 63)).command).toMatchObject({ expected: 63 });
  });

  it('reads again when nobody knows whether it was written, and is content when it was', () => {
    const life = done().when(begun, { kind: 'lostTrack' });
    expect(life.when(over).command).toMatchObject({ do: 'finish', why: { code: 'already-ended' } });
  });

  it('does not end without a start what another has started since', () => {
    const life = new Life().when(waiting, mayStart, refusedBy({ fault: 'none' }), { kind: 'conflict' });
    life.when(begun);
    expect(life.command.do).toBe('look');
  });

  it('publishes what another announced, when the other was first', () => {
    const next = { attempt: 2, destination: 'h3', notBeforeMs: T0 };
    expect(done().when(logSays({ kind: 'ended', next })).command).toEqual({ do: 'publishNext', next });
  });
});

describe('a task that comes again and again', () => {
  const turn = (tries: number, agoMs = 0): Body => ({ kind: 'turn', tries, agoMs });

  it('is worked on alone, and not before the log says so', () => {
    expect(new Life({}, {}, 5).when(waiting, mayStart).stage).toBe('checking');
    const life = new Life({}, {}, 6).when(waiting, mayStart);
    expect(life.command).toEqual({ do: 'awaitTurn', started: false });
    expect(life.when(turn(2)).command).toEqual({ do: 'appendSuspected', deliveries: 6, tries: 3 });
    expect(life.when({ kind: 'lostTrack' }).command.do).toBe('appendSuspected');
    expect(life.when(appended).command.do).toBe('readLog');
    expect(life.when(waiting, mayStart).command.do).toBe('check');
  });

  it('is under suspicion when its attempt is under way, too', () => {
    const life = new Life({}, {}, 6).when(begun);
    expect(life.command).toEqual({ do: 'awaitTurn', started: true });
    expect(life.when(turn(0), appended, begun).stage).toBe('seeking');
  });

  it('is a dead letter when its executor ended each time it was begun alone', () => {
    const life = new Life({}, {}, 11).when(waiting, mayStart, turn(6));
    expect(life.when(waiting).ended).toMatchObject({ errorType: 'DeadLetter', started: false, next: null });
  });

  it('is none for what another task did before that one was suspected itself', () => {
    const { suspectDeliveries } = defaultTaskOptions;
    const life = new Life({}, {}, 11).when(waiting, mayStart, turn(suspectDeliveries));
    expect(life.command).toMatchObject({ do: 'appendSuspected', tries: suspectDeliveries + 1 });
  });

  it('keeps its slots when it is started, and is tried again less and less often', () => {
    const after = (tries: number, agoMs: number) => new Life({}, {}, 11).when(begun, turn(tries, agoMs)).command;
    const later = (delayMs: number) => ({
      do: 'finish',
      outcome: { kind: 'later', delayMs },
      why: { code: 'suspected' },
    });
    expect(after(5, 0)).toMatchObject({ do: 'appendSuspected', tries: 6 });
    expect(after(6, 15_000)).toMatchObject(later(45_000));
    expect(after(6, 60_000)).toMatchObject({ do: 'appendSuspected', tries: 7 });
    expect(after(8, 0)).toMatchObject(later(240_000));
    expect(after(100, 0)).toMatchObject(later(3_600_000));
    expect(after(100, 3_600_000)).toMatchObject({ do: 'appendSuspected', tries: 101 });
    // By a clock that is two hours behind.
    expect(after(100, -7_200_000)).toMatchObject(later(3_600_000));
  });

  it('is none for the number of its deliveries', () => {
    const life = new Life({}, {}, 10_000).when(waiting, mayStart, turn(0), appended, waiting, mayStart);
    expect(life.stage).toBe('checking');
  });

  it('is no dead letter when it has ended meanwhile', () => {
    const life = new Life({}, {}, 11).when(waiting, mayStart, turn(6), over);
    expect(life.command).toMatchObject(finished('done'));
  });

  it('waits for its turn again after it gave it up, and hands over when the executor stops', () => {
    const life = new Life({}, {}, 6).when(waiting, mayStart, turn(0), appended, waiting, { kind: 'yielded' });
    expect(life.when(mayStart).command.do).toBe('awaitTurn');
    expect(life.when({ kind: 'draining' }).command).toMatchObject(finished('handOver'));
  });
});

it('a fact that answers another question is a mistake of the shell', () => {
  expect(() => new Life().when(accepted)).toThrow(UnexpectedFact);
  expect(() => running().when(go)).toThrow('a task that is following cannot take the fact checked');
});
