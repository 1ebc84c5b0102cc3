import { expect, it } from 'vitest';
import { deviceOfClaim, deviceOfImage, deviceOfPort, deviceOfSpec, tiedToHost } from './devices.ts';

it.each([
  ['hw:tpm_version', '2.0', 'vtpm'],
  ['hw:tpm_secret_security', 'host', null],
  ['hw:mem_encryption', 'True', 'encrypted-memory'],
  ['hw:mem_encryption', 'false', null],
  ['accel:device_profile', 'fpga', 'accelerator'],
  ['pci_passthrough:alias', 'nic:1', 'pci-device'],
  ['resources:VGPU', '1', 'vgpu'],
  ['resources1:VGPU', '2', 'vgpu'],
  ['resources:VGPU', '0', null],
  ['hw:cpu_policy', 'dedicated', null],
])('an extra spec %s of %s asks for the device %s', (key, value, device) => {
  expect(deviceOfSpec(key, value)).toBe(device);
});

it.each([
  ['VGPU', 1, 'vgpu'],
  ['FPGA', 1, 'accelerator'],
  ['PCI_DEVICE', 1, 'pci-device'],
  ['SRIOV_NET_VF', 2, 'pci-device'],
  ['CUSTOM_PCI_8086_1572', 1, 'pci-device'],
  ['VGPU', 0, null],
  ['VCPU', 4, null],
])('a claim of %s, %d of them, is of the device %s', (resourceClass, amount, device) => {
  expect(deviceOfClaim(resourceClass, amount)).toBe(device);
});

it.each([
  ['hw_tpm_version', '2.0', 'vtpm'],
  ['hw_tpm_model', 'tpm-crb', 'vtpm'],
  ['hw_mem_encryption', 'true', 'encrypted-memory'],
  ['hw_mem_encryption', 'false', null],
  ['hw_cpu_policy', 'dedicated', null],
])('an image property %s of %s asks for the device %s', (key, value, device) => {
  expect(deviceOfImage(key, value)).toBe(device);
});

it.each([
  ['normal', null],
  ['virtio-forwarder', null],
  ['direct', 'sriov-port'],
  ['direct-physical', 'sriov-port'],
  ['macvtap', 'sriov-port'],
  ['vdpa', 'sriov-port'],
  ['a kind of a later Neutron', 'sriov-port'],
  ['accelerator-direct', 'accelerator'],
])('a port of the kind %s is the device %s', (vnicType, device) => {
  expect(deviceOfPort(vnicType)).toBe(device);
});

it("only a virtual TPM whose secret is the host's can move at all", () => {
  expect(tiedToHost('vtpm', { 'hw:tpm_version': '2.0', 'hw:tpm_secret_security': 'host' })).toBe(false);
  expect(tiedToHost('vtpm', { 'hw:tpm_version': '2.0', 'hw:tpm_secret_security': 'user' })).toBe(true);
  expect(tiedToHost('vtpm', { 'hw:tpm_version': '2.0' })).toBe(true);
  expect(tiedToHost('pci-device', {})).toBe(false);
});
