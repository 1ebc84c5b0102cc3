import type { EngineOptions } from '@kronos/contracts';
import { type QuarantineFacts, quarantine, type Quarantine as RuledQuarantine } from '@kronos/rules';
import type { AggregateState } from './state.ts';

type Facts = Pick<AggregateState, 'vmFailures' | 'operatorQuarantines'>;

export type Quarantine = RuledQuarantine & {
  readonly serverId: string;
  /** The error type, or the person. */
  readonly by: string;
  readonly text: string;
};

/** What put a VM in quarantine. */
export function quarantineFacts(state: Facts, serverId: string): QuarantineFacts[] {
  const failure = state.vmFailures.get(serverId);
  const asked = state.operatorQuarantines.get(serverId);
  return [
    ...(failure === undefined ? [] : [{ cause: 'failure' as const, atMs: failure.atMs, seconds: null }]),
    ...(asked === undefined ? [] : [{ cause: 'operator' as const, atMs: asked.atMs, seconds: asked.seconds }]),
  ];
}

/** Why and until when a VM is in quarantine, or null. */
export function quarantined(
  state: Facts,
  serverId: string,
  nowMs: number,
  options: Pick<EngineOptions, 'instanceQuarantineSeconds'>,
): Quarantine | null {
  const found = quarantine(quarantineFacts(state, serverId), nowMs, options);
  if (found === null) return null;
  const failure = state.vmFailures.get(serverId);
  const asked = state.operatorQuarantines.get(serverId);
  return found.cause === 'failure'
    ? { serverId, ...found, by: failure?.errorType ?? '', text: failure?.text ?? '' }
    : { serverId, ...found, by: asked?.by ?? '', text: asked?.comment ?? 'set by an operator' };
}

/** Every VM in quarantine, by server uuid. */
export function quarantineTable(
  state: Facts,
  nowMs: number,
  options: Pick<EngineOptions, 'instanceQuarantineSeconds'>,
): Quarantine[] {
  const ids = new Set([...state.vmFailures.keys(), ...state.operatorQuarantines.keys()]);
  return [...ids].sort().flatMap((id) => quarantined(state, id, nowMs, options) ?? []);
}
