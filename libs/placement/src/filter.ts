import {
  type EngineOptions,
  failureQuarantineSeconds,
  type HostObservation,
  instanceCooldownEndMs,
  type ServerObservation,
} from '@kronos/contracts';
import type { Memory, QuarantineFact } from './memory.ts';
import type { ReasonCode } from './reasons.ts';

/** Why something is refused, with the facts behind it. */
export type Ground = { readonly code: ReasonCode; readonly detail: Readonly<Record<string, string | number>> };

const ms = (iso: string): number => Date.parse(iso);
const iso = (at: number): string => new Date(at).toISOString();

/** When the instance cooldown of a VM ends, ms since the epoch; null when it was never released. */
export const instanceCooldownEnd = (releases: readonly string[], options: EngineOptions): number | null =>
  instanceCooldownEndMs(releases.map(ms), options);

/** When a quarantine ends, ms since the epoch; infinite when only an operator ends it. */
export function quarantineEnd(fact: QuarantineFact, options: EngineOptions): number {
  const seconds = fact.seconds ?? failureQuarantineSeconds(options);
  return seconds < 0 ? Number.POSITIVE_INFINITY : ms(fact.at) + seconds * 1000;
}

/** The quarantine that ends last; of equal ones an operator's. */
function longestQuarantine(
  facts: readonly QuarantineFact[],
  options: EngineOptions,
): { fact: QuarantineFact; end: number } | null {
  const ends = facts.map((fact) => ({ fact, end: quarantineEnd(fact, options) }));
  const last = Math.max(...ends.map(({ end }) => end));
  const longest = ends.filter(({ end }) => end === last);
  return longest.find(({ fact }) => fact.cause === 'operator') ?? longest[0] ?? null;
}

/**
 * When a host may be a destination again after failures, ms since the epoch; null when the breaker never tripped. It trips
 * with the last of `breakerFailures` failures within `breakerWindowSeconds`.
 */
export function breakerEnd(failures: readonly string[], options: EngineOptions): number | null {
  const times = failures.map(ms).sort((a, b) => a - b);
  for (let last = times.length - 1; last >= options.breakerFailures - 1; last--) {
    const first = times[last - options.breakerFailures + 1] ?? Number.NEGATIVE_INFINITY;
    const at = times[last] ?? 0;
    if (at - first <= options.breakerWindowSeconds * 1000) return at + options.breakerDurationSeconds * 1000;
  }
  return null;
}

/** The one place that drops VMs for what is remembered of them. */
export function remembered(id: string, memory: Memory, options: EngineOptions, now: number): Ground | null {
  const task = memory.inFlight.find((t) => t.serverId === id);
  if (task !== undefined) return { code: 'vm-in-flight', detail: { task: task.taskId, to: task.destination } };
  const quarantine = longestQuarantine(own(memory.quarantines, id) ?? [], options);
  if (quarantine !== null && now < quarantine.end) {
    const { fact, end } = quarantine;
    return {
      code: 'vm-quarantined',
      detail: { cause: fact.cause, since: fact.at, ...(Number.isFinite(end) ? { until: iso(end) } : {}) },
    };
  }
  const releases = own(memory.releases, id);
  if (releases !== undefined) {
    const end = instanceCooldownEnd(releases, options);
    if (end !== null && now < end) return { code: 'vm-cooling-down', detail: { until: iso(end) } };
  }
  return null;
}

/** Why a VM cannot be live-migrated by what Nova says of it and of its host. */
export function unmovable(server: ServerObservation, host: HostObservation, migrating: boolean): Ground | null {
  const { state, status, forcedDown } = host.service;
  if (state === 'unknown' || status === 'unknown')
    return { code: 'vm-source-unknown', detail: { host: host.name, state, status } };
  if (state === 'down' || forcedDown) return { code: 'vm-source-down', detail: { host: host.name } };
  if (migrating || server.alsoOn.length > 0) return { code: 'vm-migrating', detail: { host: host.name } };
  if (server.taskState !== null) return { code: 'vm-busy', detail: { taskState: server.taskState } };
  if (server.status !== 'ACTIVE' && server.status !== 'PAUSED')
    return { code: 'vm-status', detail: { status: server.status } };
  if (server.locked) return { code: 'vm-locked', detail: {} };
  if (server.optedOutBy !== null) return { code: 'vm-opted-out', detail: { by: server.optedOutBy } };
  return unmovableKind(server);
}

/** Kinds that Nova cannot live-migrate, by what its API shows (flavor extra specs and claimed resource classes). */
function unmovableKind(server: ServerObservation): Ground | null {
  for (const key of Object.keys(server.extraSpecs).sort()) {
    const value = server.extraSpecs[key] ?? '';
    const detail = { extraSpec: `${key}=${value}` };
    if (key.startsWith('hw:tpm_') && key !== 'hw:tpm_secret_security') return { code: 'vm-vtpm', detail };
    if (key === 'hw:mem_encryption' && !/^(false|0|no|off|)$/i.test(value))
      return { code: 'vm-encrypted-memory', detail };
    if (key === 'accel:device_profile') return { code: 'vm-accelerator', detail };
    if (key === 'pci_passthrough:alias') return { code: 'vm-pci-device', detail };
    if (/^resources\d*:VGPU$/.test(key) && value !== '0') return { code: 'vm-vgpu', detail };
  }
  for (const name of Object.keys(server.resources).sort()) {
    if ((server.resources[name] ?? 0) <= 0) continue;
    const detail = { resourceClass: name };
    if (name === 'VGPU') return { code: 'vm-vgpu', detail };
    if (name === 'FPGA') return { code: 'vm-accelerator', detail };
    if (name === 'PCI_DEVICE' || name === 'SRIOV_NET_VF' || name.startsWith('CUSTOM_PCI_'))
      return { code: 'vm-pci-device', detail };
  }
  return null;
}

/** The value of an own key: ids come from outside and may be called `constructor`. */
export const own = <T>(record: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined;
