import { type EngineOptions, failureQuarantineSeconds } from '@kronos/contracts';
import type { AggregateState } from './state.ts';

/** Final failures that say nothing about the VM: infrastructure, people, lost messages. */
const HARMLESS: ReadonlySet<string> = new Set(['NovaClientError', 'Cancelled', 'DeadLetter']);

/** Whether a final failure of this type quarantines the VM. A type that this version does not know does, to be safe. */
export const quarantines = (errorType: string): boolean => !HARMLESS.has(errorType);

export type Quarantine = {
  readonly serverId: string;
  readonly cause: 'failure' | 'operator';
  readonly sinceMs: number;
  /** Null: until an operator releases it. */
  readonly untilMs: number | null;
  /** The error type, or the person. */
  readonly by: string;
  readonly text: string;
};

/** Why and until when a VM is left alone, or null. Of two reasons the one that lasts longer. */
export function quarantined(
  state: Pick<AggregateState, 'vmFailures' | 'operatorQuarantines'>,
  serverId: string,
  nowMs: number,
  options: Pick<EngineOptions, 'instanceQuarantineSeconds'>,
): Quarantine | null {
  const failure = state.vmFailures.get(serverId);
  const asked = state.operatorQuarantines.get(serverId);
  const byFailure: Quarantine | null =
    failure === undefined
      ? null
      : {
          serverId,
          cause: 'failure',
          sinceMs: failure.atMs,
          untilMs: end(failure.atMs, failureQuarantineSeconds(options)),
          by: failure.errorType,
          text: failure.text,
        };
  const byOperator: Quarantine | null =
    asked === undefined
      ? null
      : {
          serverId,
          cause: 'operator',
          sinceMs: asked.atMs,
          untilMs: end(asked.atMs, asked.seconds),
          by: asked.by,
          text: asked.comment ?? 'set by an operator',
        };
  return longer(active(byFailure, nowMs), active(byOperator, nowMs));
}

/** Every VM in quarantine, by server uuid. */
export function quarantineTable(
  state: Pick<AggregateState, 'vmFailures' | 'operatorQuarantines'>,
  nowMs: number,
  options: Pick<EngineOptions, 'instanceQuarantineSeconds'>,
): Quarantine[] {
  const ids = new Set([...state.vmFailures.keys(), ...state.operatorQuarantines.keys()]);
  return [...ids].sort().flatMap((id) => quarantined(state, id, nowMs, options) ?? []);
}

const end = (sinceMs: number, seconds: number): number | null => (seconds < 0 ? null : sinceMs + seconds * 1000);

const active = (q: Quarantine | null, nowMs: number): Quarantine | null =>
  q === null || (q.untilMs !== null && q.untilMs <= nowMs) ? null : q;

function longer(a: Quarantine | null, b: Quarantine | null): Quarantine | null {
  if (a === null || b === null) return a ?? b;
  if (a.untilMs === null) return a;
  if (b.untilMs === null) return b;
  return a.untilMs >= b.untilMs ? a : b;
}
