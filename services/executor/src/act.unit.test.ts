import type { Clock } from '@kronos/clock';
import { manualClock } from '@kronos/clock/testing';
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
import { describe, expect, it } from 'vitest';
import { actWithin, postOnce } from './act.ts';

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
