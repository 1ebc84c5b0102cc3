/** Quarantines of VMs: after final failures, and by operators. */
import { ALL, type EngineOptions, type LogEventOf } from '@kronos/contracts';
import { type Quarantine, type QuarantineFacts, quarantine, quarantines } from '@kronos/rules';
import { asked, firstTime } from './controls.ts';
import type { StateDraft, WritableFacts } from './draft.ts';
import type { Effects } from './effects.ts';
import { type KnownOf, newestOf } from './elsewhere.ts';
import { FORGET_ABSENT_MS, FORGET_QUARANTINE_MS, type TaskFacts } from './state.ts';

type Causes = KnownOf<'vmFailures' | 'operatorQuarantines'>;

export type VmQuarantine = Quarantine & {
  readonly serverId: string;
  /** The error type, or the person. */
  readonly by: string;
  readonly text: string;
};

/** The causes of a VM's quarantine. `errorType`: of a failure; else null. */
export function quarantineFacts(
  state: Causes,
  serverId: string,
): (QuarantineFacts & { readonly errorType: string | null })[] {
  const failure = newestOf(state, 'vmFailures', serverId);
  const asked = newestOf(state, 'operatorQuarantines', serverId);
  return [
    ...(failure === undefined
      ? []
      : [{ cause: 'failure' as const, atMs: failure.atMs, errorType: failure.errorType, seconds: null }]),
    ...(asked === undefined
      ? []
      : [{ cause: 'operator' as const, atMs: asked.atMs, errorType: null, seconds: asked.seconds }]),
  ];
}

/** Why and until when a VM is in quarantine, or null. */
export function quarantined(
  state: Causes,
  serverId: string,
  nowMs: number,
  options: Pick<EngineOptions, 'instanceQuarantineSeconds'>,
): VmQuarantine | null {
  const found = quarantine(quarantineFacts(state, serverId), nowMs, options);
  if (found === null) return null;
  const failure = newestOf(state, 'vmFailures', serverId);
  const asked = newestOf(state, 'operatorQuarantines', serverId);
  return found.cause === 'failure'
    ? { serverId, ...found, by: failure?.errorType ?? '', text: failure?.text ?? '' }
    : { serverId, ...found, by: asked?.by ?? '', text: asked?.comment ?? 'set by an operator' };
}

/** Every VM in quarantine, by server uuid. */
export function quarantineTable(
  state: Causes,
  nowMs: number,
  options: Pick<EngineOptions, 'instanceQuarantineSeconds'>,
): VmQuarantine[] {
  const ids = new Set([...state.vmFailures.keys(), ...state.operatorQuarantines.keys()]);
  return [...ids].sort().flatMap((id) => quarantined(state, id, nowMs, options) ?? []);
}

/**
 * Which VMs with a failed move are no longer among these servers, and which are again, or have come from another aggregate. What the
 * log knows already is left out.
 *
 * @returns null when there is nothing to say
 */
export function absence(
  state: KnownOf<'vmFailures'>,
  servers: readonly { readonly id: string }[],
): { gone: string[]; back: string[] } | null {
  const others = state.elsewhere.filter(({ vmFailures }) => vmFailures.size > 0);
  if (state.vmFailures.size === 0 && others.length === 0) return null;
  const there = new Set(servers.map(({ id }) => id));
  const gone: string[] = [];
  const back: string[] = others.flatMap(({ vmFailures }) =>
    [...vmFailures].flatMap(([id, { absentSinceMs }]) =>
      absentSinceMs !== null && there.has(id) && !state.vmFailures.has(id) ? [id] : [],
    ),
  );
  for (const [id, { absentSinceMs }] of state.vmFailures) {
    if (there.has(id) === (absentSinceMs === null)) continue;
    (absentSinceMs === null ? gone : back).push(id);
  }
  return gone.length + back.length === 0 ? null : { gone: gone.sort(), back: [...new Set(back)].sort() };
}

/** A move of the VM failed for good. */
export function vmFailed(
  draft: StateDraft,
  f: WritableFacts,
  task: TaskFacts,
  failure: Pick<LogEventOf<'migration.failed'>['data'], 'serverId' | 'errorType' | 'reason' | 'cause'>,
): void {
  const { serverId, errorType, reason, cause } = failure;
  if (!quarantines(errorType, cause)) return;
  const { sequence, atMs } = draft;
  const fact = { sequence, atMs, taskId: task.id, errorType, text: reason.text, absentSinceMs: null };
  f.vmFailures = draft.put(f.vmFailures, serverId, fact);
}

