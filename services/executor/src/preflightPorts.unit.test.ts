import { BadAnswer, EndpointNotFound, Forbidden, Unauthorized } from '@kronos/openstack';
import { expect, it } from 'vitest';
import { portRefusal, readPorts } from './preflightPorts.ts';

const place = { service: 'neutron', method: 'GET', url: 'http://neutron/v2.0/ports' };
const hidden = [
  new EndpointNotFound('network', 'none'),
  new Forbidden(place, 403, 'no'),
  new BadAnswer(place, 'missing'),
  new Unauthorized('neutron', { authUrl: 'http://keystone', user: 'user executor' }, 'access rules'),
];
const down = new Error('down');

const read = (sriovPorts: 'auto' | 'read' | 'ignore', answer: readonly string[] | Error) =>
  readPorts(
    'vm',
    {
      async listPortKinds({ serverId = '' } = {}) {
        if (answer instanceof Error) throw answer;
        return answer.map((vnicType, i) => ({ id: `p${i}`, serverId, vnicType, mac: `m${i}` }));
      },
    },
    { sriovPorts, nowMs: 0 },
    new AbortController().signal,
  );

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
  let asked = 0;
  const neutron = {
    async listPortKinds() {
      asked++;
      throw new Forbidden(place, 403, 'no');
    },
  };
  const at = (nowMs: number) => readPorts('vm', neutron, { sriovPorts: 'read', nowMs }, new AbortController().signal);
  for (const nowMs of [0, 1, 3_599_999, 3_600_000]) expect(await at(nowMs)).toBeNull();
  expect(asked).toBe(2);
});
