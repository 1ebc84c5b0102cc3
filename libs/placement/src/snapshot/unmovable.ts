import { type CompleteEngineOptions, type HostObservation, iso, type ServerObservation } from '@kronos/contracts';
import {
  type Device,
  deviceOfClaim,
  deviceOfImage,
  deviceOfPort,
  deviceOfSpec,
  isUp,
  livePowerState,
  powerStateName,
  tiedToHost,
} from '@kronos/facts';
import { instanceCooldown, quarantine, quarantineCode } from '@kronos/rules';
import type { ReasonCode } from '../reasons.ts';
import type { Memory } from './memory.ts';

/** The reason of a refusal, with its facts. */
export type Ground = { readonly code: ReasonCode; readonly detail: Readonly<Record<string, string | number>> };

/** The one place that drops VMs because of their history. */
export function remembered(id: string, memory: Memory, options: CompleteEngineOptions, now: number): Ground | null {
  const task = memory.inFlight.find((t) => t.serverId === id);
  if (task !== undefined) {
    const { taskId, destination, aggregate } = task;
    return {
      code: 'vm-in-flight',
      detail: { task: taskId, to: destination, ...(aggregate === undefined ? {} : { aggregate }) },
    };
  }
  const quarantined = quarantine(own(memory.quarantines, id) ?? [], now, options);
  if (quarantined !== null) {
    const { cause, sinceMs, untilMs } = quarantined;
    return {
      code: quarantineCode(quarantined),
      detail: { cause, since: iso(sinceMs), ...(untilMs === null ? {} : { until: iso(untilMs) }) },
    };
  }
  const cooling = instanceCooldown(own(memory.releases, id) ?? [], now, options);
  if (cooling !== null) return { code: 'vm-cooling-down', detail: { until: iso(cooling) } };
  return null;
}

/** The devices that are known to move with their VM. */
interface Movable {
  /** Those that the operator names. */
  readonly devices: readonly Device[];
  /** Whether Nova moves virtual TPMs; undefined: not known, so the operator says it. */
  readonly vtpmMoves: boolean | undefined;
}

/** The reason that Nova's data about a VM and its host rule out a live migration. */
export function unmovable(
  server: ServerObservation,
  host: HostObservation,
  now: { readonly migrating: boolean },
  movable: Movable,
): Ground | null {
  return (
    unsettled(server, host, now) ??
    (server.status === 'ACTIVE' || server.status === 'PAUSED'
      ? null
      : { code: 'vm-status', detail: { status: server.status } }) ??
    unpowered(server) ??
    withheld(server) ??
    unmovableKind(server, movable)
  );
}

/** Nova live-migrates only guests that run or are paused, whatever the status. */
function unpowered({ powerState }: ServerObservation): Ground | null {
  if (powerState === undefined || powerState === null || livePowerState(powerState)) return null;
  return { code: 'vm-power-state', detail: { powerState: powerStateName(powerState) } };
}

/** The reason that a VM cannot be moved now in any way: its host is not working, or another action is running. */
export function unsettled(
  server: ServerObservation,
  host: HostObservation,
  { migrating }: { readonly migrating: boolean },
): Ground | null {
  const { state, status } = host.service;
  if (state === 'unknown' || status === 'unknown')
    return { code: 'vm-source-unknown', detail: { host: host.name, state, status } };
  if (!isUp(host.service)) return { code: 'vm-source-down', detail: { host: host.name } };
  if (server.status === 'VERIFY_RESIZE' && server.taskState === null)
    return { code: 'vm-verify-resize', detail: { host: host.name } };
  if (migrating) return { code: 'vm-migrating', detail: { host: host.name } };
  if (server.alsoOn.length > 0) return { code: 'vm-seen-twice', detail: { host: host.name } };
  return server.taskState === null ? null : { code: 'vm-busy', detail: { taskState: server.taskState } };
}

/** The reason that people do not want the VM to be moved. */
export function withheld(server: ServerObservation): Ground | null {
  if (server.locked) return { code: 'vm-locked', detail: {} };
  return server.optedOutBy === null ? null : { code: 'vm-opted-out', detail: { by: server.optedOutBy } };
}

const DEVICE: Readonly<Record<Device, ReasonCode>> = {
  vtpm: 'vm-vtpm',
  'encrypted-memory': 'vm-encrypted-memory',
  accelerator: 'vm-accelerator',
  'pci-device': 'vm-pci-device',
  vgpu: 'vm-vgpu',
  'sriov-port': 'vm-sriov-port',
};

/** Kinds of VMs that Nova cannot live-migrate: by flavor, image, claimed resource classes and ports. */
function unmovableKind(server: ServerObservation, { devices, vtpmMoves }: Movable): Ground | null {
  const { extraSpecs, resources, imageProperties = {}, vnicTypes } = server;
  const free = (device: Device): boolean =>
    (device === 'vtpm' && vtpmMoves !== undefined ? vtpmMoves : devices.includes(device)) &&
    !tiedToHost(device, extraSpecs);
  const stays = (device: Device | null): Device | null => (device === null || free(device) ? null : device);
  const spec = firstDevice(extraSpecs, (key, value) => stays(deviceOfSpec(key, value)));
  if (spec !== null)
    return { code: DEVICE[spec.device], detail: { extraSpec: `${spec.name}=${extraSpecs[spec.name] ?? ''}` } };
  const image = firstDevice(imageProperties, (key, value) => stays(deviceOfImage(key, value)));
  if (image !== null) {
    const imageProperty = `${image.name}=${imageProperties[image.name] ?? ''}`;
    return { code: DEVICE[image.device], detail: { imageProperty } };
  }
  const claim = firstDevice(resources, (name, amount) => stays(deviceOfClaim(name, amount)));
  if (claim !== null) return { code: DEVICE[claim.device], detail: { resourceClass: claim.name } };
  if (vnicTypes === null) return free('sriov-port') ? null : { code: 'vm-ports-unknown', detail: {} };
  for (const vnicType of vnicTypes ?? []) {
    const device = stays(deviceOfPort(vnicType));
    if (device !== null) return { code: DEVICE[device], detail: { vnicType } };
  }
  return null;
}

/** Of the names that ask for a device, the first in their order. Most servers have none: nothing is sorted for them. */
function firstDevice<V>(
  values: Readonly<Record<string, V>>,
  deviceOf: (name: string, value: V) => Device | null,
): { readonly name: string; readonly device: Device } | null {
  let first: { readonly name: string; readonly device: Device } | null = null;
  for (const name of Object.keys(values)) {
    const device = deviceOf(name, values[name] as V);
    if (device !== null && (first === null || name < first.name)) first = { name, device };
  }
  return first;
}

/** The value of an own key: ids come from outside and may be called `constructor`. */
export const own = <T>(record: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined;
