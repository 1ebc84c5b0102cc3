import type { Clock } from '@kronos/clock';
import { ALL } from '@kronos/contracts';
import { Closed, type EventLog, type Health } from '@kronos/eventlog';
import {
  type Contradiction,
  contradiction,
  describeContradiction,
  inForce,
  type LogIdentity,
  STATEMENT_REMEDY,
  type Witness,
} from '@kronos/projections';
import { readIdentity, readWitnesses, witnessOf } from './identity.ts';

/** While the log is in doubt it is asked this often whether somebody has stated which it is. */
const ASK_MS = 3_000;

export type GuardOptions = {
  readonly log: Pick<EventLog, 'tail' | 'lastSequence' | 'lastSequenceOf'>;
  readonly clock: Clock;
  /** Aggregates whose newest snapshots are compared; none for who may not read snapshots. */
  readonly snapshotsOf: readonly string[];
  /** The witnesses of this process from elsewhere: its archive, the log before it was replaced. */
  readonly own?: readonly Witness[];
  /**
   * The ledger keeps an archive: a new log is in doubt until the ledger has compared the two and says that it folds this
   * log. A statement of a person needs no ledger.
   */
  readonly needsLedger: boolean;
  /** The log is in doubt now, for this reason (null: no longer). Once per change. */
  readonly onChange?: (problem: string | null) => void;
};

/** Knows whether the log at hand is the one that was seen before. While it is not, nothing is planned or started. */
export interface LogGuard {
  readonly identity: LogIdentity;
  /** Null: the log is the one. Else why it is in doubt, and what people can do. */
  readonly problem: string | null;
  healthy(): Health;
  /** Whether something agrees with the log; when it does not the log is in doubt from now on. */
  agrees(witness: Witness): Promise<boolean>;
  /** Events that the witness has seen are gone, or the log was replaced: in doubt until the log is read again. */
  lost(witness: Witness): void;
  /** Nothing may be planned or started by this process any more, for this reason. */
  condemn(reason: string): void;
  /** Resolves as soon as the log is the one. @throws the signal's reason */
  settled(signal: AbortSignal): Promise<void>;
  close(): void;
}

