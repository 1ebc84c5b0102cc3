import type { LogState } from '@kronos/projections';
import { byRank, type FoundNames, rankOf } from '../aside/names.ts';
import type { ApiAnswer } from './schemas.ts';

type Found = ApiAnswer<'search'>['results'][number] & { readonly rank: number };

/** Aggregates, plans and tasks that the log knows now. `query` is in lower case. Pure. */
function findInLog(state: LogState, aggregates: readonly string[], query: string): Found[] {
  const found: Found[] = [];
  const nothing = { aggregate: null, host: null, planId: null, sequence: null, serverId: null };
  for (const name of aggregates) {
    const rank = rankOf(query, [name]);
    if (rank !== null) found.push({ ...nothing, kind: 'aggregate', id: name, name, aggregate: name, rank });
  }
  for (const [aggregate, { plans, recentPlans, tasks }] of state.aggregates) {
    for (const { id, sequence } of [...plans.values(), ...recentPlans]) {
      const rank = rankOf(query, [id]);
      if (rank !== null) found.push({ ...nothing, kind: 'plan', id, name: id, aggregate, planId: id, sequence, rank });
    }
    for (const { id, planId, destination, step } of tasks.values()) {
      const rank = rankOf(query, [id]);
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
  { query, limit }: { readonly query: string; readonly limit: number },
  names: FoundNames,
): ApiAnswer<'search'> {
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
