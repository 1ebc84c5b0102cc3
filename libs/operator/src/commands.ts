/** Commands of people as events, for the command line and the console. Pure. */
import type { Control } from '@kronos/contracts';
import { type LogState, openDrain } from '@kronos/projections';
import { aggregateOfTask, requireClosable } from './ask.ts';
import { type Asking, control } from './control.ts';

/** The event of each command about aggregates, plans and tasks. */
export const commandTypes = {
  pause: 'aggregate.paused',
  resume: 'aggregate.resumed',
  approve: 'plan.approved',
  reject: 'plan.rejected',
  cancel: 'migration.cancelled',
  abort: 'migration.aborted',
  close: 'migration.closed',
  confirm: 'migration.confirmAsked',
  revert: 'migration.revertAsked',
} as const;

export type TaskCommand = 'cancel' | 'abort' | 'close' | 'confirm' | 'revert';

/**
 * A command about a task in flight. `force`: of a close.
 *
 * @throws CommandRefused for a task that is not in flight, and for a close before the gentler ways
 */
export function taskCommand(
  state: LogState,
  scope: readonly string[],
  { command, taskId, force }: { readonly command: TaskCommand; readonly taskId: string; readonly force: boolean },
  asking: Asking,
): Control {
  const aggregate = aggregateOfTask(state, scope, taskId);
  if (command !== 'close') return control(commandTypes[command], aggregate, { taskId }, asking);
  requireClosable(state, aggregate, taskId, { force });
  return control(commandTypes.close, aggregate, { taskId, ...(force ? { force } : {}) }, asking);
}

/** The id of the drain of a host that somebody asked for; null: nobody has. */
export const askedDrain = (state: LogState, host: string): string | null =>
  openDrain(state, host)?.drain.asked.commandId ?? null;
