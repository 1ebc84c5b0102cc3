/** Commands of people about an aggregate or all of them: pauses, and which commands were seen. */
import type { Control, LogEventOf } from '@kronos/contracts';
import type { Controls, StateDraft } from './draft.ts';
import type { Effects } from './effects.ts';
import { type Asked, RECENT_COMMANDS } from './state.ts';

/** The part of a command that the fold keeps. */
export function asked(draft: StateDraft, event: Control): Asked {
  const { atMs } = draft;
  const { commandId, comment } = event.data;
  return { sequence: draft.sequence, atMs, commandId, by: event.by.instance, comment };
}

/** True when the act is new; remembers it. */
export function firstTime(draft: StateDraft, controls: Controls, id: string): boolean {
  if (controls.seen.has(id)) return false;
  controls.seen = draft.add(controls.seen, id, RECENT_COMMANDS);
  return true;
}

function paused(draft: StateDraft, event: LogEventOf<'aggregate.paused' | 'aggregate.resumed'>): void {
  const c = draft.controls(event.aggregate);
  if (!firstTime(draft, c, event.id)) return;
  if (event.type === 'aggregate.resumed') c.paused = null;
  else if (c.paused === null) c.paused = asked(draft, event);
}

export const controlEffects = {
  'aggregate.paused': paused,
  'aggregate.resumed': paused,
} satisfies Partial<Effects>;
