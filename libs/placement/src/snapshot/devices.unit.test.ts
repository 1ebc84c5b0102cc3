import type { EngineOptions, ServerObservation } from '@kronos/contracts';
import { expect, it } from 'vitest';
import { decideInput } from '../../testing/index.ts';
import { decide } from '../decide.ts';

/** Whether a VM with these extra specs moves. */
const moves = (
  extraSpecs: ServerObservation['extraSpecs'],
  movableDevices?: EngineOptions['movableDevices'],
): boolean => {
  const decision = decide(
    decideInput({
      policies: { cpu: { threshold: 0.1 } },
      hosts: { a: {}, b: {} },
      vms: {
        v: { host: 'a', w: { cpu: 0.2 }, set: { extraSpecs } },
        u: { host: 'a', w: { cpu: 0.2 }, set: { locked: true } },
      },
      options: movableDevices === undefined ? {} : { movableDevices },
    }),
  );
  return decision.plan !== null;
};

it.each([
  ['a virtual TPM of any secret', { 'hw:tpm_version': '2.0' }, 'vtpm', false],
  [
    "a virtual TPM whose secret is the host's",
    { 'hw:tpm_version': '2.0', 'hw:tpm_secret_security': 'host' },
    'vtpm',
    true,
  ],
  ['a PCI device', { 'pci_passthrough:alias': 'nic:1' }, 'pci-device', true],
  ['a virtual GPU', { 'resources:VGPU': '1' }, 'vgpu', true],
] as const)('%s stays by default; with movable_devices it may move where Nova can', (_, specs, device, movable) => {
  expect(moves(specs)).toBe(false);
  expect(moves(specs, [device])).toBe(movable);
  expect(moves(specs, device === 'vgpu' ? ['pci-device'] : ['vgpu'])).toBe(false);
});