/** Compares the log with everything that has seen one. @throws NotProvisioned, NatsRefused, StreamUnavailable */
export async function openGuard(options: GuardOptions): Promise<LogGuard> {
  const { log, clock, needsLedger } = options;
  const ending = new AbortController();
  const doubts = new Map<string, Contradiction>();
  const keyOf = ({ source, installationId, sequence }: Witness): string => `${source} ${installationId} ${sequence}`;
  /** Installations that the ledger says it folds. */
  const folded = new Set<string | null>();
  let identity: LogIdentity;
  let problem: string | null = null;
  let asking = false;
  let condemned: string | null = null;
  let waiting: (() => void)[] = [];

  function judge(witness: Witness): void {
    const found = contradiction(identity, witness);
    if (found === null) doubts.delete(keyOf(witness));
    else doubts.set(keyOf(witness), found);
  }

  function note(witness: Witness): void {
    if (witness.source === 'the ledger') folded.add(witness.installationId);
    judge(witness);
  }

  function conclude(): void {
    const current = inForce(identity);
    const [worst] = [...doubts.values()].sort((a, b) => b.witness.sequence - a.witness.sequence);
    const before = problem;
    if (condemned !== null) problem = condemned;
    else if (worst !== undefined) problem = `${describeContradiction(identity, worst)}. ${STATEMENT_REMEDY}`;
    else if (needsLedger && current?.statement === 'provisioned' && !folded.has(current.id))
      problem = `the ledger has not compared its archive with the log of installation ${current.id} yet: start the ledger, or look why it is not ready. If there is no archive any more: kronos provision --new-log.`;
    else problem = null;
    if (problem !== before) options.onChange?.(problem);
    if (problem === null) for (const wake of waiting.splice(0)) wake();
    else if (!asking) void ask();
  }

  /** Reads the log's identity again until nothing contradicts it. */
  async function ask(): Promise<void> {
    asking = true;
    while (problem !== null) {
      await clock.sleep(ASK_MS, ending.signal);
      if (ending.signal.aborted) return;
      try {
        identity = await readIdentity(log);
        for await (const witness of readSeen()) note(witness);
      } catch (error) {
        // A log that cannot be read is in doubt as before.
        if (error instanceof Closed) return;
        continue;
      }
      for (const { witness } of [...doubts.values()]) judge(witness);
      conclude();
    }
    asking = false;
  }

  /** Reads the log's identity, however long it takes. @throws Closed */
  async function readAgain(): Promise<void> {
    for (;;)
      try {
        identity = await readIdentity(log);
        return;
      } catch (error) {
        if (error instanceof Closed) throw error;
        await clock.sleep(ASK_MS, ending.signal);
        if (ending.signal.aborted) throw new Closed('the guard is closed');
      }
  }

  async function* readSeen(): AsyncGenerator<Witness, void> {
    for await (const delivered of log.tail({ families: ['ledger'], aggregates: [ALL], since: 'all', end: true })) {
      const witness = witnessOf(delivered);
      if (witness !== null) yield witness;
    }
  }

  /** Follows the statements of the ledger and of people from now on. */
  async function follow(): Promise<void> {
    try {
      for await (const delivered of log.tail({ families: ['ledger', 'controls'], aggregates: [ALL] })) {
        if (ending.signal.aborted) return;
        if (delivered.problem !== undefined) continue;
        const { message } = delivered;
        if (message.type === 'installation.created') {
          if (identity.installations.some((one) => one.id === message.data.installationId)) continue;
          const before = identity;
          // Not added to the known ones: it may be the first of a log that replaced the one that they are of.
          await readAgain();
          if (before.lastSequence > 0)
            note({
              source: 'this process',
              installationId: inForce(before)?.id ?? null,
              sequence: before.lastSequence,
              seenAtMs: clock.now(),
            });
          for (const { witness } of [...doubts.values()]) judge(witness);
          conclude();
        } else if (message.type === 'log.seen') {
          const witness = witnessOf(delivered);
          if (witness !== null) await guard.agrees(witness);
        }
      }
    } catch (error) {
      // The connection was closed; a reader that ends for another reason is noticed by the view of the log too.
      if (!(error instanceof Closed)) options.onChange?.(error instanceof Error ? error.message : String(error));
    }
  }

  const witnesses: Witness[] = [...(options.own ?? [])];
  for await (const witness of readWitnesses(log, options.snapshotsOf)) witnesses.push(witness);
  // After them: whatever they have seen is on the log by now.
  identity = await readIdentity(log);
  for (const witness of witnesses) note(witness);

  const guard: LogGuard = {
    get identity() {
      return identity;
    },
    get problem() {
      return problem;
    },
    healthy: () =>
      problem === null ? { ok: true, detail: 'the log is the one that was seen' } : { ok: false, detail: problem },
    async agrees(witness) {
      if (contradiction(identity, witness) !== null) identity = await readIdentity(log);
      note(witness);
      conclude();
      return contradiction(identity, witness) === null;
    },
    lost(witness) {
      doubts.set(keyOf(witness), { kind: 'shorter', witness });
      conclude();
    },
    condemn(reason) {
      condemned = reason;
      conclude();
    },
    async settled(signal) {
      signal.throwIfAborted();
      if (problem === null) return;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const stop = (): void => reject(signal.reason);
      signal.addEventListener('abort', stop, { once: true });
      waiting.push(resolve);
      try {
        await promise;
      } finally {
        signal.removeEventListener('abort', stop);
        waiting = waiting.filter((one) => one !== resolve);
      }
    },
    close: () => ending.abort(),
  };
  conclude();
  void follow();
  return guard;
}
