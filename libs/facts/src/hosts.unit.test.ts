import { expect, it } from 'vitest';
import { isServing, isUp, serviceOf } from './hosts.ts';

it.each([
  ['up', 'enabled', false, true, true],
  ['up', 'disabled', false, true, false],
  ['up', 'unknown', false, true, false],
  ['up', 'enabled', true, false, false],
  ['down', 'enabled', false, false, false],
  ['unknown', 'enabled', false, false, false],
])('a service that is %s and %s (forced down: %s) is up: %s, and a destination: %s', (...given) => {
  const [state, status, forcedDown, up, serving] = given;
  expect(isUp({ state, forcedDown })).toBe(up);
  expect(isServing({ state, status, forcedDown })).toBe(serving);
});

it('nothing certain is known of a host with two records, or none', () => {
  const [one, other] = [{ host: 'h1' }, { host: 'h2' }];
  expect(serviceOf([one, other], 'h2')).toBe(other);
  expect(serviceOf([one, other, { host: 'h2' }], 'h2')).toBeNull();
  expect(serviceOf([one], 'h2')).toBeNull();
});
