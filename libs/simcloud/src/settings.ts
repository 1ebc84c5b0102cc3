/** Faults that are set, and used up. */
import type { HostFaultSetting, SeriesFault, ServerFaultSetting } from './faults.ts';
import type { CloudState } from './state.ts';

type Setting = ServerFaultSetting | HostFaultSetting;
type OfKind<F extends Setting, K extends F['kind']> = Extract<F, { kind: K }>;

/** The setting of a server or a host if it is of one of these kinds; one of its `times` is used up. */
function useFault<F extends Setting, K extends F['kind']>(
  settings: Map<string, F>,
  name: string,
  kinds: readonly K[],
): OfKind<F, K> | undefined {
  const fault = settings.get(name);
  if (fault === undefined || !kinds.some((kind) => kind === fault.kind)) return undefined;
  if (fault.times !== undefined) {
    if (fault.times <= 1) settings.delete(name);
    else settings.set(name, { ...fault, times: fault.times - 1 });
  }
  return fault as OfKind<F, K>;
}

export const serverFault = <K extends ServerFaultSetting['kind']>(s: CloudState, uuid: string, ...kinds: K[]) =>
  useFault(s.serverFaults, uuid, kinds);

export const hostFault = <K extends HostFaultSetting['kind']>(s: CloudState, host: string, ...kinds: K[]) =>
  useFault(s.hostFaults, host, kinds);

export function faultSeries(s: CloudState, fault: SeriesFault): number {
  const id = ++s.ids.fault;
  s.seriesFaults.push({ ...fault, id, fromMs: s.nowMs, untilMs: null });
  return id;
}

export function clearSeries(s: CloudState, id?: number): void {
  for (const fault of s.seriesFaults)
    if ((id === undefined || fault.id === id) && fault.untilMs === null) fault.untilMs = s.nowMs;
}
