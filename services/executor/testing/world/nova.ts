import type { Body, Doing } from './doing.ts';
import type { Scene } from './scene.ts';

interface Migration {
  readonly id: number;
  readonly attempt: number;
  readonly destination: string;
  status: string;
  /** The coming changes: [time, status, server's host, server's task state]. */
  readonly plan: {
    readonly at: number;
    readonly status: string;
    readonly host?: string;
    readonly idle?: boolean;
    readonly busy?: boolean;
  }[];
  visibleAt: number;
}

/** One server and its migrations, with the races of a real Nova. */
export class Nova {
  readonly server: { host: string; taskState: string | null };
  readonly #scene: Scene;
  readonly #migrations: Migration[] = [];
  #last = 7;

  constructor(scene: Scene) {
    this.#scene = scene;
    this.server = { host: scene.task.from, taskState: null };
  }

  /** Nova does what is due. */
  advance(): void {
    const { server } = this;
    for (const migration of this.#migrations)
      while (migration.plan[0] !== undefined && migration.plan[0].at <= this.#scene.now) {
        const step = migration.plan.shift();
        if (step === undefined) break;
        migration.status = step.status;
        if (step.host !== undefined) server.host = step.host;
        if (step.idle === true) server.taskState = null;
        if (step.busy === true) server.taskState = 'migrating';
      }
  }

  /** Whether a migration of the attempt is still under way. */
  busyWith(attempt: number): boolean {
    return this.#migrations.some((m) => m.attempt === attempt && m.plan.length > 0);
  }

  /** Takes a request for a live migration, `delay` ms from now. */
  live(attempt: number, destination: string, delay: number): void {
    const { now, between, pick } = this.#scene;
    const id = ++this.#last;
    if (delay === 0) this.server.taskState = 'migrating';
    let at = now + delay + between(0, 8_000);
    const visibleAt = at;
    const plan: Migration['plan'] = [];
    const then = (
      status: string,
      after: number,
      more: { host?: string; idle?: boolean; busy?: boolean } = {},
    ): void => {
      at += after;
      plan.push({ at, status, ...more });
    };
    then('accepted', 0, { busy: true });
    const end = pick('completed', 'completed', 'completed', 'failed', 'error', 'cancelled', 'switched', 'refused');
    if (end === 'refused') then('accepted', 1000, { idle: true });
    if (end !== 'refused') {
      then('queued', between(0, 5000));
      then('running', between(0, 60_000));
      const took = between(1000, 120_000);
      if (end === 'completed' || end === 'switched') then('running', took, { host: destination, idle: true });
      else then('running', took, { idle: true });
    }
    then(end === 'switched' || end === 'refused' ? 'error' : end, between(0, 2000));
    this.#migrations.push({ id, attempt, destination, status: 'accepted', plan, visibleAt });
  }

  /** The pre-flight. */
  check({ destination }: Doing): Body {
    const { flip, fails, pick, task } = this.#scene;
    const { server } = this;
    const verdict = (): Extract<Body, { kind: 'checked' }>['verdict'] => {
      if (fails(0.1)) return { kind: 'unreachable', text: 'down' };
      if (server.host === destination) return { kind: 'there', host: server.host };
      const failure = {
        errorType: 'PreFlightError' as const,
        reason: { code: 'x', text: '' },
        cause: 'unknown' as const,
        hostAtFault: null,
      };
      if (server.host !== task.from)
        return { kind: 'no', failure: { ...failure, errorType: 'Cancelled', fault: 'none' } };
      if (server.taskState !== null) return { kind: 'no', failure: { ...failure, fault: 'infrastructure' } };
      if (flip(0.1))
        return { kind: 'no', failure: { ...failure, fault: pick('destination', 'infrastructure', 'none') } };
      return { kind: 'go', forced: false, newestMigrationId: this.#newest() };
    };
    return { kind: 'checked', verdict: verdict(), tookMs: flip(0.02) ? 61_000 : 100 };
  }

  #newest(): number {
    return this.#migrations.filter((m) => m.visibleAt <= this.#scene.now).reduce((most, m) => Math.max(most, m.id), 7);
  }

  /** @param onTaken called when the request arrives: it counts, whatever becomes of the answer */
  post({ attempt, destination }: Doing, by: number, onTaken: () => void): Body {
    const scene = this.#scene;
    const { flip, fails, between } = scene;
    if (scene.now > by) return { kind: 'posted', answer: { kind: 'notSent', text: 'late' } };
    if (fails(0.05)) return { kind: 'posted', answer: { kind: 'notSent', text: 'refused connection' } };
    const arrives = !fails(0.1);
    if (arrives && this.server.taskState !== null)
      return { kind: 'posted', answer: { kind: 'refused', status: 409, text: 'it is in task_state migrating' } };
    if (arrives && flip(0.05)) return { kind: 'posted', answer: { kind: 'refused', status: 400, text: 'no' } };
    const answered = arrives && !fails(0.2);
    if (arrives) {
      onTaken();
      // Whose answer is cut off may have been slow on its way to Nova, too.
      if (!flip(0.05)) this.live(attempt, destination, answered ? 0 : between(0, 20_000));
    }
    return {
      kind: 'posted',
      answer: answered ? { kind: 'accepted', requestId: 'req' } : { kind: 'unknown', text: 'cut off' },
    };
  }

  /** The executor's reads of the server and its migrations. */
  look(): Extract<Body, { kind: 'looked' }>['look'] {
    const { now, flip, task } = this.#scene;
    const rows = this.#migrations
      .filter((m) => m.visibleAt <= now)
      .map((m) => ({
        id: m.id,
        type: 'live-migration',
        status: m.status,
        sourceCompute: task.from,
        destCompute: flip(0.1) && m.status === 'accepted' ? null : m.destination,
      }));
    const facts = { host: this.server.host, status: 'ACTIVE', vmState: 'active', taskState: this.server.taskState };
    return { migrations: rows, server: facts, progress: null, accepted: false };
  }

  abort(migrationId: number): Body {
    const { now, flip, pick } = this.#scene;
    const found = this.#migrations.find((m) => m.id === migrationId);
    const answer = pick('accepted', 'refused', 'unknown');
    const before = found?.plan.some((step) => step.host !== undefined || step.idle === true) ?? false;
    if (found !== undefined && answer !== 'refused' && before && flip(0.7)) {
      found.plan.splice(
        0,
        found.plan.length,
        { at: now + 300, status: 'running', idle: true },
        { at: now + 600, status: 'cancelled' },
      );
    }
    if (answer === 'refused') return { kind: 'abortAnswered', answer, refusal: { status: 409, text: 'no' } };
    return { kind: 'abortAnswered', answer };
  }
}
