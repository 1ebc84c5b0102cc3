import type { Clock } from '@kronos/clock';
import { manualClock } from '@kronos/clock/testing';
import { parseMessage } from '@kronos/contracts';
import {
  BadRequest,
  Conflict,
  HttpError,
  MicroversionUnsupported,
  NotSent,
  Timeout,
  Unauthorized,
  Unreachable,
} from '@kronos/openstack';
import { aggregateState, fold, initialLogState } from '@kronos/projections';
import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { SAMPLE_MS, sampleTask } from '../testing/sample.ts';
import { actWithin, postOnce } from './act.ts';
import { deadLetterEvent } from './deadLetter.ts';
import {
  abortRequestedEvent,
  endedEvent,
  nextRequest,
  observedEvent,
  startedEvent,
  stopOf,
  suspectedEvent,
} from './events.ts';
import { providers } from './providers.ts';
import { servedAggregates } from './service.ts';
import type { Ended, Stop } from './taskFacts.ts';

const by = { service: 'executor' as const, instance: 'e1', version: '1' };
const origin = { by, correlationId: 'p', nowMs: SAMPLE_MS };

describe('the one request of an attempt', () => {
  const place = { service: 'nova', method: 'POST', url: 'http://nova/servers/vm/action' };
  const request = { serverId: 'vm', host: 'h2', force: false };
  const options = { signal: new AbortController().signal, checkSend: () => null };
  const answerTo = (thrown: unknown) => postOnce({ liveMigrate: () => Promise.reject(thrown) }, request, options);

  it.each<[string, unknown, object]>([
    ['a refusal', new BadRequest(place, 400, 'no'), { kind: 'refused', status: 400, text: 'no' }],
    ['a conflict', new Conflict(place, 409, 'busy'), { kind: 'refused', status: 409 }],
    ['too many requests', new HttpError(place, 429, 'slow down'), { kind: 'refused', status: 429 }],
    [
      'credentials refused',
      new Unauthorized('nova', { authUrl: 'u', user: 'admin' }, 'no'),
      { kind: 'refused', status: 401 },
    ],
    ['no connection', new Unreachable(place, 'refused', { maybeSent: false }), { kind: 'notSent' }],
    ['no connection in time', new Timeout(place, 'connect', 5, { maybeSent: false }), { kind: 'notSent' }],
    ['refused when it was about to be written', new NotSent(place, 'too late'), { kind: 'notSent', text: 'too late' }],
    ['too old a cloud', new MicroversionUnsupported('nova', 'liveMigrate', '2.34', '2.1'), { kind: 'notSent' }],
    ['whatever else', new Error('a defect'), { kind: 'unknown' }],
  ])('%s', async (_, thrown, expected) => {
    expect(await answerTo(thrown)).toMatchObject(expected);
  });

  it('that may have arrived is not known', async () => {
    const liveMigrate = async () => ({ outcome: 'unknown' as const, error: new Error('cut') });
    expect(await postOnce({ liveMigrate }, request, options)).toEqual({ kind: 'unknown', text: 'cut' });
  });
});

describe('an act on the cloud', () => {
  const lost = new AbortController().signal;
  const window = (clock: Clock, held = () => true) => ({ by: 10_000, clock, held, lost });

  it('is sent within its window, and its answer is not awaited after it', async () => {
    const clock = manualClock(0);
    const aborted = await actWithin(window(clock), async ({ checkSend, signal }) => {
      clock.advance(9_999);
      expect([checkSend(), signal?.aborted]).toEqual([null, false]);
      clock.advance(1);
      return signal?.aborted;
    });
    expect(aborted).toBe(true);
  });

  it('is refused after it, though no timer has fired yet', async () => {
    const clock = manualClock(0);
    const stopped: Clock = { ...clock, after: () => () => undefined };
    const refusal = await actWithin(window(stopped), async ({ checkSend }) => {
      clock.advance(10_001);
      return checkSend();
    });
    expect(refusal).toBe('its time had passed');
  });

  it('is refused once its delivery is lost, though nobody has said so yet', async () => {
    const clock = manualClock(0);
    expect(
      await actWithin(
        window(clock, () => false),
        async ({ checkSend }) => checkSend(),
      ),
    ).toBe('its delivery was lost');
  });

  it('that gets no connection ends with its window, and is known not to be sent', async () => {
    const clock = manualClock(0);
    const answer = actWithin(window(clock), (options) =>
      postOnce(
        {
          liveMigrate: (_, { signal }) =>
            new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
        },
        { serverId: 'vm', host: 'h2', force: false },
        options,
      ),
    );
    clock.advance(10_000);
    expect(await answer).toEqual({ kind: 'notSent', text: 'its time had passed' });
  });
});

