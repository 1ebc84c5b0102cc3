/** Faults that are set, and used up. */
import type { HostFaultSetting, SeriesFault, ServerFaultSetting } from './faults.ts';
import type { CloudState } from './state.ts';

/** The setting for this server if it is one of these kinds; one of `times` is used up. */
export function serverFault<K extends ServerFaultSetting['kind']>(
  s: CloudState,
  uuid: string,
  ...kinds: K[]
): Extract<ServerFaultSetting, { kind: K }> | undefined {
  const fault = s.serverFaults.get(uuid);
  if (fault === undefined || !(kinds as string[]).includes(fault.kind)) return undefined;
  if (fault.times !== undefined) {
    if (fault.times <= 1) s.serverFaults.delete(uuid);
    else s.serverFaults.set(uuid, { ...fault, times: fault.times - 1 });
  }
  return fault as Extract<ServerFaultSetting, { kind: K }>;
}

export function hostFault<K extends HostFaultSetting['kind']>(
  s: CloudState,
  host: string,
  ...kinds: K[]
): Extract<HostFaultSetting, { kind: K }> | undefined {
  const fault = s.hostFaults.get(host);
  if (fault === undefined || !(kinds as string[]).includes(fault.kind)) return undefined;
  if (fault.times !== undefined) {
    if (fault.times <= 1) s.hostFaults.delete(host);
    else s.hostFaults.set(host, { ...fault, times: fault.times - 1 });
  }
  return fault as Extract<HostFaultSetting, { kind: K }>;
}

export function faultSeries(s: CloudState, fault: SeriesFault): number {
  const id = ++s.ids.fault;
  s.seriesFaults.push({ ...fault, id, fromMs: s.nowMs, untilMs: null });
  return id;
}

export function clearSeries(s: CloudState, id?: number): void {
  for (const fault of s.seriesFaults)
    if ((id === undefined || fault.id === id) && fault.untilMs === null) fault.untilMs = s.nowMs;
}
