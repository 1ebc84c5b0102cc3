import type { Clock } from '@kronos/clock';
import { ALL, errorText } from '@kronos/contracts';
import { Closed, type EventLog, type StreamHealth } from '@kronos/eventlog';
import { inForce, type LogIdentity, type Witness } from '@kronos/projections';
import { Doubts } from './doubts.ts';
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

/** Knows whether the log that is read is the one that was seen before. While it is not, nothing is planned or started. */
export interface LogGuard {
  readonly identity: LogIdentity;
  /** Null: the log is the one. Else why it is in doubt, and what people can do. */
  readonly problem: string | null;
  healthy(): StreamHealth;
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
  const { log } = options;
  const witnesses: Witness[] = [...(options.own ?? [])];
  for await (const witness of readWitnesses(log, options.snapshotsOf)) witnesses.push(witness);
  // After them: by now the log has everything that they saw.
  const doubts = new Doubts(await readIdentity(log), options);
  for (const witness of witnesses) doubts.note(witness);
  const guard = new Guard(options, doubts);
  guard.start();
  return guard;
}

class Guard implements LogGuard {
  readonly #options: GuardOptions;
  readonly #doubts: Doubts;
  readonly #ending = new AbortController();
  #problem: string | null = null;
  #asking = false;
  /** Wakes those who wait for {@link settled}. */
  #waiting: (() => void)[] = [];

  constructor(options: GuardOptions, doubts: Doubts) {
    this.#options = options;
    this.#doubts = doubts;
  }

  start(): void {
    this.#conclude();
    void this.#follow();
  }

  get identity(): LogIdentity {
    return this.#doubts.identity;
  }

  get problem(): string | null {
    return this.#problem;
  }

  healthy(): StreamHealth {
    return this.#problem === null
      ? { ok: true, detail: 'the log is the one that was seen' }
      : { ok: false, detail: this.#problem };
  }

  async agrees(witness: Witness): Promise<boolean> {
    if (!this.#doubts.agrees(witness)) this.#doubts.read(await readIdentity(this.#options.log));
    this.#doubts.note(witness);
    this.#conclude();
    return this.#doubts.agrees(witness);
  }

  lost(witness: Witness): void {
    this.#doubts.lost(witness);
    this.#conclude();
  }

  condemn(reason: string): void {
    this.#doubts.condemn(reason);
    this.#conclude();
  }

  async settled(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#problem === null) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const stop = (): void => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    this.#waiting.push(resolve);
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', stop);
      this.#waiting = this.#waiting.filter((one) => one !== resolve);
    }
  }

  close(): void {
    this.#ending.abort();
  }

  #conclude(): void {
    const problem = this.#doubts.problem();
    const changed = problem !== this.#problem;
    this.#problem = problem;
    if (changed) this.#options.onChange?.(problem);
    if (problem === null) for (const wake of this.#waiting.splice(0)) wake();
    else if (!this.#asking) void this.#ask();
  }

  /** Reads the log's identity again until nothing contradicts it. */
  async #ask(): Promise<void> {
    const { clock, log } = this.#options;
    this.#asking = true;
    while (this.#problem !== null) {
      await clock.sleep(ASK_MS, this.#ending.signal);
      if (this.#ending.signal.aborted) return;
      try {
        this.#doubts.read(await readIdentity(log));
        for await (const witness of this.#readSeen()) this.#doubts.note(witness);
      } catch (error) {
        // A log that cannot be read stays in doubt.
        if (error instanceof Closed) return;
        continue;
      }
      this.#doubts.judgeAgain();
      this.#conclude();
    }
    this.#asking = false;
  }

  /** Reads the log's identity, however long it takes. @throws Closed */
  async #readAgain(): Promise<void> {
    const { clock, log } = this.#options;
    for (;;)
      try {
        this.#doubts.read(await readIdentity(log));
        return;
      } catch (error) {
        if (error instanceof Closed) throw error;
        await clock.sleep(ASK_MS, this.#ending.signal);
        if (this.#ending.signal.aborted) throw new Closed('the guard is closed');
      }
  }

  async *#readSeen(): AsyncGenerator<Witness, void> {
    const { log } = this.#options;
    for await (const delivered of log.tail({ families: ['ledger'], aggregates: [ALL], since: 'all', end: true })) {
      const witness = witnessOf(delivered);
      if (witness !== null) yield witness;
    }
  }

  /** Follows the statements of the ledger and of people from now on. */
  async #follow(): Promise<void> {
    const { log, onChange } = this.#options;
    try {
      for await (const delivered of log.tail({ families: ['ledger', 'controls'], aggregates: [ALL] })) {
        if (this.#ending.signal.aborted) return;
        if (delivered.problem !== undefined) continue;
        const { message } = delivered;
        if (message.type === 'installation.created')
          await this.#stated(message.data.installationId, delivered.storedAt);
        else if (message.type === 'log.seen') {
          const witness = witnessOf(delivered);
          if (witness !== null) await this.agrees(witness);
        }
      }
    } catch (error) {
      // The connection was closed. The view of the log also notices a reader that ends for another reason.
      if (!(error instanceof Closed)) onChange?.(errorText(error));
    }
  }

  /** A person stated the installation of the log, at this time by the server's clock. The own one may be wrong. */
  async #stated(installationId: string, statedAtMs: number): Promise<void> {
    const before = this.#doubts.identity;
    if (before.installations.some((one) => one.id === installationId)) return;
    // It is not added to the known installations: it may be the first one of a log that replaced theirs.
    await this.#readAgain();
    if (before.lastSequence > 0)
      this.#doubts.note({
        source: 'this process',
        installationId: inForce(before)?.id ?? null,
        sequence: before.lastSequence,
        seenAtMs: statedAtMs,
      });
    this.#doubts.judgeAgain();
    this.#conclude();
  }
}
