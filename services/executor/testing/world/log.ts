import type { Next, Stop, TaskLog } from '../../src/taskFacts.ts';
import type { Body, Doing, Ended } from './doing.ts';
import type { Scene } from './scene.ts';

export interface AttemptRecord {
  readonly attempt: number;
  readonly destination: string;
  started: boolean;
  newestMigrationId: number;
  observed: number | null;
  outcome: 'completed' | 'skipped' | 'failed' | null;
  next: Next | null;
  host: string | null;
  /** Requests of this attempt that Nova took. */
  posts: number;
  outcomes: number;
  /** Requests that Nova took after the attempt had its outcome. */
  late: number;
  /** Its migration was still under way when it got its outcome. */
  unfinished: boolean;
}

/** The events of one task, and the last sequence of their subject. */
export class Log {
  readonly attempts: AttemptRecord[] = [];
  finals = 0;
  readonly #scene: Scene;
  #sequence = 10;
  /** Number of times in a row that an attempt was begun alone. */
  readonly #tries = new Map<number, { readonly tries: number; readonly at: number }>();
  /** Why an attempt was to be aborted. */
  readonly #stops = new Map<number, Stop>();
  /** Attempts that Nova refused to abort. */
  readonly #refusals = new Set<number>();

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  /** Other tasks of the aggregate write too. */
  othersWrite(): void {
    this.#sequence += 1;
  }

  #record(attempt: number): AttemptRecord | undefined {
    return this.attempts.find((a) => a.attempt === attempt);
  }

  read(attempt: number): TaskLog {
    return { attempt: this.#stateOf(attempt), expected: this.#sequence };
  }

  #stateOf(attempt: number): TaskLog['attempt'] {
    const found = this.#record(attempt);
    const known = attempt === 1 || this.#record(attempt - 1)?.next?.attempt === attempt;
    if (!known) return { kind: 'unknown' };
    if (found?.outcome != null || this.finals > 0) return { kind: 'ended', next: this.#nextOf(found) };
    const latest = this.attempts.reduce((most, a) => Math.max(most, a.attempt), 0);
    if (latest > attempt) return { kind: 'ended', next: null };
    if (found?.started !== true) return { kind: 'waiting' };
    return {
      kind: 'started',
      newestMigrationId: found.newestMigrationId,
      migrationId: found.observed,
      requestId: null,
      stop: this.#stops.get(attempt) ?? null,
    };
  }

  /** The attempt that must follow an ended one; null: none, or it has begun. */
  #nextOf(ended: AttemptRecord | undefined): Next | null {
    const next = ended?.next ?? null;
    const begun = next !== null && this.#record(next.attempt) !== undefined;
    return this.finals > 0 || begun ? null : next;
  }

  tries(attempt: number): { readonly tries: number; readonly agoMs: number } {
    const found = this.#tries.get(attempt);
    return { tries: found?.tries ?? 0, agoMs: this.#scene.now - (found?.at ?? 0) };
  }

  setTries(attempt: number, tries: number): void {
    this.#tries.set(attempt, { tries, at: this.#scene.now });
  }

  forgetTries(attempt: number): void {
    this.#tries.delete(attempt);
  }

  /** Appends with an expected sequence, as JetStream does it: known ids first, then the sequence; the answer may be lost. */
  #append(expected: number, known: boolean, write: () => void): Body {
    const { fails, now } = this.#scene;
    if (fails(0.03)) return { kind: 'lostTrack' };
    if (known || expected !== this.#sequence) return { kind: 'conflict' };
    this.#sequence += 1;
    write();
    return fails(0.03) ? { kind: 'lostTrack' } : { kind: 'appended', began: now };
  }

  /** Appends what has no expected sequence; null: the log has it already. */
  #add(write: () => null | undefined): Body {
    if (this.#scene.fails(0.1)) return { kind: 'lostTrack' };
    if (write() === null) return { kind: 'conflict' };
    this.#sequence += 1;
    return { kind: 'appended', began: this.#scene.now };
  }

  attempt({ attempt, destination }: Doing): AttemptRecord {
    const found = this.#record(attempt);
    if (found !== undefined) return found;
    const made: AttemptRecord = {
      attempt,
      destination,
      started: false,
      newestMigrationId: 0,
      observed: null,
      outcome: null,
      next: null,
      host: null,
      posts: 0,
      outcomes: 0,
      late: 0,
      unfinished: false,
    };
    this.attempts.push(made);
    return made;
  }

  suspected({ attempt }: Doing, tries: number): Body {
    return this.#add(() => void this.setTries(attempt, tries));
  }

  started(doing: Doing, expected: number, newestMigrationId: number): Body {
    const known = this.#record(doing.attempt)?.started === true;
    return this.#append(expected, known, () => {
      const made = this.attempt(doing);
      made.started = true;
      made.newestMigrationId = newestMigrationId;
    });
  }

  observed(doing: Doing, migrationId: number): Body {
    const made = this.attempt(doing);
    return this.#add(() => {
      made.observed ??= migrationId;
      return undefined;
    });
  }

  abortRequested({ attempt }: Doing, stop: Stop): Body {
    return this.#add(() => (this.#stops.has(attempt) ? null : void this.#stops.set(attempt, stop)));
  }

  abortRefused({ attempt }: Doing): Body {
    return this.#add(() => (this.#refusals.has(attempt) ? null : void this.#refusals.add(attempt)));
  }

  /** @param unfinished the attempt's migration is still under way */
  ended(doing: Doing, expected: number, ended: Ended, unfinished: boolean): Body {
    const known = this.#record(doing.attempt)?.outcome != null;
    return this.#append(expected, known, () => {
      const made = this.attempt(doing);
      made.outcome = ended.type;
      made.outcomes += 1;
      made.unfinished = unfinished;
      made.next = ended.type === 'failed' ? ended.next : null;
      made.host = ended.type === 'completed' ? ended.host : null;
      if (made.next === null) this.finals += 1;
      const code = ended.type === 'failed' ? ` ${ended.reason.code}` : '';
      this.#scene.say(`${doing.attempt} ended ${ended.type} by ${doing.agent}${code}`);
    });
  }
}
