import { type EngineOptions, type HostObservation, iso, type ServerObservation } from '@kronos/contracts';
import { livePowerState, powerStateName } from '@kronos/facts';
import { instanceCooldown, quarantine } from '@kronos/rules';
import type { ReasonCode } from '../reasons.ts';
import type { Memory } from './memory.ts';

/** The reason of a refusal, with its facts. */
export type Ground = { readonly code: ReasonCode; readonly detail: Readonly<Record<string, string | number>> };

const ms = (iso: string): number => Date.parse(iso);

/** The one place that drops VMs because of their history. */
export function remembered(id: string, memory: Memory, options: EngineOptions, now: number): Ground | null {
  const task = memory.inFlight.find((t) => t.serverId === id);
  if (task !== undefined) return { code: 'vm-in-flight', detail: { task: task.taskId, to: task.destination } };
  const causes = own(memory.quarantines, id)?.map(({ cause, at, seconds }) => ({ cause, atMs: ms(at), seconds }));
  const quarantined = quarantine(causes ?? [], now, options);
  if (quarantined !== null) {
    const { cause, sinceMs, untilMs } = quarantined;
    return {
      code: 'vm-quarantined',
      detail: { cause, since: iso(sinceMs), ...(untilMs === null ? {} : { until: iso(untilMs) }) },
    };
  }
  const cooling = instanceCooldown((own(memory.releases, id) ?? []).map(ms), now, options);
  if (cooling !== null) return { code: 'vm-cooling-down', detail: { until: iso(cooling) } };
  return null;
}

/** The reason that Nova's data about a VM and its host rule out a live migration. */
export function unmovable(server: ServerObservation, host: HostObservation, migrating: boolean): Ground | null {
  return (
    unsettled(server, host, migrating) ??
    (server.status === 'ACTIVE' || server.status === 'PAUSED'
      ? null
      : { code: 'vm-status', detail: { status: server.status } }) ??
    unpowered(server) ??
    withheld(server) ??
    unmovableKind(server)
  );
}

/** Nova live-migrates only guests that run or are paused, whatever the status. */
function unpowered({ powerState }: ServerObservation): Ground | null {
  if (powerState === undefined || powerState === null || livePowerState(powerState)) return null;
  return { code: 'vm-power-state', detail: { powerState: powerStateName(powerState) } };
}

/** The reason that a VM cannot be moved now in any way: its host is not working, or another action is running. */
export function unsettled(server: ServerObservation, host: HostObservation, migrating: boolean): Ground | null {
  const { state, status, forcedDown } = host.service;
  if (state === 'unknown' || status === 'unknown')
    return { code: 'vm-source-unknown', detail: { host: host.name, state, status } };
  if (state === 'down' || forcedDown) return { code: 'vm-source-down', detail: { host: host.name } };
  if (migrating || server.alsoOn.length > 0) return { code: 'vm-migrating', detail: { host: host.name } };
  return server.taskState === null ? null : { code: 'vm-busy', detail: { taskState: server.taskState } };
}

/** The reason that people do not want the VM to be moved. */
export function withheld(server: ServerObservation): Ground | null {
  if (server.locked) return { code: 'vm-locked', detail: {} };
  return server.optedOutBy === null ? null : { code: 'vm-opted-out', detail: { by: server.optedOutBy } };
}

/** Kinds of VMs that Nova cannot live-migrate, by its API (flavor extra specs and claimed resource classes). */
function unmovableKind({ extraSpecs, resources }: ServerObservation): Ground | null {
  const spec = firstRefused(extraSpecs, refusalOfSpec);
  if (spec !== null) return { code: spec.code, detail: { extraSpec: `${spec.name}=${extraSpecs[spec.name] ?? ''}` } };
  const claim = firstRefused(resources, refusalOfClaim);
  return claim === null ? null : { code: claim.code, detail: { resourceClass: claim.name } };
}

function refusalOfSpec(key: string, value: string): ReasonCode | null {
  if (key.startsWith('hw:tpm_') && key !== 'hw:tpm_secret_security') return 'vm-vtpm';
  if (key === 'hw:mem_encryption' && !/^(false|0|no|off|)$/i.test(value)) return 'vm-encrypted-memory';
  if (key === 'accel:device_profile') return 'vm-accelerator';
  if (key === 'pci_passthrough:alias') return 'vm-pci-device';
  return key.endsWith(':VGPU') && /^resources\d*:VGPU$/.test(key) && value !== '0' ? 'vm-vgpu' : null;
}

function refusalOfClaim(name: string, amount: number): ReasonCode | null {
  if (amount <= 0) return null;
  if (name === 'VGPU') return 'vm-vgpu';
  if (name === 'FPGA') return 'vm-accelerator';
  return name === 'PCI_DEVICE' || name === 'SRIOV_NET_VF' || name.startsWith('CUSTOM_PCI_') ? 'vm-pci-device' : null;
}

/** Of the names that are refused, the first in their order. Most servers have none: nothing is sorted for them. */
function firstRefused<V>(
  values: Readonly<Record<string, V>>,
  refusal: (name: string, value: V) => ReasonCode | null,
): { readonly name: string; readonly code: ReasonCode } | null {
  let first: { readonly name: string; readonly code: ReasonCode } | null = null;
  for (const name of Object.keys(values)) {
    const code = refusal(name, values[name] as V);
    if (code !== null && (first === null || name < first.name)) first = { name, code };
  }
  return first;
}

/** The value of an own key: ids come from outside and may be called `constructor`. */
export const own = <T>(record: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined;
