import { attributes, type SpanName, spans } from '@kronos/telemetry';
import type { Span, Tracer } from '@opentelemetry/api';
import type { TaskMeters } from './meters.ts';
import type { Task } from './taskFacts.ts';
import type { TaskState } from './taskStages.ts';

/** The span of a wait: for Nova's migration, or afterwards for the server to settle; null for other stages. */
function stageSpan({ stage }: TaskState): SpanName | null {
  switch (stage.at) {
    case 'seeking':
    case 'noting':
    case 'following':
    case 'aborting':
      return stage.run.overAt === null ? spans.follow : spans.postflight;
    default:
      return null;
  }
}

/** The meters, with a span for each of those stages, within the span of the task. A task that is given up leaves none. */
export function tracedStages(meters: TaskMeters, tracer: Tracer): TaskMeters {
  const open = new WeakMap<Task, { readonly name: SpanName; readonly span: Span }>();
  return {
    ...meters,
    moved(task, before, after) {
      meters.moved(task, before, after);
      const now = open.get(task);
      const name = stageSpan(after);
      if (now?.name === name) return;
      now?.span.end();
      open.delete(task);
      if (name === null) return;
      const span = tracer.startSpan(name, { attributes: { [attributes.taskId]: task.taskId } });
      open.set(task, { name, span });
    },
  };
}
