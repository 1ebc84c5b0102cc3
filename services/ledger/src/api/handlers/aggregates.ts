import { aggregateState, pacesOfAll } from '@kronos/projections';
import { RECENT_DECISIONS } from '../../memory/history.ts';
import { ApiError } from '../answer.ts';
import type { ApiContext, Handlers } from '../context.ts';
import { drainRunAnswer } from '../drainRun.ts';
import { fleetLine } from '../fleet.ts';
import { namesFromLog } from '../names.ts';
import { comingUp } from '../next.ts';
import { limitOf, sinceOf } from '../query.ts';
import { searchAnswer } from '../search.ts';
import { imbalanceAnswer } from '../series.ts';
import { aggregateNames, aggregatePage, aggregateSummary, statesOf } from '../stateJson.ts';

/** Maximum number of characters of a search. */
const QUERY_CHARACTERS = 200;

const inMemory = (history: ApiContext['input']['history'], aggregate: string) => ({
  decisions: history.decisions(aggregate),
  runs: history.runs(aggregate),
});

/** The aggregates, their imbalance over time, drains in turn, and the search over all of it. */
export const aggregatesHandlers = ({
  input,
  lookups,
}: ApiContext): Pick<Handlers, 'aggregates' | 'fleet' | 'aggregate' | 'imbalance' | 'search' | 'drainRun'> => ({
  aggregates: () => ({
    sequence: input.state().sequence,
    time: lookups.now(),
    aggregates: statesOf(input.scope, input.state()).map((state) => ({
      ...aggregateSummary(state, input.clock()),
      inScope: input.scope.includes(state.aggregate),
    })),
  }),

  async fleet() {
    const seen = new Map((await input.names.skylines()).map((one) => [one.aggregate, one]));
    const nowMs = input.clock();
    const paces = pacesOfAll(input.state());
    return {
      sequence: input.state().sequence,
      time: lookups.now(),
      aggregates: statesOf(input.scope, input.state()).map((state) =>
        fleetLine(
          {
            ...inMemory(input.history, state.aggregate),
            state,
            seen: seen.get(state.aggregate),
            inScope: input.scope.includes(state.aggregate),
            paces,
          },
          nowMs,
        ),
      ),
    };
  },

  async aggregate({ params }) {
    const state = input.state();
    const name = lookups.known(params.name);
    const nowMs = input.clock();
    const own = aggregateState(state, name);
    const page = aggregatePage(own, nowMs);
    const decisions = input.history.decisions(name);
    const nameless = page.quarantine.flatMap(({ serverId, serverName }) => (serverName === null ? [serverId] : []));
    const nameOf = await namesFromLog(nameless, lookups.names(), input.names);
    return {
      ...page,
      next: comingUp(own, page, { decisions, nameOf }, nowMs),
      inScope: input.scope.includes(name),
      sequence: state.sequence,
      time: lookups.now(),
    };
  },

  imbalance({ params, query }) {
    const name = lookups.known(params.name);
    const points = limitOf(query, { name: 'points', usual: 500, least: 10, most: RECENT_DECISIONS });
    const decisions = lookups.decisionsSince(name, sinceOf(query));
    return imbalanceAnswer(decisions, input.history.runs(name), { points, near: query.get('near') });
  },

  drainRun({ params, query }) {
    const state = input.state();
    return drainRunAnswer(aggregateState(state, lookups.known(params.name)), state.sequence, query);
  },

  async search({ query }) {
    const text = (query.get('q') ?? '').trim();
    if (text === '' || text.length > QUERY_CHARACTERS)
      throw new ApiError(400, `give a search text of at most ${QUERY_CHARACTERS} characters: ?q=TEXT`);
    const limit = limitOf(query);
    const aggregates = aggregateNames(input.scope, input.state());
    const names = await input.names.find(text.toLowerCase(), limit);
    return searchAnswer(input.state(), aggregates, { query: text, limit }, names);
  },
});
