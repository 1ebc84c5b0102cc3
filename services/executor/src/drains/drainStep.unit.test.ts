import { type ComputeService, HttpError, NotSent, Unauthorized } from '@kronos/openstack';
import type { DrainFacts } from '@kronos/projections';
import { describe, expect, it } from 'vitest';
import { type Claim, changed, claimStep, hostEvent, leftAsFound, notChanged, watchStep } from './drainStep.ts';

const asked = { commandId: 'd1', by: 'ann', atMs: 0, sequence: 1, comment: 'disks' } as DrainFacts['asked'];
const drain = (changes: Partial<DrainFacts> = {}): DrainFacts => ({
  host: 'h1',
  asked,
  undrainAsked: null,
  claim: null,
  failure: null,
  disabled: null,
  progress: null,
  drained: null,
  ...changes,
});
const claim = (act: Claim['act'], attempt = 1): Claim => ({
  aggregate: 'gpu',
  host: 'h1',
  act,
  attempt,
  sequence: 9,
  by: 1000,
});
const service = (changes: Partial<ComputeService> = {}) =>
  ({ id: 's1', host: 'h1', status: 'enabled', disabledReason: null, forcedDown: false, ...changes }) as ComputeService;
const OWN = (() => {
  const step = claimStep(claim('disable'), drain(), service());
  return step.do === 'request' ? (step.update.disabledReason ?? '') : '';
})();

describe('a claim', () => {
  it('asks Nova to disable an enabled service, with a reason that names the drain', () => {
    expect(claimStep(claim('disable'), drain(), service())).toEqual({
      do: 'request',
      update: { serviceId: 's1', status: 'disabled', disabledReason: OWN },
    });
    expect(OWN).toContain('d1');
  });

  it('asks Nova to enable a service that shows this reason', () => {
    const step = claimStep(claim('enable'), drain(), service({ status: 'disabled', disabledReason: OWN }));
    expect(step).toEqual({ do: 'request', update: { serviceId: 's1', status: 'enabled' } });
  });

  it.each([
    ['a service that is gone', null, {}, 'lists no'],
    ['a service without an id', service({ id: null }), {}, 'names no id'],
    ['a drain that was taken back', service(), { undrainAsked: asked }, 'was taken back'],
  ])('of %s fails', (_, seen, changes, text) => {
    const step = claimStep(claim('disable', 3), drain(changes), seen);
    expect(step).toMatchObject({
      do: 'write',
      event: {
        type: 'host.actFailed',
        data: { act: 'disable', attempt: 3, status: null, text: expect.stringContaining(text) },
      },
    });
  });

  it('that was carried out before is Kronos’ own work; the same by others is theirs', () => {
    const disabled = (reason: string) => service({ status: 'disabled', disabledReason: reason });
    const data = (seen: ComputeService) => {
      const step = claimStep(claim('disable'), drain(), seen);
      return step.do === 'write' ? step.event : step;
    };
    expect(data(disabled(OWN))).toMatchObject({ type: 'host.disabled', data: { byKronos: true, disabledReason: OWN } });
    expect(data(disabled('x'))).toMatchObject({
      type: 'host.disabled',
      data: { byKronos: false, disabledReason: 'x' },
    });
  });

  it('does not change a service that somebody disabled again', () => {
    const step = claimStep(claim('enable'), drain(), service({ status: 'disabled', disabledReason: 'x' }));
    expect(step).toMatchObject({
      do: 'write',
      event: { type: 'host.leftDisabled', data: { reason: { code: 'changed' }, disabledReason: 'x' } },
    });
  });
});

describe('a request that failed', () => {
  const place = { service: 'nova', method: 'PUT', url: 'u' };
  const http = (status: number) => new HttpError(place, status, 'no');

  it.each([
    [http(403), 403],
    [new Unauthorized('keystone', { authUrl: 'u', user: 'ann' }, 'no'), 401],
    [new NotSent(place, 'late'), null],
  ])('%s certainly changed nothing: the attempt is over', (error, status) => {
    expect(notChanged(claim('enable'), drain(), error)).toMatchObject({ type: 'host.actFailed', data: { status } });
  });

  it.each([http(500), new Error('reset')])('%s may have changed the service', (error) => {
    expect(notChanged(claim('enable'), drain(), error)).toBeNull();
  });

  it('and one that succeeded says what Kronos changed', () => {
    expect(changed(claim('enable'), drain())).toMatchObject({ type: 'host.enabled', data: { byKronos: true } });
    expect(changed(claim('disable'), drain())).toMatchObject({ data: { byKronos: true, disabledReason: OWN } });
  });
});

describe('a host that is disabled', () => {
  const disabled = service({ status: 'disabled' });

  it('ends its drain when somebody enabled it', () => {
    expect(watchStep(drain(), service(), { moving: false })).toMatchObject({
      do: 'write',
      event: { type: 'host.enabled', data: { byKronos: false } },
    });
  });

  it('is looked at while it may hold servers', () => {
    expect(watchStep(drain(), disabled, { moving: false })).toEqual({ do: 'look' });
  });

  it.each([
    ['its service is unknown', drain(), service({ status: 'unknown' }), false],
    ['there is no service', drain(), null, false],
    ['a move is in flight', drain(), disabled, true],
    ['it is empty', drain({ drained: { sequence: 4, atMs: 1 } }), disabled, false],
  ])('waits: %s', (_, facts, seen, moving) => {
    expect(watchStep(facts, seen, { moving })).toEqual({ do: 'wait' });
  });

  it('stays as it was when it was disabled before the drain', () => {
    const facts = drain({ disabled: { sequence: 2, atMs: 1, byKronos: false, reason: 'theirs' } });
    expect(leftAsFound(facts)).toMatchObject({ data: { reason: { code: 'not-ours' }, disabledReason: 'theirs' } });
  });
});

it('an event of a drain is caused by the command that asked for it', () => {
  const by = { service: 'executor', instance: 'e', version: '1' } as const;
  expect(hostEvent('gpu', leftAsFound(drain()), by, 0)).toMatchObject({
    aggregate: 'gpu',
    by,
    time: '1970-01-01T00:00:00.000Z',
    correlationId: 'd1',
    causationId: expect.stringContaining('d1'),
  });
});
