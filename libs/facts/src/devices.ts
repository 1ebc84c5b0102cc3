/** Devices and features that tie a server to its host, by its flavor, its image, its ports and the resource classes that it claims. */

export type Device = 'vtpm' | 'encrypted-memory' | 'accelerator' | 'pci-device' | 'vgpu' | 'sriov-port';

/** The device that an extra spec asks for; null: none. */
export function deviceOfSpec(key: string, value: string): Device | null {
  if (key.startsWith('hw:tpm_') && key !== 'hw:tpm_secret_security') return 'vtpm';
  if (key === 'hw:mem_encryption' && !/^(false|0|no|off|)$/i.test(value)) return 'encrypted-memory';
  if (key === 'accel:device_profile') return 'accelerator';
  if (key === 'pci_passthrough:alias') return 'pci-device';
  return key.endsWith(':VGPU') && /^resources\d*:VGPU$/.test(key) && value !== '0' ? 'vgpu' : null;
}

/** The device that a property of an image asks for; null: none. */
export function deviceOfImage(key: string, value: string): Device | null {
  if (key === 'hw_tpm_version' || key === 'hw_tpm_model') return 'vtpm';
  return key === 'hw_mem_encryption' ? deviceOfSpec('hw:mem_encryption', value) : null;
}

/** Ports that the host's own switch serves: they follow a server. Any other kind may need hardware of the host. */
const ORDINARY_PORTS: ReadonlySet<string> = new Set(['normal', 'virtio-forwarder', 'baremetal']);

/**
 * The device that a port of this `binding:vnic_type` is; null: none. Nova unplugs `direct`, `macvtap` and the like for a live migration, and
 * refuses accelerators.
 */
export function deviceOfPort(vnicType: string): 'accelerator' | 'sriov-port' | null {
  if (ORDINARY_PORTS.has(vnicType)) return null;
  return vnicType.startsWith('accelerator-') ? 'accelerator' : 'sriov-port';
}

/**
 * Whether a device stays with its host, although such devices may move. Nova moves a virtual TPM only where its secret is the host's.
 *
 * Source: nova/compute/api.py, block_live_migration of vTPM by `hw:tpm_secret_security` (Nova 33).
 */
export const tiedToHost = (device: Device, specs: Readonly<Record<string, string>>): boolean =>
  device === 'vtpm' && specs['hw:tpm_secret_security'] !== 'host';

/** The device that a claim of this resource class is of; null: none. */
export function deviceOfClaim(resourceClass: string, amount: number): Device | null {
  if (amount <= 0) return null;
  if (resourceClass === 'VGPU') return 'vgpu';
  if (resourceClass === 'FPGA') return 'accelerator';
  const isPci =
    resourceClass === 'PCI_DEVICE' || resourceClass === 'SRIOV_NET_VF' || resourceClass.startsWith('CUSTOM_PCI_');
  return isPci ? 'pci-device' : null;
}
