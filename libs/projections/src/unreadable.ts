/** Events that this version cannot read, and those that a custodian had skipped. */
import type { LogEventOf } from '@kronos/contracts';
import { asked } from './controls.ts';
import type { StateDraft } from './draft.ts';
import type { Effects } from './effects.ts';
import { UNREADABLE_KEPT, type UnreadableFact } from './state.ts';

/** The event that is folded makes its aggregate unplannable. */
export function unreadable(draft: StateDraft, fact: Omit<UnreadableFact, 'through' | 'sequence'>): void {
  const { sequence } = draft;
  const c = draft.controls(fact.aggregate);
  const last = c.unreadables.at(-1);
  c.unreadables =
    last !== undefined && c.unreadables.length >= UNREADABLE_KEPT
      ? [...c.unreadables.slice(0, -1), { ...last, through: sequence }]
      : [...c.unreadables, { ...fact, sequence, through: sequence }];
}

/** Skips events that came before and cannot be read; what can be read is never skipped. */
function skipped(draft: StateDraft, event: LogEventOf<'event.skipped'>): void {
  const c = draft.controls(event.aggregate);
  const events = c.unreadables.filter(
    (fact) => fact.sequence >= event.data.sequence && fact.through <= event.data.through,
  );
  if (events.length === 0) return;
  c.unreadables = c.unreadables.filter((fact) => !events.includes(fact));
  c.skips = [...c.skips, { ...asked(draft, event), events }];
}

export const skipEffects = {
  'event.skipped': skipped,
} satisfies Partial<Effects>;
