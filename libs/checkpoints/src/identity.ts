import {
  type Actor,
  ALL,
  type InstallationCreated,
  iso,
  type LogMark,
  type LogSeen,
  messageId,
  type SnapshotTaken,
  streamNames,
  timeMs,
} from '@kronos/contracts';
import type { Delivered, EventLog } from '@kronos/eventlog';
import {
  carriedMark,
  contradiction,
  type Installation,
  type LogIdentity,
  SETTLE_MS,
  type Witness,
} from '@kronos/projections';

type Reading = Pick<EventLog, 'tail' | 'lastSequence' | 'lastSequenceOf'>;

/** The installations that the log names, and how far it reaches. @throws NotProvisioned, StreamUnavailable */
export async function readIdentity(log: Pick<EventLog, 'tail' | 'lastSequence'>): Promise<LogIdentity> {
  const installations: Installation[] = [];
  for await (const { message, problem, sequence, storedAt } of log.tail({
    families: ['controls'],
    aggregates: [ALL],
    since: 'all',
    end: true,
  }))
    if (problem === undefined && message.type === 'installation.created')
      installations.push(installationOf(message, sequence, storedAt));
  return { installations, lastSequence: await log.lastSequence(streamNames.log) };
}

const installationOf = ({ data }: InstallationCreated, sequence: number, storedAtMs: number): Installation => ({
  id: data.installationId,
  statement: data.statement,
  sequence,
  storedAtMs,
});

/** The installations of a log change when a person states something: within this time their readers notice. */
const MARK_KEPT_MS = 30_000;
/** A mark that was read earlier is not stored. A statement settles what is stored for {@link SETTLE_MS} after it. */
const MARK_GOOD_MS = SETTLE_MS / 2;

/** A snapshot, and its sequence on the stream. */
export type StoredSnapshot = { readonly taken: SnapshotTaken; readonly sequence: number };

/** The log that a snapshot states. `aged`: why the mark may not be stored any more; null: it may. */
export type SnapshotMark = { readonly mark: LogMark; readonly aged: () => string | null };

/**
 * The log that a snapshot states, see {@link carriedMark}. `before`: the newest snapshot of its aggregate. Ask `aged` where
 * the bytes leave: a mark of a lost log that is stored after the statement would contradict the log that was stated.
 */
export function snapshotMark(
  log: Pick<EventLog, 'tail' | 'lastSequence'>,
  clock: { monotonic(): number },
): (before: StoredSnapshot | null) => Promise<SnapshotMark> {
  let known: { readonly atMs: number; readonly identity: Promise<LogIdentity> } | null = null;
  return async (before) => {
    if (known === null || clock.monotonic() - known.atMs > MARK_KEPT_MS) {
      const identity = readIdentity(log);
      known = { atMs: clock.monotonic(), identity };
      // A failure is not kept.
      identity.catch(() => {
        known = null;
      });
    }
    const { atMs } = known;
    const { installations } = await known.identity;
    const identity = { installations, lastSequence: await log.lastSequence(streamNames.log) };
    const aged = (): string | null => {
      const ageMs = clock.monotonic() - atMs;
      return ageMs > MARK_GOOD_MS ? `the log that it states was read ${Math.round(ageMs / 1000)} s ago` : null;
    };
    return { mark: carriedMark(identity, before === null ? null : await snapshotSeen(log, identity, before)), aged };
  };
}

/** The installation that a stored snapshot has seen. Its stamp is read only where it decides: a contradiction may be settled. */
async function snapshotSeen(
  log: Pick<EventLog, 'tail'>,
  identity: LogIdentity,
  { taken, sequence }: StoredSnapshot,
): Promise<Witness | null> {
  const unsettled = snapshotWitness(taken, Number.POSITIVE_INFINITY);
  if (unsettled === null || contradiction(identity, unsettled) === null) return unsettled;
  // By the server's clock, as everybody else judges it: the scorer that took it may have a wrong one.
  const aggregates = [taken.aggregate];
  for await (const one of log.tail({ families: ['snapshots'], aggregates, since: sequence, end: true }))
    if (one.sequence === sequence) return { ...unsettled, seenAtMs: one.storedAt };
  return unsettled;
}

