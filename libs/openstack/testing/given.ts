/** Things in the words of Nova, for tests: each is changed where a test needs it. */
import type { Flavor, Server } from '../src/index.ts';

export const flavor: Flavor = {
  name: 'm1.small',
  vcpus: 2,
  ramMb: 4096,
  rootGb: 20,
  ephemeralGb: 5,
  swapMb: 512,
  extraSpecs: {},
};

/** A server: ACTIVE, not locked, with nothing in its way. */
export const server = (id: string, host: string | null, more: Partial<Server> = {}): Server => ({
  id,
  name: `name-of-${id}`,
  internalName: `instance-${id}`,
  status: 'ACTIVE',
  cellDown: false,
  vmState: 'active',
  taskState: null,
  powerState: 1,
  host,
  hypervisorHostname: host === null ? null : `${host}.example`,
  projectId: 'project',
  userId: 'user',
  flavor,
  imageProperties: undefined,
  bootFromVolume: false,
  volumeIds: [],
  addresses: [],
  macs: [],
  metadata: {},
  tags: [],
  locked: false,
  lockedReason: null,
  availabilityZone: 'nova',
  pinnedAvailabilityZone: null,
  groupIds: undefined,
  createdAt: '2026-01-01T00:00:00.000Z',
  updatedAt: null,
  fault: null,
  ...more,
});
