/** The scorer's life: a snapshot of every aggregate each interval, and whenever an operator asks for one. */
import type { Clock } from '@kronos/clock';
import { count, type FailingPart, partCodes } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import { type Check, checkOf, type Instruments, type Logger } from '@kronos/telemetry';
import { OpenRequests } from './openRequests.ts';
import { cycleRequest, type SnapshotRequest } from './requests.ts';
import { type Due, due } from './schedule.ts';
import type { Scorer, Taken } from './scorer.ts';
import type { Seen } from './seen.ts';
import { slowCycleText } from './slowCycle.ts';
import { SnapshotStream } from './snapshotStream.ts';
import { WakeUp } from './wakeUp.ts';

export interface ScoreLoopDeps {
  readonly log: Pick<EventLog, 'snapshots' | 'replaySnapshots' | 'tail' | 'lastSequenceOf'>;
  readonly scorer: Pick<Scorer, 'take' | 'longest'>;
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
  /** Whether every aggregate has had a recent snapshot, from any replica, and the own cycles end before the next one is due. */
  current(): Check;
  /** Whether this process's clock agrees with the server's. */
  clockRight(): Check;
}

/** Limit of the wait for the messages of the snapshot stream at the start. */
const LEVEL_WITHIN_MS = 10_000;

export function createScoreLoop(deps: ScoreLoopDeps): ScoreLoop {
  const { clock, signal } = deps;
  const wakeUp = new WakeUp(clock);
  const wake = (): void => wakeUp.call();
  const stream = new SnapshotStream(deps);
  const requests = new OpenRequests(deps);
  const snapshots = new DueSnapshots(deps, requests, wakeUp);
  return {
    async run() {
      const { promise: level, resolve } = Promise.withResolvers<void>();
      const following = stream.follow(resolve, wake);
      try {
        await Promise.race([level, following, clock.sleep(LEVEL_WITHIN_MS, signal)]);
        await Promise.race([snapshots.run(), following, requests.listen(wake)]);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
    current: () => checkOf([...stream.missing(), ...snapshots.slow()]),
    clockRight: () => stream.clockRight(),
  };
}

/** Takes the snapshots that are due: operators' requests before cycles, and nothing at the same time. */
class DueSnapshots {
  readonly #deps: ScoreLoopDeps;
  readonly #requests: OpenRequests;
  readonly #wakeUp: WakeUp;
  /** The cycle attended to last; null at the start. */
  #last: number | null = null;
  /** Whether somebody else's snapshots came first the last time. */
  #standby = false;
  /** Duration of the last cycle; 0 where others took its snapshots. */
  #tookMs = 0;
  /** Of the cycle before that. */
  #beforeMs = 0;
  /** Monotonic time at which the cycle under way began; null: none is. */
  #sinceMs: number | null = null;

  constructor(deps: ScoreLoopDeps, requests: OpenRequests, wakeUp: WakeUp) {
    this.#deps = deps;
    this.#requests = requests;
    this.#wakeUp = wakeUp;
  }

  /** @throws the signal's reason when it aborts */
  async run(): Promise<never> {
    const { clock, intervalMs, scope, seen, signal } = this.#deps;
    for (;;) {
      signal.throwIfAborted();
      const nowMs = clock.now();
      const requests = this.#requests.due(nowMs);
      if (requests.length > 0) {
        await this.#answer(requests);
        continue;
      }
      const [last, standby] = [this.#last, this.#standby];
      const next = due({ nowMs, intervalMs, last, standby, scope, seen: (aggregate) => seen.cycle(aggregate) });
      if (next.do === 'wait') {
        await this.#wakeUp.wait(Math.min(next.milliseconds, this.#requests.waitMs(nowMs)), signal);
        continue;
      }
      this.#last = next.cycle;
      if (next.do === 'observe') await this.#observe(next);
      else this.#tookMs = 0;
    }
  }

  /** Says that the cycle under way takes too long for the interval, or that the last one did. */
  slow(): FailingPart[] {
    const { clock, intervalMs, scorer } = this.#deps;
    const nowMs = this.#sinceMs === null ? 0 : clock.monotonic() - this.#sinceMs;
    // Of a cycle that has ended more is known.
    const ended = this.#tookMs >= nowMs;
    const ms = ended ? this.#tookMs : nowMs;
    const beforeMs = ended ? this.#beforeMs : this.#tookMs;
    const text = slowCycleText({ ms, beforeMs, intervalMs, ended, longest: scorer.longest() });
    return text === null ? [] : [{ code: partCodes.cycleSlow, part: 'cycle', text }];
  }

  async #answer(requests: readonly SnapshotRequest[]): Promise<void> {
    const { failed } = await this.#take(requests);
    if (failed === 0) this.#requests.answered(requests);
    else this.#requests.failed();
  }

  async #observe(due: Extract<Due, { do: 'observe' }>): Promise<void> {
    const { clock, logger } = this.#deps;
    if (due.skipped > 0) this.#reportSkipped(due.cycle, due.skipped);
    this.#sinceMs = clock.monotonic();
    const taken = await this.#take(due.aggregates.map((aggregate) => cycleRequest(aggregate, due.cycle)));
    this.#beforeMs = this.#tookMs;
    this.#tookMs = Math.round(clock.monotonic() - this.#sinceMs);
    this.#sinceMs = null;
    // All of them were another scorer's.
    const standby = taken.published === 0 && taken.duplicates > 0;
    if (standby !== this.#standby)
      logger.info(standby ? 'another scorer was first: on standby' : 'no longer on standby');
    this.#standby = standby;
  }

  #reportSkipped(cycle: number, skipped: number): void {
    const { metrics, logger, intervalMs } = this.#deps;
    const tookMs = this.#tookMs;
    metrics.cyclesSkipped.add(skipped, {});
    logger.warn(
      { cycle, skipped, tookMs },
      `${count(skipped, 'cycle')} ${skipped === 1 ? 'was' : 'were'} skipped: the one before took ${(tookMs / 1000).toFixed(1)} s, and evaluation_interval is ${intervalMs / 1000} s`,
    );
  }

  async #take(requests: readonly SnapshotRequest[]): Promise<Taken> {
    const { scorer, logger, signal } = this.#deps;
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
}
