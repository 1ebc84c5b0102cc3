import type { CellFacts, HostObservation, ServerObservation } from '@kronos/contracts';
import { type Device, deviceOfPort, deviceOfSpec } from '@kronos/facts';
import type { ReasonCode } from '../reasons.ts';
import { type Ground, unsettled, withheld } from '../snapshot/unmovable.ts';

/** Properties of the cells and of the image store that Nova's API does not show. */
export type CellSharing = {
  readonly volumes: boolean;
  readonly networks: boolean;
  /** The largest image that the store takes, GiB; null: no limit. */
  readonly maxImageGib: number | null;
};

/** The reason that keeps a server in its cell. `facts`: null when they could not be read; the server then stays. */
export function uncrossable(server: ServerObservation, facts: CellFacts | null, sharing: CellSharing): Ground | null {
  return kind(server) ?? (facts === null ? UNKNOWN : attached(facts, sharing)) ?? image(server, sharing);
}

/** The reason that a server can be neither cold-migrated nor resized to any host. */
export function unmovableCold(
  server: ServerObservation,
  host: HostObservation,
  now: { readonly migrating: boolean },
): Ground | null {
  return (
    unsettled(server, host, now) ??
    (server.status === 'ACTIVE' || server.status === 'SHUTOFF'
      ? null
      : { code: 'cell-status', detail: { status: server.status } }) ??
    withheld(server)
  );
}

/** Null: the device keeps no server that Nova stops first. */
const DEVICE: Readonly<Record<Device, ReasonCode | null>> = {
  vtpm: 'cell-vtpm',
  'encrypted-memory': null,
  accelerator: 'cell-accelerator',
  'pci-device': 'cell-pci-device',
  vgpu: null,
  'sriov-port': 'cell-pci-device',
};

const UNKNOWN: Ground = { code: 'cell-facts-unknown', detail: {} };

function kind(server: ServerObservation): Ground | null {
  for (const key of Object.keys(server.extraSpecs).sort()) {
    const value = server.extraSpecs[key] ?? '';
    const device = deviceOfSpec(key, value);
    const code = device === null ? null : DEVICE[device];
    if (code !== null) return { code, detail: { extraSpec: `${key}=${value}` } };
  }
  return null;
}

function attached({ volumes, ports }: CellFacts, sharing: CellSharing): Ground | null {
  if (volumes > 0 && !sharing.volumes) return { code: 'cell-volumes', detail: { volumes } };
  if (ports.length > 0 && !sharing.networks) return { code: 'cell-ports', detail: { ports: ports.length } };
  for (const { id, requestsResources, vnicType } of ports) {
    if (requestsResources) return { code: 'cell-port-request', detail: { port: id } };
    const device = deviceOfPort(vnicType);
    const code = device === null ? null : DEVICE[device];
    if (code !== null) return { code, detail: { port: id, vnicType } };
  }
  return null;
}

/** Nova copies the local disk of a server that leaves its cell through an image. */
function image({ bootFromVolume, diskGb }: ServerObservation, { maxImageGib }: CellSharing): Ground | null {
  if (bootFromVolume || maxImageGib === null || diskGb <= maxImageGib) return null;
  return { code: 'cell-image-size', detail: { diskGb, maxImageGib } };
}
