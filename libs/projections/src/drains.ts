/** Drains of hosts: what operators asked for, and how far each one is. */
import type { HostEvent, LogEventOf } from '@kronos/contracts';
import type { DrainRuleFacts } from '@kronos/rules';
import { asked, firstTime } from './controls.ts';
import { appended, type StateDraft, type WritableFacts } from './draft.ts';
import type { Effects } from './effects.ts';
import type { KnownOf } from './elsewhere.ts';
import {
  type AggregateState,
  DEPARTURES_KEPT,
  type DrainFacts,
  type FinishedDrain,
  type LogState,
  MAX_DRAINS,
  RECENT_DRAINS,
} from './state.ts';

/**
 * A command of a person about a drain. One that changes nothing is without effect. A host has one drain at a time, whatever its aggregates are:
 * each drain disables and enables the same service.
 */
function drainAsked(draft: StateDraft, event: LogEventOf<'host.drainAsked' | 'host.undrainAsked'>): void {
  const f = draft.facts(event.aggregate);
  if (!firstTime(draft, f, event.id)) return;
  const { host } = event.data;
  const open = drainsOf(draft, host);
  if (event.type === 'host.undrainAsked') {
    for (const { aggregate, drain } of open) {
      if (drain.undrainAsked !== null) continue;
      const next = { ...drain, undrainAsked: asked(draft, event) };
      const own = draft.facts(aggregate);
      if (drain.disabled === null && drain.claim === null) finish(draft, own, next, { outcome: 'withdrawn' });
      else put(draft, own, next);
    }
    return;
  }
  if (open.length > 0 || f.drains.size >= MAX_DRAINS) return;
  put(draft, f, {
    host,
    asked: asked(draft, event),
    undrainAsked: null,
    claim: null,
    failure: null,
    disabled: null,
    progress: null,
    drained: null,
  });
}

/** Folds an act of an executor for a drain. Only events about the drain in force count. */
function hostEvent(draft: StateDraft, event: HostEvent): void {
  const { drainId, host } = event.data;
  const drain = draft.of(event.aggregate)?.drains.get(host);
  if (drain === undefined || drain.asked.commandId !== drainId) return;
  const f = draft.facts(event.aggregate);
  const { sequence, atMs } = draft;
  switch (event.type) {
    case 'host.claimed': {
      const { act, attempt } = event.data;
      put(draft, f, { ...drain, claim: { sequence, atMs, act, attempt, executor: event.by.instance } });
      return;
    }
    case 'host.actFailed': {
      const { act, attempt, status, text } = event.data;
      const failed = { ...drain, claim: null, failure: { sequence, atMs, act, attempt, status, text } };
      if (act === 'disable' && drain.undrainAsked !== null) finish(draft, f, failed, { outcome: 'withdrawn' });
      else put(draft, f, failed);
      return;
    }
    case 'host.disabled': {
      const { byKronos, disabledReason } = event.data;
      const disabled = { sequence, atMs, byKronos, reason: disabledReason };
      put(draft, f, { ...drain, claim: null, failure: null, disabled });
      return;
    }
    case 'host.drained':
      if (drain.drained === null) put(draft, f, { ...drain, drained: { sequence, atMs } });
      return;
    case 'host.enabled':
      finish(draft, f, drain, { outcome: event.data.byKronos ? 'enabled' : 'enabledByOthers' });
      return;
    case 'host.leftDisabled':
      finish(draft, f, drain, { outcome: 'leftDisabled', text: event.data.reason.text });
      return;
    default:
      event satisfies never;
  }
}

/** Folds the progress of each drain as the planner saw it. A blocked cycle says nothing about it. */
export function drainsSeen(
  draft: StateDraft,
  { evacuations, stuck, snapshotId }: LogEventOf<'cycle.decided'>['data'],
  snapshotMs: number,
): void {
  for (const { host, state, left, waits = [] } of evacuations) {
    const drains = drainsOf(draft, host).filter(
      // A snapshot from before the host stopped taking servers shows no progress of its drain.
      ({ drain: { disabled } }) => disabled !== null && snapshotMs >= disabled.atMs,
    );
    if (drains.length === 0) continue;
    const blocked = stuck.flatMap((s) =>
      s.host === host && s.phase === 'evacuate'
        ? [{ serverId: s.serverId, serverName: s.serverName, reason: { code: s.reason.code, text: s.reason.text } }]
        : [],
    );
    const kept = blocked.slice(0, STUCK_KEPT);
    for (const { aggregate, drain } of drains) {
      const before = drain.progress;
      const same = before !== null && before.state === state && before.left === left;
      const [cycles, sinceMs] = same ? [before.cycles + 1, before.sinceMs] : [1, snapshotMs];
      // A VM that left after the snapshot was taken is still counted in it.
      const departures = (before?.departures ?? []).filter((departedMs) => departedMs > snapshotMs);
      const progress = { snapshotId, atMs: snapshotMs, state, cycles, sinceMs, left, departures, waits, stuck: kept };
      put(draft, draft.facts(aggregate), { ...drain, progress });
    }
  }
}

