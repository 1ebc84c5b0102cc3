import { ALL, attemptIn, iso, type StoredEvent } from '@kronos/contracts';
import { ApiError } from '../answer.ts';
import type { ApiContext, Handlers } from '../context.ts';
import { historyEntry, idsOf } from '../describe.ts';
import { MAX_LIMIT } from '../endpoints.ts';
import { hostsOf, movesOf } from '../moves.ts';
import { namesFromLog } from '../names.ts';
import { limitOf, sinceOf } from '../query.ts';
import { isSince } from '../reads.ts';
import { hostPage, statesOf, vmPage } from '../stateJson.ts';

/** Events: all of them, and those about a VM, a host or the moves of an aggregate. */
export const eventsHandlers = ({
  input,
  lookups,
  reads,
}: ApiContext): Pick<Handlers, 'history' | 'vm' | 'host' | 'moves'> => ({
  async history({ query }) {
    const aggregate = query.get('aggregate');
    if (aggregate !== null && aggregate !== ALL) lookups.known(aggregate);
    const since = sinceOf(query);
    const limit = limitOf(query);
    const wanted = ({ event }: StoredEvent) => aggregate === null || event.aggregate === aggregate;
    if (since !== null && !reads.inMemory(since))
      return { from: 'log', ...(await reads.fromLog(since, limit, wanted)) };
    const found: StoredEvent[] = [];
    for (const stored of input.history.events()) {
      if (since !== null && !isSince(stored.sequence, stored.storedAt, since)) break;
      if (wanted(stored)) found.push(stored);
      if (since === null && found.length === limit) break;
    }
    found.reverse();
    const told = found.slice(0, limit);
    const ids = told.flatMap(({ event }) => idsOf(event).serverId ?? []);
    const nameOf = await namesFromLog(ids, lookups.names(), input.names);
    const events = told.map((stored) => historyEntry(stored, nameOf));
    return { from: 'memory', events, next: found[limit]?.sequence ?? null };
  },

  async vm({ params: { id = '' } }) {
    const places = statesOf(input.scope, input.state()).flatMap((state) => vmPage(state, id, input.clock()) ?? []);
    const events = reads.about((e) => e.serverId === id);
    const cells = await lookups.cellPlans(id);
    if (places.length + events.length + cells.length === 0)
      throw new ApiError(404, `the log has no recent move or quarantine of a VM ${JSON.stringify(id)}`);
    const ran = hostsOf(movesOf(input.history.events(), (_, serverId) => serverId === id, MAX_LIMIT));
    return { serverId: id, aggregates: places, ran, cells, events };
  },

  host({ params: { name = '' } }) {
    const places = statesOf(input.scope, input.state()).flatMap((state) => hostPage(state, name, input.clock()) ?? []);
    const events = reads.recent((stored) => concerns(stored, name));
    if (places.length === 0 && events.length === 0)
      throw new ApiError(404, `the log has no recent event about a host ${JSON.stringify(name)}`);
    return { host: name, aggregates: places, events };
  },

  moves({ params, query }) {
    const aggregate = lookups.known(params.name);
    const { oldest } = input.history;
    const vm = query.get('vm');
    return {
      aggregate,
      since: oldest === null ? null : iso(oldest.storedAt),
      moves: movesOf(
        input.history.events(),
        (of, serverId) => of === aggregate && (vm === null || serverId === vm),
        limitOf(query),
      ),
    };
  },
});

function concerns({ event }: StoredEvent, host: string): boolean {
  const attempt = attemptIn(event);
  return attempt?.from === host || attempt?.destination === host;
}
