/** The scorer's life: a snapshot of every aggregate each interval, and whenever an operator asks for one. */
import type { Clock } from '@kronos/clock';
import { ALL, type Control, iso, type SnapshotTaken, subject, timeMs } from '@kronos/contracts';
import type { Delivered, EventLog } from '@kronos/eventlog';
import type { Check, Instruments, Logger } from '@kronos/telemetry';
import { commandRequests, cycleRequest, type SnapshotRequest } from './requests.ts';
import { due } from './schedule.ts';
import type { Scorer, Taken } from './scorer.ts';
import type { Seen } from './seen.ts';

export interface ScoreLoopDeps {
  readonly log: Pick<EventLog, 'snapshots' | 'replaySnapshots' | 'tail' | 'lastSequenceOf'>;
  readonly scorer: Pick<Scorer, 'take'>;
  readonly seen: Seen;
  readonly scope: readonly string[];
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly maxClockSkewMs: number;
  /** The name of this process in what it writes. */
  readonly instance: string;
  readonly logger: Logger;
  readonly metrics: Instruments;
  /** Ends it. */
  readonly signal: AbortSignal;
}

export interface ScoreLoop {
  /** Runs until the signal; rejects when the streams can no longer be read. */
  run(): Promise<void>;
  /** Whether every aggregate has had a recent snapshot, from any replica. */
  current(): Check;
  /** Whether this process's clock agrees with the server's. */
  clockRight(): Check;
}

/** An older request is not answered: its sender has stopped waiting. */
const REQUEST_KEPT_MS = 120_000;
/** A request whose snapshot could not be taken is tried again after this long. */
const REQUEST_AGAIN_MS = 5_000;
/** Limit of the wait for the messages of the snapshot stream at the start. */
const LEVEL_WITHIN_MS = 10_000;
/** After this many intervals without a snapshot the scorer is not ready. */
const MISSED_INTERVALS = 3;

