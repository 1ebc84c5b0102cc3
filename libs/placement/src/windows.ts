/** The effect of migration windows on a plan. */
import { type CompleteEngineOptions, iso, type Reason, type Step } from '@kronos/contracts';
import { type WindowState, windowText } from '@kronos/rules';
import type { Observed } from './snapshot/observe.ts';

/** The reason of a plan that is not released outside the window. @param moves the plan in words */
export function plannedReason(moves: string, window: WindowState): Reason {
  const blocked = windowText(window);
  const until = window.untilMs === null ? null : iso(window.untilMs);
  return blocked === null
    ? { code: 'planned', text: moves }
    : { code: 'outside-window', text: `${moves}, ${blocked}`, detail: { until } };
}

/** The steps, each with its latest start: the end of the window of the aggregate or of the VM. */
export function withinWindows(
  steps: Step[],
  window: WindowState,
  { vmWindowEnds }: Pick<Observed, 'vmWindowEnds'>,
  options: Pick<CompleteEngineOptions, 'evacuationIgnoresWindows'>,
): Step[] {
  if (!window.open || (window.untilMs === null && vmWindowEnds.size === 0)) return steps;
  return steps.map((step) => {
    if (step.phase === 'evacuate' && options.evacuationIgnoresWindows) return step;
    const end = Math.min(
      window.untilMs ?? Number.POSITIVE_INFINITY,
      vmWindowEnds.get(step.serverId) ?? Number.POSITIVE_INFINITY,
    );
    return Number.isFinite(end) ? { ...step, startBefore: iso(end) } : step;
  });
}
