import { movableDevices } from '@kronos/contracts';
import { expect, it } from 'vitest';
import { remedyOfReason } from './remedies.ts';

it('a device that may move names its option; no other reason of a VM does', () => {
  for (const device of movableDevices.filter((one) => one !== 'vtpm'))
    expect(remedyOfReason(`vm-${device}`)).toContain(`Add ${device} to [nova] movable_devices`);
  for (const code of ['vm-vtpm', 'vm-encrypted-memory', 'vm-accelerator'])
    expect(remedyOfReason(code)).toContain('Nova cannot live-migrate such a VM');
});

it('ports that could not be read are nothing that Nova refuses', () => {
  expect(remedyOfReason('vm-ports-unknown')).toContain('sriov_ports');
});

it('of a group names the option that lets an evacuation break a soft one', () => {
  for (const code of ['affinity', 'anti-affinity']) expect(remedyOfReason(code)).toContain('soft_rules = penalty');
});
