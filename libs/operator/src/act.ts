import { leastSkew, skewProblem } from '@kronos/clock';
import { type Control, eventTimeMs, familyOf, type StoredEvent, subject, timeMs } from '@kronos/contracts';
import { AppendConflict, type EventLog, type LogView } from '@kronos/eventlog';
import { type Folder, fold, type LogState } from '@kronos/projections';
import { judgeClock } from './clock.ts';
import type { Asking } from './control.ts';
import { ClockWrong } from './errors.ts';
import { type Outcome, outcomeOf } from './outcome.ts';

type Around = {
  readonly sequence: number;
  /** The server's stamp, ms since the epoch. */
  readonly storedAt: number;
  readonly before: LogState;
  readonly after: LogState;
};

/** A fold that keeps the states just before and just after the commands that are given through it. */
export type Following = {
  /** Folds one event; the view of the log must use this fold. */
  readonly evolve: (folder: Folder, stored: StoredEvent) => Folder;
  /** From now on, keeps the states around the event with this id. */
  readonly expect: (id: string) => void;
  /** The states around an expected event, which are then forgotten; null: it was not folded. */
  readonly take: (id: string) => Around | null;
};

/** Keeps the states around the events of commands while a view folds the log. */
export function followCommands(): Following {
  const expected = new Map<string, Around | null>();
  return {
    evolve(folder, stored) {
      const { event } = stored;
      if (event.type === 'unreadable' || expected.get(event.id) !== null) return folder.apply(stored);
      const before = folder.snapshot();
      const after = folder.apply(stored).snapshot();
      expected.set(event.id, { sequence: stored.sequence, storedAt: stored.storedAt, before, after });
      return folder;
    },
    expect: (id) => void expected.set(id, null),
    take(id) {
      const around = expected.get(id) ?? null;
      expected.delete(id);
      return around;
    },
  };
}

/** One command's outcome. */
export type Told = Outcome & {
  readonly command: Control['type'];
  readonly commandId: string;
  readonly aggregate: string;
  readonly sequence: number;
  readonly by: string;
  readonly time: string;
};

/** The author of a command, and the clock. */
export type Giving = Omit<Asking, 'nowMs'> & {
  readonly now: () => number;
  /** `[engine] max_clock_skew`. */
  readonly maxSkewMs: number;
  /** The own clock differs from the server's by more than that, which this command may ignore. */
  readonly onSkew: (problem: string) => void;
  /** Append only if no other command for the same aggregate came in between; otherwise call `ask` again. */
  readonly onUnchanged?: boolean;
  /** The names of servers, for the text of the outcome. */
  readonly nameOf?: ((serverId: string) => string | null) | undefined;
};

/** A view of the log, and the `evolve` that it uses. */
export type Followed = {
  readonly view: Pick<LogView<LogState>, 'at' | 'refresh' | 'upTo'>;
  readonly following: Following;
};

/** How often another command may come in between. */
const TRIES = 5;

/**
 * Appends a command of a person and folds the log around it: its effect is read from the log itself.
 *
 * @param ask makes the command from the state before; throws where it cannot mean anything
 * @throws what `ask` throws, ClockWrong, and the errors of append
 */
export async function giveCommand(
  log: Pick<EventLog, 'append' | 'readClock'>,
  { view, following }: Followed,
  { now, maxSkewMs, onSkew, onUnchanged = false, nameOf, ...asking }: Giving,
  ask: (state: LogState, asking: Asking) => Control,
): Promise<Told> {
  const beforeMs = now();
  const { serverMs } = await log.readClock();
  const skewMs = leastSkew({ beforeMs, serverMs, afterMs: now() });
  const { event, verdict, around } = await appendAsked();
  const { sequence, storedAt, before, after } = around;
  const stamped = { beforeMs: timeMs(event.time), serverMs: storedAt, afterMs: now() };
  const problem = verdict.kind === 'warn' ? verdict.problem : skewProblem(leastSkew(stamped), maxSkewMs);
  if (problem !== null) onSkew(problem);
  return {
    command: event.type,
    commandId: asking.commandId,
    aggregate: event.aggregate,
    sequence,
    by: asking.person,
    time: event.time,
    ...outcomeOf(event, eventTimeMs(event.time, storedAt), { before, after, nameOf }),
  };

  async function appendAsked() {
    for (let left = TRIES; ; left--) {
      const { state, expectedOn } = view.at();
      const event = ask(state, { ...asking, nowMs: now() });
      const verdict = judgeClock(event.type, skewMs, maxSkewMs);
      if (verdict.kind === 'refuse') throw new ClockWrong(`${verdict.problem}; the command was not sent`);
      const expectedLastSequence = expectedOn(subject(familyOf(event.type), event.aggregate));
      following.expect(event.id);
      let around: Around | null = null;
      try {
        const { sequence } = await log.append(event, onUnchanged ? { expectedLastSequence } : {});
        await view.upTo(sequence);
      } catch (error) {
        if (!(error instanceof AppendConflict) || left === 1) throw error;
        await view.refresh();
        continue;
      } finally {
        around = following.take(event.id);
      }
      if (around === null) throw new Error(`${event.id} was on the log before it was asked for`);
      return { event, verdict, around };
    }
  }
}

/** The effect that a command would have now. */
export function foresee(event: Control, state: LogState): Outcome {
  const storedAt = timeMs(event.time);
  const after = fold([{ sequence: state.sequence + 1, storedAt, event }], state);
  return outcomeOf(event, eventTimeMs(event.time, storedAt), { before: state, after });
}
