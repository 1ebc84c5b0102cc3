import { type FoldOptions, foldLog } from '@kronos/checkpoints';
import type { Control } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import type { LogState } from '@kronos/projections';

/** A command on the log, with the state just before and just after it. */
export type Acted<C extends Control> = {
  readonly event: C;
  readonly sequence: number;
  /** The server's stamp, ms since the epoch. */
  readonly storedAt: number;
  readonly before: LogState;
  readonly after: LogState;
};

/**
 * Appends a command and folds the log around it: what it did is read from the log itself.
 *
 * @param ask makes the command from the state before; throws where it cannot mean anything
 * @throws what `ask` throws, and the errors of append
 */
export async function act<C extends Control>(
  log: Parameters<typeof foldLog>[0] & Pick<EventLog, 'append'>,
  ask: (state: LogState) => C,
  checkpoints: Pick<FoldOptions, 'onSkipped' | 'onCheckpoint'>,
): Promise<Acted<C>> {
  let id: string | null = null;
  const around: Omit<Acted<C>, 'event'>[] = [];
  const view = await foldLog(log, {
    ...checkpoints,
    evolve(folder, stored) {
      if (id === null || stored.event.type === 'unreadable' || stored.event.id !== id) return folder.apply(stored);
      const before = folder.snapshot();
      const after = folder.apply(stored).snapshot();
      around.push({ sequence: stored.sequence, storedAt: stored.storedAt, before, after });
      return folder;
    },
  });
  try {
    const event = ask(view.at().state);
    id = event.id;
    const { sequence } = await log.append(event);
    await view.upTo(sequence);
    const [first] = around;
    if (first === undefined) throw new Error(`${event.id} was on the log before it was asked for`);
    return { event, ...first };
  } finally {
    await view.close();
  }
}