export function createScoreLoop(deps: ScoreLoopDeps): ScoreLoop {
  const { log, scorer, seen, scope, intervalMs, clock, logger, metrics, signal } = deps;
  const startedMs = clock.now();
  /** The server's stamp of the newest snapshot. */
  const newestMs = new Map<string, number>();
  const waiting = new Map<string, { readonly request: SnapshotRequest; readonly untilMs: number }>();
  const bell = new Bell(clock);
  let skewMs = 0;

  function note(delivered: Delivered<SnapshotTaken>): void {
    if (delivered.problem !== undefined) {
      logger.warn({ sequence: delivered.sequence, problem: delivered.problem }, 'a snapshot message cannot be read');
      return;
    }
    const { message, sequence, storedAt } = delivered;
    seen.note(message, sequence);
    newestMs.set(message.aggregate, storedAt);
    if (message.by.instance === deps.instance) {
      skewMs = timeMs(message.time) - storedAt;
    }
    bell.ring();
  }

  /** Follows the snapshot stream; `level` is called once it has delivered what was there at the start. */
  async function follow(level: () => void): Promise<void> {
    const missing = new Map<string, number>();
    for (const aggregate of scope) {
      const sequence = await log.lastSequenceOf('snapshots', aggregate);
      if (sequence > 0) missing.set(subject('snapshots', aggregate), sequence);
    }
    const since = new Date(clock.now() - Math.max(REQUEST_KEPT_MS, 2 * intervalMs));
    for await (const one of log.replaySnapshots({ aggregates: scope, since })) note(one);
    if (missing.size === 0) level();
    for await (const one of log.snapshots({ aggregates: scope })) {
      note(one);
      if (one.sequence >= (missing.get(one.subject) ?? Number.POSITIVE_INFINITY)) missing.delete(one.subject);
      if (missing.size === 0) level();
    }
  }

  /** Follows the operators' requests, those of a short while before the start too. */
  async function listen(): Promise<void> {
    const since = new Date(clock.now() - REQUEST_KEPT_MS);
    for await (const one of log.tail({ families: ['controls'], aggregates: [...scope, ALL], since })) {
      if (one.problem !== undefined) continue;
      for (const request of commandRequests(one.message as Control, one.traceparent, scope)) {
        const untilMs = one.storedAt + REQUEST_KEPT_MS;
        if (!seen.has(request.aggregate, request.id)) waiting.set(request.id, { request, untilMs });
      }
      if (waiting.size > 0) bell.ring();
    }
  }

  async function attempt(requests: readonly SnapshotRequest[]): Promise<Taken> {
    // Of its own, so that what listens to it goes away with it.
    const ending = new AbortController();
    const end = (): void => ending.abort(signal.reason);
    signal.addEventListener('abort', end);
    try {
      return await scorer.take(requests, ending.signal);
    } catch (error) {
      signal.throwIfAborted();
      logger.error({ err: error }, 'no snapshot could be taken');
      return { published: 0, duplicates: 0, failed: requests.length };
    } finally {
      signal.removeEventListener('abort', end);
    }
  }

  /** The requests that still want an answer. */
  function asked(nowMs: number): SnapshotRequest[] {
    for (const [id, { request, untilMs }] of waiting) {
      if (nowMs > untilMs || seen.has(request.aggregate, id)) waiting.delete(id);
    }
    return [...waiting.values()].map((one) => one.request);
  }

  async function work(): Promise<void> {
    let last: number | null = null;
    let standby = false;
    let tookMs = 0;
    let askAgainMs = 0;
    for (;;) {
      signal.throwIfAborted();
      const nowMs = clock.now();
      const requests = nowMs < askAgainMs ? [] : asked(nowMs);
      if (requests.length > 0) {
        const { failed } = await attempt(requests);
        if (failed === 0) for (const { id } of requests) waiting.delete(id);
        else askAgainMs = clock.now() + REQUEST_AGAIN_MS;
        continue;
      }
      const next = due({ nowMs, intervalMs, last, standby, scope, seen: (aggregate) => seen.cycle(aggregate) });
      if (next.do === 'wait') {
        const again = waiting.size > 0 ? Math.max(0, askAgainMs - nowMs) : Number.POSITIVE_INFINITY;
        await bell.wait(Math.min(next.milliseconds, again), signal);
        continue;
      }
      last = next.cycle;
      if (next.do === 'nothing') continue;
      if (next.skipped > 0) {
        metrics.cyclesSkipped.add(next.skipped, {});
        logger.warn(
          { cycle: next.cycle, skipped: next.skipped, tookMs },
          `${next.skipped} cycles were skipped: the one before took ${(tookMs / 1000).toFixed(1)} s, and evaluation_interval is ${intervalMs / 1000} s`,
        );
      }
      const taken = await attempt(next.aggregates.map((aggregate) => cycleRequest(aggregate, next.cycle)));
      // Somebody else's snapshots were first, all of them.
      const lost = taken.published === 0 && taken.duplicates > 0;
      tookMs = clock.now() - nowMs;
      if (lost !== standby) logger.info(lost ? 'another scorer was first: on standby' : 'no longer on standby');
      standby = lost;
    }
  }

  return {
    async run() {
      const { promise: level, resolve } = Promise.withResolvers<void>();
      const following = follow(resolve);
      try {
        await Promise.race([level, following, clock.sleep(LEVEL_WITHIN_MS, signal)]);
        await Promise.race([work(), following, listen()]);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
    current() {
      const late = scope.filter((aggregate) => {
        const at = Math.max(startedMs, newestMs.get(aggregate) ?? 0);
        return clock.now() - at > MISSED_INTERVALS * intervalMs;
      });
      if (late.length === 0) return { ok: true };
      const parts = late.map((aggregate) => {
        const at = newestMs.get(aggregate);
        const text = at === undefined ? 'no snapshot' : `no snapshot since ${iso(at)}`;
        return { code: 'snapshot-late', part: aggregate, text };
      });
      return { ok: false, reason: parts.map(({ part, text }) => `${part}: ${text}`).join('; '), parts };
    },
    clockRight() {
      if (Math.abs(skewMs) <= deps.maxClockSkewMs) return { ok: true };
      return {
        ok: false,
        reason: `the last snapshot's time and the NATS server's timestamp differ by ${(skewMs / 1000).toFixed(1)} s, more than max_clock_skew: set the clocks right`,
      };
    },
  };
}

/** Wakes one waiter; a ring while nobody waits wakes the next one at once. */
class Bell {
  #wake: (() => void) | null = null;
  #rung = false;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  async wait(milliseconds: number, signal: AbortSignal): Promise<void> {
    if (!this.#rung && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const wake = (): void => resolve();
      const cancel = this.#clock.after(milliseconds, wake);
      signal.addEventListener('abort', wake);
      this.#wake = wake;
      await promise;
      cancel();
      signal.removeEventListener('abort', wake);
      this.#wake = null;
    }
    this.#rung = false;
  }
}
