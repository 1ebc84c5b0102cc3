import type { SnapshotTaken } from '@kronos/contracts';
import type { LogState } from '@kronos/projections';
import { newestSnapshot } from '@kronos/replay';
import type { Aside } from '../aside/aside.ts';
import { byRank, type FoundNames, fit } from '../aside/names.ts';
import type { Answer } from './schemas.ts';
import { nullIfGone, type SnapshotSource } from './snapshots.ts';

type Found = Answer<'search'>['results'][number] & { readonly rank: number };

/** Aggregates, plans and tasks that the log knows now. `query` is in lower case. Pure. */
function findInLog(state: LogState, aggregates: readonly string[], query: string): Found[] {
  const found: Found[] = [];
  const nothing = { aggregate: null, host: null, planId: null, sequence: null, serverId: null };
  for (const name of aggregates) {
    const rank = fit(query, [name]);
    if (rank !== null) found.push({ ...nothing, kind: 'aggregate', id: name, name, aggregate: name, rank });
  }
  for (const [aggregate, { plans, recentPlans, tasks }] of state.aggregates) {
    for (const { id, sequence } of [...plans.values(), ...recentPlans]) {
      const rank = fit(query, [id]);
      if (rank !== null) found.push({ ...nothing, kind: 'plan', id, name: id, aggregate, planId: id, sequence, rank });
    }
    for (const { id, planId, destination, step } of tasks.values()) {
      const rank = fit(query, [id]);
      if (rank === null) continue;
      const { serverId, serverName: name } = step;
      found.push({ ...nothing, kind: 'task', id, name, aggregate, host: destination, planId, serverId, rank });
    }
  }
  return found;
}

/** Everything that fits, the best first. Pure. */
export function searchAnswer(
  state: LogState,
  aggregates: readonly string[],
  query: string,
  limit: number,
  names: FoundNames,
): Answer<'search'> {
  const inLog = findInLog(state, aggregates, query.toLowerCase());
  const named = names.found.map(
    (one): Found => ({
      ...one,
      planId: null,
      sequence: null,
      serverId: one.kind === 'vm' ? one.id : null,
    }),
  );
  return {
    query,
    total: inLog.length + names.total,
    results: [...inLog, ...named]
      .sort(byRank)
      .slice(0, limit)
      .map(({ rank: _, ...result }) => result),
    namesSince: names.oldest,
  };
}

/** Names that were read this long ago are as good as new. */
const FRESH_MS = 30_000;
/** Older names than these are not used before they were read again. */
const USABLE_MS = 600_000;
/** Snapshots read at once. */
const READS_AT_ONCE = 4;

export type NamesInput = {
  readonly log: SnapshotSource & { readonly objects: { get(ref: SnapshotTaken['data']['body']): Promise<Uint8Array> } };
  readonly aside: Aside;
  readonly monotonic: () => number;
};

/**
 * Finds hosts and VMs of the newest snapshots by name. The names are read when somebody searches, in the background where
 * those that are kept will do: what it costs does not grow with the number of searches.
 */
export function nameFinder({ log, aside, monotonic }: NamesInput) {
  const kept = new Map<string, { readonly digest: string | null; readonly atMs: number }>();
  let refreshing: Promise<void> | null = null;
  aside.onEnd(() => kept.clear());

  async function read(aggregate: string): Promise<void> {
    const taken = await newestSnapshot(log, aggregate);
    const body = taken?.data.body ?? null;
    const digest = body?.digest ?? null;
    if (kept.get(aggregate)?.digest !== digest) {
      const bytes = body === null ? null : await log.objects.get(body).catch(nullIfGone);
      const stored = bytes === null || taken === null ? null : { bytes, digest, name: taken.data.snapshotId };
      await aside.run('names', { aggregate, body: stored });
    }
    kept.set(aggregate, { digest, atMs: monotonic() });
  }

  async function refresh(aggregates: readonly string[]): Promise<void> {
    const left = aggregates.filter((name) => ageMs(name) >= FRESH_MS);
    const reader = async (): Promise<void> => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) await read(next);
    };
    await Promise.all(Array.from({ length: READS_AT_ONCE }, reader));
  }

  const ageMs = (aggregate: string): number => {
    const atMs = kept.get(aggregate)?.atMs;
    return atMs === undefined ? Number.POSITIVE_INFINITY : monotonic() - atMs;
  };

  /** `query` is in lower case. */
  return async (aggregates: readonly string[], query: string, limit: number): Promise<FoundNames> => {
    const oldest = aggregates.reduce((most, name) => Math.max(most, ageMs(name)), 0);
    if (oldest >= FRESH_MS) {
      refreshing ??= refresh(aggregates).finally(() => {
        refreshing = null;
      });
      if (oldest >= USABLE_MS) await refreshing;
      else refreshing.catch(() => undefined);
    }
    return await aside.run('find', { query, limit });
  };
}