/** A decision says which VMs with a failed move are absent. */
export function absenceNoted(
  draft: StateDraft,
  f: WritableFacts,
  { gone, back }: { readonly gone: readonly string[]; readonly back: readonly string[] },
  snapshotMs: number,
): void {
  const set = (serverId: string, absentSinceMs: number | null): void => {
    const failure = f.vmFailures.get(serverId);
    if (failure === undefined || (failure.absentSinceMs === null) === (absentSinceMs === null)) return;
    f.vmFailures = draft.put(f.vmFailures, serverId, { ...failure, absentSinceMs });
  };
  for (const serverId of gone) set(serverId, snapshotMs);
  for (const serverId of back) {
    if (!f.vmFailures.has(serverId)) failureMoved(draft, f, serverId);
    set(serverId, null);
  }
}

/** A VM came from another aggregate: the failure of its move goes with it, and is not forgotten where the VM is absent. */
function failureMoved(draft: StateDraft, f: WritableFacts, serverId: string): void {
  for (const aggregate of draft.holders('vmFailures', serverId)) {
    const from = draft.facts(aggregate);
    const failure = from.vmFailures.get(serverId);
    const known = f.vmFailures.get(serverId);
    if (failure === undefined || failure.absentSinceMs === null) continue;
    from.vmFailures = draft.remove(from.vmFailures, [serverId]);
    if (known === undefined || known.sequence < failure.sequence)
      f.vmFailures = draft.put(f.vmFailures, serverId, failure);
  }
}

function quarantineAsked(draft: StateDraft, event: LogEventOf<'instance.quarantined'>): void {
  const c = draft.controls(event.aggregate);
  if (!firstTime(draft, c, event.id)) return;
  const { serverId, seconds } = event.data;
  c.operatorQuarantines = draft.put(c.operatorQuarantines, serverId, { ...asked(draft, event), seconds });
}

/** A VM may have come from another aggregate, so its release reaches its quarantines in all of them. */
function quarantineReleased(draft: StateDraft, event: LogEventOf<'instance.unquarantined'>): void {
  if (!firstTime(draft, draft.controls(event.aggregate), event.id)) return;
  const { serverId } = event.data;
  if (draft.all.operatorQuarantines.has(serverId)) {
    const c = draft.allFacts();
    c.operatorQuarantines = draft.remove(c.operatorQuarantines, [serverId]);
  }
  for (const aggregate of draft.addressed(ALL)) {
    const current = draft.of(aggregate);
    const known =
      current?.operatorQuarantines.has(serverId) || current?.vmFailures.has(serverId) || current?.damaged.has(serverId);
    if (!known) continue;
    const f = draft.facts(aggregate);
    f.operatorQuarantines = draft.remove(f.operatorQuarantines, [serverId]);
    f.vmFailures = draft.remove(f.vmFailures, [serverId]);
    f.damaged = draft.remove(f.damaged, [serverId]);
  }
}

/** @param looked the decision looked at the servers of its snapshot, so it says which are back */
export function forgetQuarantines(
  draft: StateDraft,
  f: WritableFacts,
  snapshotMs: number,
  { looked }: { readonly looked: boolean },
): void {
  if (looked)
    f.vmFailures = draft.drop(
      f.vmFailures,
      ({ absentSinceMs }) => absentSinceMs !== null && absentSinceMs <= snapshotMs - FORGET_ABSENT_MS,
    );
  const ended = (q: { readonly atMs: number; readonly seconds: number }): boolean =>
    q.seconds >= 0 && q.atMs + q.seconds * 1000 < snapshotMs - FORGET_QUARANTINE_MS;
  f.operatorQuarantines = draft.drop(f.operatorQuarantines, ended);
  if ([...draft.all.operatorQuarantines.values()].some(ended)) {
    const c = draft.allFacts();
    c.operatorQuarantines = draft.drop(c.operatorQuarantines, ended);
  }
}

export const quarantineEffects = {
  'instance.quarantined': quarantineAsked,
  'instance.unquarantined': quarantineReleased,
} satisfies Partial<Effects>;