describe('what the executor writes', () => {
  const task = sampleTask({ groups: [{ id: 'g', policy: 'affinity' }] });
  const ends: readonly Ended[] = [
    { type: 'completed', outcome: 'migrated', host: 'h2', warnings: [], nova: null },
    { type: 'completed', outcome: 'alreadyThere', host: 'h2', warnings: [{ code: 'x', text: 'y' }], nova: null },
    { type: 'skipped', reason: { code: 'dry-run', text: 'dry run' } },
    {
      type: 'failed',
      errorType: 'MigrationFailed',
      reason: { code: 'x', text: 'y' },
      cause: 'destination',
      hostAtFault: 'h2',
      next: { attempt: 2, destination: 'h3', notBeforeMs: SAMPLE_MS },
      started: true,
      nova: null,
    },
  ];

  it('fits the contracts, under ids that name task and attempt', () => {
    const messages = [
      startedEvent(task, origin, { newestMigrationId: 7, forced: false }),
      observedEvent(task, origin, { migrationId: 8, requestId: null }),
      suspectedEvent(task, origin, { deliveries: 6, trial: 1, tries: 2 }),
      abortRequestedEvent(task, origin, { cause: 'operator' }),
      ...ends.map((ended) => endedEvent(task, origin, ended)),
      nextRequest(task, origin, { attempt: 2, destination: 'h3', notBeforeMs: SAMPLE_MS }),
    ];
    for (const message of messages)
      expect(parseMessage(JSON.parse(JSON.stringify(message)))).toEqual({ ok: true, message });
    expect(messages.map(({ id }) => id)).toEqual([
      'migration.started:p-s1:1',
      'migration.observed:p-s1:1',
      'migration.suspected:p-s1:1:6.1:2',
      'migration.abortRequested:p-s1:1',
      'migration.ended:p-s1:1',
      'migration.ended:p-s1:1',
      'migration.ended:p-s1:1',
      'migration.ended:p-s1:1',
      'migration.requested:p-s1:2',
    ]);
  });

  it('says why an abort was asked for, and reads it again, of this attempt', async () => {
    const late = { cause: 'queue', limitMs: 5000, text: 'it waited' } as const;
    async function* log(...stops: readonly Stop[]) {
      yield { event: abortRequestedEvent({ ...task, attempt: 2 }, origin, { cause: 'operator' }) };
      for (const stop of stops) yield { event: abortRequestedEvent(task, origin, stop) };
    }
    expect(await stopOf(log(late), task)).toEqual(late);
    expect(await stopOf(log({ cause: 'operator' }), task)).toEqual({ cause: 'operator' });
    expect(await stopOf(log(), task)).toBeNull();
  });

  it('asks for the next attempt with everything of the step, and its cause', () => {
    const next = nextRequest(task, origin, { attempt: 2, destination: 'h3', notBeforeMs: SAMPLE_MS + 500 });
    expect(next).toMatchObject({
      causationId: 'migration.ended:p-s1:1',
      data: { attempt: 2, destination: 'h3', to: 'h2', alternates: ['h3', 'h4'], notAfter: task.notAfter },
    });
    expect(next.data.notBefore).toBe(new Date(SAMPLE_MS + 500).toISOString());
  });
});

