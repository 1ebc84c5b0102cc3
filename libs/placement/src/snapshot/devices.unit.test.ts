import type { EngineOptions, ServerObservation, Snapshot } from '@kronos/contracts';
import { expect, it } from 'vitest';
import { decideInput } from '../../testing/index.ts';
import { decide } from '../decide.ts';

/** Whether a VM of this kind moves. */
const moves = (
  kind: Partial<ServerObservation>,
  movableDevices?: EngineOptions['movableDevices'],
  snapshot: Partial<Snapshot> = {},
): boolean => {
  const decision = decide(
    decideInput({
      policies: { cpu: { threshold: 0.1 } },
      hosts: { a: {}, b: {} },
      vms: {
        v: { host: 'a', w: { cpu: 0.2 }, set: kind },
        u: { host: 'a', w: { cpu: 0.2 }, set: { locked: true } },
      },
      snapshot,
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
  expect(moves({ extraSpecs: specs })).toBe(false);
  expect(moves({ extraSpecs: specs }, [device])).toBe(movable);
  expect(moves({ extraSpecs: specs }, device === 'vgpu' ? ['pci-device'] : ['vgpu'])).toBe(false);
});

it('a virtual TPM moves by the version of Nova and its secret, where the version is known', () => {
  const host = { extraSpecs: { 'hw:tpm_version': '2.0', 'hw:tpm_secret_security': 'host' } };
  expect(moves(host, [], { vtpmMoves: true })).toBe(true);
  expect(moves(host, ['vtpm'], { vtpmMoves: false })).toBe(false);
  expect(moves({ extraSpecs: { 'hw:tpm_version': '2.0' } }, ['vtpm'], { vtpmMoves: true })).toBe(false);
  expect(moves({ imageProperties: { hw_tpm_version: '2.0' } }, ['vtpm'], { vtpmMoves: true })).toBe(false);
});

it.each([
  [{ imageProperties: { hw_mem_encryption: 'true' } }, false, false],
  [{ imageProperties: { hw_cpu_policy: 'shared' } }, true, true],
  [{ vnicTypes: ['direct'] }, false, true],
  [{ vnicTypes: ['accelerator-direct'] }, false, false],
  [{ vnicTypes: null }, false, true],
  [{}, true, true],
])('a VM with %j moves by default: %s; with ports that may move: %s', (kind, byDefault, allowed) => {
  expect(moves(kind)).toBe(byDefault);
  expect(moves(kind, ['sriov-port'])).toBe(allowed);
});
