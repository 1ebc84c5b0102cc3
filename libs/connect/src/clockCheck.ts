import { type Clock, type ClockWatch, clockWatch } from '@kronos/clock';
import { type Actor, timeMs } from '@kronos/contracts';
import type { EventLog, LogView } from '@kronos/eventlog';
import type { Instruments, Logger } from '@kronos/telemetry';

/** Between two readings of the server's clock. */
const EVERY_MS = 15_000;
/** And while the clock is wrong. */
const WRONG_EVERY_MS = 2_000;

export interface ClockCheck extends Pick<ClockWatch, 'problem'> {
  /** By how much (s) the own clock differs from the server's, without its sign; 0 where no reading shows a difference. */
  skewSeconds(): number;
  /** As a readiness check. */
  check(): { readonly ok: true } | { readonly ok: false; readonly reason: string };
  stop(): void;
}

/** Logs what {@link checkClock} finds. */
export const logClock =
  (logger: Logger) =>
  (problem: string | null): void => {
    if (problem === null) logger.info('the clock of this machine is right again');
    else logger.error({ problem }, 'the clock is wrong: this process decides and starts nothing');
  };

/**
 * Compares the clock of a writer with the NATS server's: once before it resolves, then again and again, and with the stamp
 * of each event that the writer has on the log.
 *
 * @param view of the log; absent for a writer that does not fold it
 * @throws what the first reading throws
 */
export async function checkClock({
  log,
  view,
  by,
  clock,
  metrics,
  maxSkewMs,
  onProblem,
}: {
  readonly log: Pick<EventLog, 'readClock'>;
  readonly view?: Pick<LogView<unknown>, 'changes'>;
  readonly by: Actor;
  readonly clock: Clock;
  readonly metrics: Pick<Instruments, 'clockSkew'>;
  readonly maxSkewMs: number;
  /** The clock turned out to be wrong, or is right again (null). */
  readonly onProblem: (problem: string | null) => void;
}): Promise<ClockCheck> {
  const watch = clockWatch(clock, maxSkewMs);
  let stopped = false;
  let wasWrong = false;
  const skewSeconds = (): number => Math.abs(watch.skewMs() ?? 0) / 1000;
  const judge = (): void => {
    metrics.clockSkew.set(skewSeconds(), {});
    const problem = watch.problem();
    if ((problem !== null) === wasWrong) return;
    wasWrong = problem !== null;
    onProblem(problem);
  };
  const read = async (): Promise<void> => {
    watch.see(await log.readClock());
    judge();
  };
  await read();

  let cancel = (): void => undefined;
  function later(): void {
    if (stopped) return;
    cancel = clock.after(watch.problem() === null ? EVERY_MS : WRONG_EVERY_MS, () => {
      // While NATS does not answer, nothing can be appended: the last reading stays valid.
      read().then(later, later);
    });
  }
  later();

  const changes = view?.changes()[Symbol.asyncIterator]();
  async function own(): Promise<void> {
    for (;;) {
      const next = await changes?.next();
      if (stopped || next === undefined || next.done === true) return;
      const { event, storedAt } = next.value;
      if (event.type === 'unreadable' || event.by.service !== by.service || event.by.instance !== by.instance) continue;
      watch.see({ beforeMs: timeMs(event.time), serverMs: storedAt, afterMs: clock.now() });
      judge();
    }
  }
  // The reader of the view reports its failure.
  own().catch(() => undefined);

  return {
    problem: () => watch.problem(),
    skewSeconds,
    check() {
      const problem = watch.problem();
      return problem === null ? { ok: true } : { ok: false, reason: problem };
    },
    stop() {
      stopped = true;
      cancel();
      void changes?.return?.();
    },
  };
}