describe('a message that is no task', () => {
  const empty = aggregateState(initialLogState(), 'gpu');
  const dead = (body: string) => ({ aggregate: 'gpu', sequence: 12, body, problem: 'no schema' });
  const at = { by, nowMs: SAMPLE_MS };

  it('is recorded as itself when it names no task that the log knows', () => {
    for (const body of ['', 'no JSON', 'null', '{"data":{"taskId":"unknown-s1"}}', '{"data":{"taskId":7}}']) {
      const event = deadLetterEvent(dead(body), empty, at);
      expect(event).toMatchObject({ data: { taskId: 'unreadable-12', errorType: 'DeadLetter', retryPending: false } });
      expect(parseMessage(JSON.parse(JSON.stringify(event))).ok).toBe(true);
    }
  });

  it('ends the task that it names while that waits, and leaves one alone that has begun', () => {
    const log = testLog('gpu');
    log.configured();
    const planId = log.released([{ serverId: 'a', from: 'h1', to: 'h2' }]);
    const named = dead(JSON.stringify({ data: { taskId: `${planId}-s1` } }));
    const event = deadLetterEvent(named, log.state(), at);
    expect(event).toMatchObject({ data: { taskId: `${planId}-s1`, serverId: 'a', from: 'h1', started: false } });
    log.started({ task: `${planId}-s1` });
    expect(deadLetterEvent(named, aggregateState(fold(log.events), 'gpu'), at)).toBeNull();
  });

  it('carries no more of the message than a person needs', () => {
    const event = deadLetterEvent(dead('x'.repeat(100_000)), empty, at);
    expect(JSON.stringify(event).length).toBeLessThan(4000);
  });
});

describe('the resource provider of a host', () => {
  const hypervisor = (host: string, id: string) => ({ id, service: { host } });
  const cloud = (lists: ReturnType<typeof hypervisor>[][]) => {
    let calls = 0;
    let mono = 0;
    const nova = {
      listHypervisors: async () => lists[Math.min(calls++, lists.length - 1)] ?? [],
    } as unknown as Parameters<typeof providers>[0];
    const clock = { read: () => ({ mono, wall: 0 }) };
    return { of: providers(nova, clock), calls: () => calls, pass: (ms: number) => (mono += ms) };
  };
  const never = new AbortController().signal;

  it('is read once for all hosts, also when many ask at once', async () => {
    const { of, calls } = cloud([[hypervisor('h1', 'u1'), hypervisor('h2', 'u2')]]);
    expect(await Promise.all([of('h1', never), of('h2', never), of('h1', never)])).toEqual(['u1', 'u2', 'u1']);
    expect(calls()).toBe(1);
  });

  it('is read again for a host that is new, and after ten minutes', async () => {
    const { of, calls, pass } = cloud([[hypervisor('h1', 'u1')], [hypervisor('h1', 'u1'), hypervisor('h2', 'u2')]]);
    expect(await of('h2', never)).toBeNull();
    expect(await of('h2', never)).toBe('u2');
    pass(600_001);
    await of('h1', never);
    expect(calls()).toBe(3);
  });

  it('is none where a host has several', async () => {
    const { of } = cloud([[hypervisor('h1', 'u1'), hypervisor('h1', 'u2')]]);
    expect(await of('h1', never)).toBeNull();
  });
});

describe('what an executor serves', () => {
  const config = { engine: { aggregates: ['gpu', 'web'], includeUnassignedHosts: true } } as unknown as Parameters<
    typeof servedAggregates
  >[0];

  it('is all in scope unless its command line says otherwise', () => {
    expect(servedAggregates(config, [])).toEqual(['gpu', 'web', '_unassigned_']);
    expect(servedAggregates(config, ['web', 'web'])).toEqual(['web']);
  });

  it('is nothing out of scope', () => {
    expect(() => servedAggregates(config, ['cpu'])).toThrow('the aggregate cpu is not in scope');
  });
});