/** The log mark of a snapshot; null: written by Kronos 0.1. */
const snapshotWitness = ({ data: { snapshotId, log } }: SnapshotTaken, seenAtMs: number): Witness | null =>
  log === undefined ? null : { source: `the snapshot ${snapshotId}`, ...log, seenAtMs };

/** The log mark of a message on `kronos.ledger` or `kronos.snapshots`; null for one without. */
export function witnessOf({ message, problem, storedAt }: Delivered<unknown>): Witness | null {
  if (problem !== undefined) return null;
  const { type, aggregate, data } = message as { type: string; aggregate: string; data: Record<string, unknown> };
  switch (type) {
    case 'state.checkpointed': {
      const { installationId, sequence } = data as { installationId?: string | null; sequence: number };
      return {
        source: `the checkpoint of ${aggregate}`,
        installationId: installationId ?? null,
        sequence,
        seenAtMs: storedAt,
      };
    }
    case 'log.seen': {
      const { installationId, sequence, where, storedAt: at } = data as LogMark & { where: string; storedAt: string };
      const source = where === 'archive' ? "the ledger's archive" : 'the ledger';
      return { source, installationId, sequence, seenAtMs: timeMs(at) };
    }
    case 'snapshot.taken':
      return snapshotWitness(message as SnapshotTaken, storedAt);
    default:
      return null;
  }
}

/**
 * Everything on JetStream that has seen a log: checkpoints, the ledger's own word, the newest snapshot of each aggregate.
 *
 * @param snapshotsOf none for who may not read snapshots
 */
export async function* readWitnesses(log: Reading, snapshotsOf: readonly string[]): AsyncGenerator<Witness, void> {
  for await (const delivered of log.tail({ families: ['ledger'], since: 'all', end: true })) {
    const witness = witnessOf(delivered);
    if (witness !== null) yield witness;
  }
  for (const aggregate of snapshotsOf) {
    const since = await log.lastSequenceOf('snapshots', aggregate);
    if (since === 0) continue;
    for await (const delivered of log.tail({ families: ['snapshots'], aggregates: [aggregate], since, end: true })) {
      const witness = witnessOf(delivered);
      if (witness !== null) yield witness;
    }
  }
}

/** Says on `kronos.ledger` how far a log was seen, for the services that start later. By the ledger. */
export async function reportSeen(
  log: Pick<EventLog, 'append'>,
  { installationId, sequence, seenAtMs }: Omit<Witness, 'source'>,
  where: LogSeen['data']['where'],
  { by, nowMs }: { readonly by: Actor; readonly nowMs: number },
): Promise<void> {
  const id = messageId.seen(where, installationId, sequence);
  await log.append({
    type: 'log.seen',
    version: 1,
    id,
    time: iso(nowMs),
    aggregate: ALL,
    by,
    correlationId: id,
    causationId: null,
    data: { installationId, sequence, where, storedAt: iso(seenAtMs) },
  });
}

/**
 * Puts a statement on the log: which one it is from here on.
 *
 * @throws AppendConflict when the log has a statement that the caller has not seen
 */
export async function stateInstallation(
  log: Pick<EventLog, 'append'>,
  statement: Installation['statement'],
  about: {
    readonly by: Actor;
    readonly comment: string | null;
    readonly nowMs: number;
    readonly installationId: string;
    /** `lastSequenceOf('controls', ALL)`, read before the caller looked at the log: a statement made since then conflicts. */
    readonly expectedLastSequence: number;
  },
): Promise<Installation> {
  const { installationId } = about;
  const id = messageId.installation(installationId);
  const message: InstallationCreated = {
    type: 'installation.created',
    version: 1,
    id,
    time: iso(about.nowMs),
    aggregate: ALL,
    by: about.by,
    correlationId: id,
    causationId: null,
    data: { installationId, statement, comment: about.comment },
  };
  const { sequence } = await log.append(message, { expectedLastSequence: about.expectedLastSequence });
  return installationOf(message, sequence, about.nowMs);
}
