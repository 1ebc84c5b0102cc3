import { manualClock } from '@kronos/clock/testing';
import { BadAnswer, EndpointNotFound, Forbidden, Unauthorized } from '@kronos/openstack';
import { expect, it } from 'vitest';
import { portKinds, portRefusal } from './preflightPorts.ts';

const place = { service: 'neutron', method: 'GET', url: 'http://neutron/v2.0/ports' };
const hidden = [
  new EndpointNotFound('network', 'none'),
  new Forbidden(place, 403, 'no'),
  new BadAnswer(place, 'missing'),
  new Unauthorized('neutron', { authUrl: 'http://keystone', user: 'user executor' }, 'access rules'),
];
const down = new Error('down');

type Neutron = Parameters<typeof portKinds>[0];
type Mode = Parameters<typeof portKinds>[1];
const { signal } = new AbortController();

const read = (mode: Mode, answer: readonly string[] | Error) => {
  const neutron: Neutron = {
    async listPortKinds({ serverId = '' } = {}) {
      if (answer instanceof Error) throw answer;
      return answer.map((vnicType, i) => ({ id: `p${i}`, serverId, vnicType, mac: `m${i}` }));
    },
  };
  return portKinds(neutron, mode, manualClock(0))('vm', signal);
};

/** The number of requests for ports, once at each of these times, in ms, to a Neutron that ends each call like this. */
async function askedAt(mode: Mode, times: readonly number[], end: Neutron['listPortKinds']): Promise<number> {
  const clock = manualClock(0);
  let asked = 0;
  const neutron: Neutron = {
    listPortKinds(options) {
      asked++;
      return end(options);
    },
  };
  const kindsOf = portKinds(neutron, mode, clock);
  for (const ms of times) {
    clock.advance(ms - clock.now());
    const kinds = kindsOf('vm', signal);
    // Nothing but the limit may be due: a Neutron that hangs does not end the call.
    clock.advanceToNext();
    expect(await kinds).toBeNull();
  }
  return asked;
}

it('the ports of a VM count as Neutron shows them now', async () => {
  expect(await read('read', ['normal', 'direct'])).toEqual(['normal', 'direct']);
  expect(await read('ignore', ['direct'])).toBeNull();
});

it.each(['auto', 'read'] as const)('with %s, a user who may not see them relies on the plan', async (mode) => {
  for (const error of hidden) expect(await read(mode, error)).toBeNull();
});

it('a Neutron that does not answer stops a move with read alone', async () => {
  expect(await read('auto', down)).toBeNull();
  await expect(read('read', down)).rejects.toBe(down);
});

it.each([
  [['normal', 'virtio-forwarder'], [], undefined],
  [['normal', 'direct'], [], 'vm-sriov-port'],
  [['vdpa'], ['sriov-port'], undefined],
  [['accelerator-direct'], ['sriov-port'], 'vm-accelerator'],
  [null, [], undefined],
] as const)('ports of the kinds %j, movable %j: %s', (kinds, movableDevices, code) => {
  expect(portRefusal(kinds, { movableDevices })?.code).toBe(code);
});

it('after a refusal, Neutron is asked again after an hour', async () => {
  const refuses = async () => Promise.reject(new Forbidden(place, 403, 'no'));
  expect(await askedAt('read', [0, 1, 3_599_999, 3_600_000], refuses)).toBe(2);
});

it('with auto, a Neutron that hangs is waited for 10 s, and asked again after a minute', async () => {
  const hangs: Neutron['listPortKinds'] = ({ signal: until } = {}) =>
    new Promise((_, reject) => {
      until?.addEventListener('abort', () => reject(until.reason));
    });
  expect(await askedAt('auto', [0, 10_001, 69_999, 70_000], hangs)).toBe(2);
});

it('a move that is given up meanwhile has no ports', async () => {
  const gone = AbortSignal.abort(new Error('lost'));
  const neutron = { listPortKinds: async () => Promise.reject(down) };
  for (const mode of ['auto', 'read'] as const)
    await expect(portKinds(neutron, mode, manualClock(0))('vm', gone)).rejects.toThrow('lost');
});
