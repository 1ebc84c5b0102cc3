/** Destinations that Nova refused: rules of its scheduler that no API shows. */
import { byText, type LogEventOf, type Snapshot, timeMs } from '@kronos/contracts';
import { consequencesOf, markOf, REFUSAL_KEPT_MS, shapeOf } from '@kronos/facts';
import type { StateDraft, WritableFacts } from './draft.ts';
import type { KnownOf } from './elsewhere.ts';
import { MAX_REFUSALS, type RefusalFact } from './state.ts';

const refusalKey = (serverId: string, host: string): string => `${serverId} ${host}`;

/** An attempt failed, and Nova refused its destination. */
export function refused(
  draft: StateDraft,
  f: WritableFacts,
  { serverId, destination, cause, reason, nova }: LogEventOf<'migration.failed'>['data'],
): void {
  if (cause === undefined || !consequencesOf(cause).remembered) return;
  const { sequence, atMs } = draft;
  const text = nova?.reason ?? reason.text;
  const fact = { sequence, atMs, serverId, host: destination, text, shape: null, mark: null };
  f.refusals = draft.putNewest(f.refusals, refusalKey(serverId, destination), fact, MAX_REFUSALS);
}

/** A server arrived on a host: Nova refuses it there no more. */
export function forgetRefusal(draft: StateDraft, serverId: string, host: string): void {
  const key = refusalKey(serverId, host);
  for (const aggregate of draft.holders('refusals', key)) {
    const f = draft.facts(aggregate);
    f.refusals = draft.remove(f.refusals, [key]);
  }
}

/** The refusals that the log has, whatever the aggregate: the newest of a server on a host, in the order of the log. */
export function refusalsOf(state: KnownOf<'refusals'>): RefusalFact[] {
  const newest = new Map<string, RefusalFact>();
  for (const { refusals } of [state, ...state.elsewhere])
    for (const [key, one] of refusals) if ((newest.get(key)?.sequence ?? 0) < one.sequence) newest.set(key, one);
  return [...newest.values()].sort((a, b) => a.sequence - b.sequence);
}

/** A decision says what the servers and the destinations of new refusals are. */
export function refusalsSeen(draft: StateDraft, seen: LogEventOf<'cycle.decided'>['data']['novaRefusals']): void {
  for (const { serverId, host, shape, mark } of seen ?? []) {
    const key = refusalKey(serverId, host);
    for (const aggregate of draft.holders('refusals', key)) {
      const known = draft.of(aggregate)?.refusals.get(key);
      if (known === undefined || known.mark !== null) continue;
      const f = draft.facts(aggregate);
      f.refusals = draft.put(f.refusals, key, { ...known, shape, mark });
    }
  }
}

/** A person repaired the host. */
export function forgetRefusalsOf(draft: StateDraft, f: WritableFacts, host: string): void {
  f.refusals = draft.drop(f.refusals, (refusal) => refusal.host === host);
}

export function forgetRefusals(draft: StateDraft, f: WritableFacts, snapshotMs: number): void {
  f.refusals = draft.drop(f.refusals, ({ atMs }) => atMs < snapshotMs - REFUSAL_KEPT_MS);
}

/**
 * The refusals that no decision has seen yet, with what the snapshot says of them; undefined: none. Whatever the decision: a pause may last
 * for hours, and the server or its host be gone after it. Only what the snapshot is sure of is noted, since any difference from it later
 * ends the refusal: none of a list with problems, none that is older than the refusal, and no destination whose traits could not be read.
 */
export function newRefusals(
  state: KnownOf<'refusals'>,
  { servers, hosts, problems, observedFrom }: Pick<Snapshot, 'servers' | 'hosts' | 'problems' | 'observedFrom'>,
): LogEventOf<'cycle.decided'>['data']['novaRefusals'] {
  if (problems.length > 0) return undefined;
  const observedMs = timeMs(observedFrom);
  const found = refusalsOf(state).flatMap(({ serverId, host: name, atMs, mark }) => {
    const isNew = mark === null && atMs <= observedMs;
    const server = isNew ? servers.find(({ id }) => id === serverId) : undefined;
    const host = server === undefined ? undefined : hosts.find((one) => one.name === name);
    if (server === undefined || host === undefined) return [];
    const seen = markOf(host, servers);
    return seen === null ? [] : [{ serverId, host: name, shape: shapeOf(server), mark: seen }];
  });
  return found.length === 0
    ? undefined
    : found.sort((a, b) => byText(refusalKey(a.serverId, a.host), refusalKey(b.serverId, b.host)));
}