/** The drains of a host: it may have changed its aggregate since it was asked for. */
const drainsOf = (draft: StateDraft, host: string): { readonly aggregate: string; readonly drain: DrainFacts }[] =>
  draft.holders('drains', host).flatMap((aggregate) => {
    const drain = draft.of(aggregate)?.drains.get(host);
    return drain === undefined ? [] : [{ aggregate, drain }];
  });

/** The drain of a host that has not ended, and the aggregate in which it was asked for; null: there is none. */
export function openDrain(
  { aggregates }: Pick<LogState, 'aggregates'>,
  host: string,
): { readonly aggregate: string; readonly drain: DrainFacts } | null {
  for (const [aggregate, { drains }] of aggregates) {
    const drain = drains.get(host);
    if (drain !== undefined) return { aggregate, drain };
  }
  return null;
}

/** Folds that a VM left a host: until the next decision, the progress of its drain is the last count less these. */
export function departed(draft: StateDraft, host: string): void {
  const { atMs } = draft;
  for (const { aggregate, drain } of drainsOf(draft, host)) {
    if (drain.progress === null || atMs <= drain.progress.atMs) continue;
    const departures = appended(drain.progress.departures, atMs, DEPARTURES_KEPT);
    put(draft, draft.facts(aggregate), { ...drain, progress: { ...drain.progress, departures } });
  }
}

/** VMs on the host of a drain: as the last decision saw it, less those that left since; null: none has looked. */
export const drainLeft = ({ progress }: Pick<DrainFacts, 'progress'>): number | null =>
  progress === null ? null : Math.max(0, progress.left - progress.departures.length);

/** Servers that are named one by one as stuck on a host. */
const STUCK_KEPT = 100;

const put = (draft: StateDraft, f: WritableFacts, drain: DrainFacts): void => {
  f.drains = draft.put(f.drains, drain.host, drain);
};

function finish(
  draft: StateDraft,
  f: WritableFacts,
  drain: DrainFacts,
  { outcome, text = null }: { readonly outcome: FinishedDrain['outcome']; readonly text?: string | null },
): void {
  f.drains = draft.remove(f.drains, [drain.host]);
  const finished: FinishedDrain = {
    host: drain.host,
    asked: drain.asked,
    undrainAsked: drain.undrainAsked,
    drainedAtMs: drain.drained?.atMs ?? null,
    endedAtMs: draft.atMs,
    sequence: draft.sequence,
    outcome,
    text,
  };
  f.recentDrains = [...f.recentDrains.slice(-(RECENT_DRAINS - 1)), finished];
}

/**
 * The hosts that are being emptied: no VM moves to them, and their VMs leave once they are disabled.
 *
 * @param hosts of the aggregate: one may have come from another since its drain was asked for
 */
export function drainingHosts(state: KnownOf<'drains'>, hosts: readonly { readonly name: string }[]): string[] {
  const draining = ({ drains }: Pick<AggregateState, 'drains'>): string[] =>
    [...drains.values()].filter((drain) => drain.undrainAsked === null).map((drain) => drain.host);
  const others = state.elsewhere.flatMap(draining);
  const came = others.length === 0 ? [] : hosts.map(({ name }) => name).filter((name) => others.includes(name));
  return [...new Set([...draining(state), ...came])].sort();
}

/** A drain as the rule of the next act takes it. */
export const drainRuleFacts = ({ undrainAsked, disabled, claim, failure }: DrainFacts): DrainRuleFacts => ({
  undrainAsked: undrainAsked !== null,
  disabledBy: disabled === null ? null : disabled.byKronos ? 'kronos' : 'others',
  claim,
  failure,
});

export const drainEffects = {
  'host.drainAsked': drainAsked,
  'host.undrainAsked': drainAsked,
  'host.claimed': hostEvent,
  'host.disabled': hostEvent,
  'host.drained': hostEvent,
  'host.enabled': hostEvent,
  'host.leftDisabled': hostEvent,
  'host.actFailed': hostEvent,
} satisfies Partial<Effects>;
