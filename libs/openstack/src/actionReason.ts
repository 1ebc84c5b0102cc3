import type { InstanceAction } from './novaTypes.ts';

/** Why an action failed, in Nova's own words. */
export interface ActionReason {
  readonly text: string;
  /** The event that failed first, e.g. `conductor_live_migrate_instance`; undefined when no event says. */
  readonly event: string | undefined;
  /** Host on which it failed, where Nova shows it. */
  readonly host: string | undefined;
}

/**
 * The reason of a failed instance action: the `details` (2.84) of the event that ended in error first (outer events repeat or
 * wrap the inner one's), else the last line of its traceback, else the action's message. undefined when nothing failed so far.
 */
export function actionReason(action: Pick<InstanceAction, 'events' | 'message'>): ActionReason | undefined {
  const failed = action.events
    .filter((event) => event.result === 'Error')
    .sort((a, b) => order(a.finishedAt ?? a.startedAt, b.finishedAt ?? b.startedAt));
  const told = failed.find((event) => event.details !== null) ?? failed.find((event) => event.traceback !== null);
  const first = told ?? failed[0];
  const text = first?.details ?? lastLine(first?.traceback ?? null) ?? action.message;
  if (first === undefined) return text === null ? undefined : { text, event: undefined, host: undefined };
  return { text: text ?? 'Nova gives no reason', event: first.event, host: first.host ?? undefined };
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function lastLine(text: string | null): string | null {
  const lines = (text ?? '').split('\n').map((line) => line.trim());
  return lines.findLast((line) => line !== '') ?? null;
}
