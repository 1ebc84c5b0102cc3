import { type InstallationCreated, iso, type LogMark } from '@kronos/contracts';

/** One `installation.created` of the log. */
export type Installation = {
  readonly id: string;
  readonly statement: InstallationCreated['data']['statement'];
  /** Its own sequence: from here on the log counts as this installation's. */
  readonly sequence: number;
  /** The server's stamp, ms since the epoch. */
  readonly storedAtMs: number;
};

/** Which log it is, and how far it reaches. */
export type LogIdentity = {
  /** In the order of the log; the last one is in force. None: provisioned by Kronos 0.1. */
  readonly installations: readonly Installation[];
  /** Read after everything that it is compared with. */
  readonly lastSequence: number;
};

/** Something that has seen a log: a checkpoint, a snapshot, an archive, a process. */
export type Witness = LogMark & {
  /** For people: `the checkpoint of gpu`. */
  readonly source: string;
  /** When it saw that, by the server's stamp, ms since the epoch. */
  readonly seenAtMs: number;
};

/** Why a log is not the one that was seen. */
export type Contradiction = {
  /** `other`: of another installation. `shorter`: of this one, and events that were seen are gone. */
  readonly kind: 'other' | 'shorter';
  readonly witness: Witness;
};

/**
 * A statement also settles what was seen within this time after it: by processes that had not read it yet, and under
 * clocks of servers that differ.
 */
export const SETTLE_MS = 120_000;

/** The installation that the log states last; null: it states none. */
export const inForce = ({ installations }: LogIdentity): Installation | null => installations.at(-1) ?? null;

/** The installation id that was in force at a sequence of the log. */
export const installationAt = ({ installations }: LogIdentity, sequence: number): string | null =>
  installations.findLast((one) => one.sequence <= sequence)?.id ?? null;

/**
 * Compares a log with what was seen before. A log of another installation, or one that ends before what was seen, is
 * another log or has lost data; only a person's statement on the log (`newLog`, `restored`) settles which.
 */
export function contradiction(identity: LogIdentity, witness: Witness): Contradiction | null {
  const current = inForce(identity);
  const stated = identity.installations.findLast((one) => one.statement !== 'provisioned');
  if (stated !== undefined && witness.seenAtMs <= stated.storedAtMs + SETTLE_MS) return null;
  // It was seen before the log got its first id.
  const [first] = identity.installations;
  const unnamed = witness.installationId === null && (first === undefined || first.sequence > 1);
  if (!unnamed && !identity.installations.some((one) => one.id === witness.installationId))
    return { kind: 'other', witness };
  // Under an earlier id the log may have been longer than where it was restored to: the later statement says so.
  if (!unnamed && witness.installationId !== current?.id) return null;
  return witness.sequence > identity.lastSequence ? { kind: 'shorter', witness } : null;
}

/**
 * The log that a new witness states. While the newest witness before it contradicts the log, the new one repeats what that one
 * stated: only the newest is kept, and a log that nobody has stated must not take the place of the one that was seen.
 */
export const carriedMark = (identity: LogIdentity, before: Witness | null): LogMark =>
  before === null || contradiction(identity, before) === null
    ? { installationId: inForce(identity)?.id ?? null, sequence: identity.lastSequence }
    : { installationId: before.installationId, sequence: before.sequence };

const name = (id: string | null): string => (id === null ? 'a log without an installation id' : `installation ${id}`);

/** For people: the contradiction, and the remedy. */
export function describeContradiction(identity: LogIdentity, { kind, witness }: Contradiction): string {
  const current = inForce(identity);
  const seen = `${witness.source} has seen event ${witness.sequence} of ${name(witness.installationId)} (${iso(witness.seenAtMs)})`;
  const is = `KRONOS_LOG is of ${name(current?.id ?? null)} and ends at event ${identity.lastSequence}`;
  return `${kind === 'other' ? 'KRONOS_LOG is another log than the one that was seen before' : 'KRONOS_LOG has lost events'}: ${seen}; ${is}`;
}

export const STATEMENT_REMEDY =
  'State which log it is. If it was lost: kronos archive restore DIRECTORY (it needs an empty log: kronos provision --for-restore). If it is to be used as it is: kronos provision --new-log.';
