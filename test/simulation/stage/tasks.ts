import { streamNames } from '@kronos/contracts';
import type { SimulatedServer } from '@kronos/eventlog/simulated';
import type { Supervisor } from '../supervisor.ts';
import type { OpenTask, OpenTasks } from '../watch/openTasks.ts';
import { readMessage } from '../watch/readMessage.ts';
import type { World } from '../world.ts';

export interface TaskActs {
  /** Tasks without a final result. */
  openTasks(): readonly OpenTask[];
  /** Those of them that were never started. */
  waitingTasks(): readonly OpenTask[];
  /** Kills the executors and removes the messages of tasks that were never started from the work queue meanwhile. */
  loseTasks(downMs: number): void;
}

/** Messages that a killed process has sent arrive within this time. */
const LAST_WORDS_MS = 60_000;

export function taskActs(
  world: World,
  server: SimulatedServer,
  supervisor: Supervisor,
  openTasks: OpenTasks,
): TaskActs {
  const removeWaiting = (): void => {
    const queue = server.stream(streamNames.migrations);
    if (queue === undefined) return;
    for (let sequence = queue.first; sequence <= queue.last; sequence++) {
      const message = queue.get(sequence);
      if (message === undefined) continue;
      const task = readMessage(message);
      if (task?.type === 'migration.requested' && openTasks.isWaiting(task.data.taskId)) queue.remove(sequence);
    }
  };
  return {
    openTasks: () => openTasks.all(),
    waitingTasks: () => openTasks.all().filter(({ taskId }) => openTasks.isWaiting(taskId)),
    loseTasks(downMs) {
      for (const name of supervisor.names('executor')) supervisor.kill(name, downMs);
      const starts = supervisor.starts('executor');
      world.after(LAST_WORDS_MS, () => {
        // An executor that was back meanwhile has taken tasks.
        if (supervisor.starts('executor') === starts) removeWaiting();
      });
    },
  };
}
