import { type EngineOptions, MAX_QUARANTINE_SECONDS } from '@kronos/contracts';
import { consequencesOf } from '@kronos/facts';

/** Final failures that say nothing about the VM: infrastructure, people, poison messages. */
const HARMLESS: ReadonlySet<string> = new Set(['NovaClientError', 'Cancelled', 'DeadLetter']);

/**
 * Whether a final failure quarantines the VM. A type or a cause that this version does not know does, to be safe.
 *
 * @param cause the party at fault; undefined: the event does not say (Kronos 0.1)
 */
export const quarantines = (errorType: string, cause?: string): boolean =>
  !HARMLESS.has(errorType) && (cause === undefined || consequencesOf(cause).quarantines);

/** The causes of a VM's quarantine. */
export type QuarantineFacts = {
  readonly cause: 'failure' | 'operator';
  /** Ms since the epoch. */
  readonly atMs: number;
  /** The duration that the operator asked for, -1: until released. Null for a failure: `instance_quarantine_seconds` applies. */
  readonly seconds: number | null;
};

export type Quarantine = {
  readonly cause: QuarantineFacts['cause'];
  readonly sinceMs: number;
  /** Null: until an operator releases it. */
  readonly untilMs: number | null;
};

/** The code of the reason that a VM in quarantine does not move for. */
export const quarantineCode = ({ cause }: Pick<Quarantine, 'cause'>) =>
  cause === 'operator' ? ('vm-quarantined-by-operator' as const) : ('vm-quarantined' as const);

/**
 * The quarantine of a VM: of its causes the one that lasts longest, of equal ones the operator's. After a failure it lasts
 * `instance_quarantine_seconds`, at most 7 days, or with -1 until an operator releases it.
 *
 * @returns null when none is in force
 */
export function quarantine(
  causes: readonly QuarantineFacts[],
  nowMs: number,
  options: Pick<EngineOptions, 'instanceQuarantineSeconds'>,
): Quarantine | null {
  let longest: Quarantine | null = null;
  for (const { cause, atMs, seconds } of causes) {
    const lasts = seconds ?? Math.min(options.instanceQuarantineSeconds, MAX_QUARANTINE_SECONDS);
    const one: Quarantine = { cause, sinceMs: atMs, untilMs: lasts < 0 ? null : atMs + lasts * 1000 };
    if (end(one) <= nowMs) continue;
    const equal = longest !== null && end(one) === end(longest);
    if (longest === null || end(one) > end(longest) || (equal && cause === 'operator')) longest = one;
  }
  return longest;
}

const end = ({ untilMs }: Quarantine): number => untilMs ?? Number.POSITIVE_INFINITY;
