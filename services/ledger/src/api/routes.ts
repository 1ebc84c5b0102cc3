import type { Clock } from '@kronos/clock';
import { ALL, type LogEventOf, type StoredEvent } from '@kronos/contracts';
import { BadObject, type EventLog, MissingObject } from '@kronos/eventlog';
import { aggregateState, type LogState, pacesOfAll } from '@kronos/projections';
import { recordedDecision } from '@kronos/replay';
import type { Status } from '@kronos/status';
import { type HttpServer, sendTagged } from '@kronos/telemetry';
import type { Aside } from '../aside/aside.ts';
import { type History, RECENT_DECISIONS } from '../history.ts';
import { BadRequest, costly, decode, limitOf, reply, sinceOf, timeIn, wholeNumber } from './answer.ts';
import { hostsAnswer, planHostsAnswer, vmsAnswer } from './cycle.ts';
import { type HistoryEntry, historyEntry, type Ids, idsOf } from './describe.ts';
import { endpoints, MAX_LIMIT, OPENAPI, PREFIX } from './endpoints.ts';
import { explainVm } from './explainVm.ts';
import { hostValues } from './hostValues.ts';
import { hostsOf, movesOf } from './moves.ts';
import { comingUp } from './next.ts';
import { openApi } from './openapi.ts';
import {
  aggregateNames,
  aggregatePage,
  aggregateSummary,
  cooldownPage,
  findPlan,
  findTask,
  hostPage,
  type NameOf,
  planList,
  quarantinePage,
  statesOf,
  taskPage,
  vmPage,
} from './pages.ts';
import { runbookReader } from './runbook.ts';
import type { Answer, Operation } from './schemas.ts';
import { nameFinder, searchAnswer } from './search.ts';
import { imbalanceAnswer } from './series.ts';
import { snapshotReader } from './snapshots.ts';
import { USUAL_MS, whatIfAnswer } from './whatIf.ts';

export type ApiInput = {
  readonly state: () => LogState;
  readonly history: History;
  readonly log: EventLog;
  readonly aside: Aside;
  /** Aggregates of the configuration. */
  readonly scope: readonly string[];
  readonly version: string;
  readonly clock: () => number;
  readonly monotonic: () => number;
  readonly after: Clock['after'];
  /** What is wrong with the installation. */
  readonly status: () => Promise<Status>;
};

/** Maximum number of events that one request reads from the log; the answer says where to continue. */
const MAX_READ = 5_000;
/** Maximum number of concurrent requests that read from the log. */
const READS_AT_ONCE = 2;
/** Maximum number of concurrent requests that make a decision again, and that run a what-if. */
const DECISIONS_AT_ONCE = 2;
const WHAT_IFS_AT_ONCE = 1;
/** The range of a host's values. */
const VALUES_MS = 6 * 3_600_000;
/** Maximum number of characters of a search. */
const QUERY_CHARACTERS = 200;
/** Maximum number of snapshots and plan details that are read concurrently. */
const LOADS_AT_ONCE = 4;

type Asked = { readonly params: Readonly<Record<string, string>>; readonly query: URLSearchParams };
type Handlers = { readonly [O in Operation]: (asked: Asked) => Answer<O> | Promise<Answer<O>> };

/** What else uses the interface from within. */
export type Api = { readonly drain: (aggregate: string, host: string) => Promise<Answer<'hostDrain'>> };

/** Adds the read-only JSON interface to the server. */
export function addRoutes(http: HttpServer, input: ApiInput): Api {
  const { history, log, scope, clock } = input;
  const reading = costly(READS_AT_ONCE);
  const loading = costly(LOADS_AT_ONCE);
  const snapshots = snapshotReader(log, input.monotonic, loading);
  const explaining = costly(DECISIONS_AT_ONCE);
  const simulating = costly(WHAT_IFS_AT_ONCE);
  const findNames = nameFinder(input);
  const runbook = runbookReader();

  const handlers: Handlers = {
    about: () => ({
      service: 'kronos-ledger',
      version: input.version,
      sequence: input.state().sequence,
      time: now(),
      routes: Object.values(endpoints).map(({ path, query = {} }) => {
        const names = Object.keys(query);
        return `${PREFIX}${path}${names.length === 0 ? '' : `?${names.map((name) => `${name}=`).join('&')}`}`;
      }),
    }),

    async alarms() {
      const { timeMs, well, alarms, services } = await input.status();
      return {
        sequence: input.state().sequence,
        time: new Date(timeMs).toISOString(),
        well,
        alarms,
        services:
          services?.map(({ timeMs: _, storedAtMs, ...service }) => ({
            ...service,
            reportedAt: new Date(storedAtMs).toISOString(),
          })) ?? null,
      };
    },

    aggregates: () => ({
      sequence: input.state().sequence,
      time: now(),
      aggregates: statesOf(scope, input.state()).map((state) => ({
        ...aggregateSummary(state, clock()),
        inScope: scope.includes(state.aggregate),
      })),
    }),

    aggregate({ params }) {
      const state = input.state();
      const name = known(params.name);
      const nowMs = clock();
      const own = aggregateState(state, name);
      const page = aggregatePage(own, nowMs);
      return {
        ...page,
        next: comingUp(own, page, history.decisions(name), nowMs),
        inScope: scope.includes(name),
        sequence: state.sequence,
        time: now(),
      };
    },

    imbalance: ({ params, query }) =>
      imbalanceAnswer(
        decisionsSince(known(params.name), sinceOf(query)),
        limitOf(query, { name: 'points', usual: 500, least: 10, most: RECENT_DECISIONS }),
      ),

    hosts: async ({ params, query }) => hostsAnswer(await snapshotOf(known(params.name), query.get('snapshot'))),

    async vms({ params, query }) {
      const filter = {
        host: query.get('host'),
        id: query.get('id'),
        limit: limitOf(query),
        after: query.get('after'),
      };
      return vmsAnswer(await snapshotOf(known(params.name), query.get('snapshot')), filter);
    },

    plans({ query }) {
      const limit = limitOf(query);
      const plans = chosen(query).flatMap((state) => planList(state, limit));
      return { plans: plans.sort((a, b) => b.sequence - a.sequence).slice(0, limit) };
    },

    async plan({ params: { id = '' }, query }) {
      const found = findPlan(input.state(), id);
      const decision = await decisionOf(id, query);
      if (found === null && decision === null) throw noPlan(id);
      return {
        plan: found?.page ?? null,
        tasks: found?.tasks ?? [],
        decision: decision === null ? null : await inFull(decision),
        events: about((e) => e.planId === id),
      };
    },

    async planHosts({ params: { id = '' }, query }) {
      const decision = await decisionOf(id, query);
      const steps = decision?.data.plan?.steps;
      if (decision === null || steps === undefined) throw noPlan(id);
      const { aggregate, data } = decision;
      const snapshot = await snapshots.recorded(aggregate, data.snapshotId, Date.parse(data.snapshotTime));
      return planHostsAnswer(snapshot ?? gone(data.snapshotId), id, steps);
    },

    tasks({ query }) {
      const limit = limitOf(query);
      const tasks = chosen(query).flatMap((state) =>
        [...state.tasks.values()]
          .filter(({ end }) => end === null)
          .map((task) => ({ aggregate: state.aggregate, ...taskPage(task) })),
      );
      tasks.sort(
        (a, b) => Number(a.started === null) - Number(b.started === null) || (a.notBefore < b.notBefore ? -1 : 1),
      );
      return { sequence: input.state().sequence, total: tasks.length, tasks: tasks.slice(0, limit) };
    },

    task({ params: { id = '' } }) {
      const found = findTask(input.state(), id);
      const events = about((e) => e.taskId === id);
      if (found === null && events.length === 0)
        throw new BadRequest(404, `no task ${JSON.stringify(id)} in flight or among the recent events`);
      return { task: found === null ? null : { aggregate: found.aggregate, ...taskPage(found.task) }, events };
    },

    decisions({ query }) {
      const aggregate = query.get('aggregate');
      if (aggregate === null) throw new BadRequest(400, 'name an aggregate: ?aggregate=NAME');
      const decisions = decisionsSince(known(aggregate), sinceOf(query));
      return { decisions: decisions.slice(-limitOf(query, { usual: RECENT_DECISIONS, most: RECENT_DECISIONS })) };
    },

    async history({ query }) {
      const aggregate = query.get('aggregate');
      if (aggregate !== null && aggregate !== ALL) known(aggregate);
      const since = sinceOf(query);
      const limit = limitOf(query);
      const wanted = ({ event }: StoredEvent) => aggregate === null || event.aggregate === aggregate;
      if (since !== null && !inMemory(since)) return { from: 'log', ...(await fromLog(since, limit, wanted)) };
      const found: StoredEvent[] = [];
      for (const stored of history.events()) {
        if (since !== null && !reaches(stored.sequence, stored.storedAt, since)) break;
        if (wanted(stored)) found.push(stored);
        if (since === null && found.length === limit) break;
      }
      found.reverse();
      return { from: 'memory', events: found.slice(0, limit).map(historyEntry), next: found[limit]?.sequence ?? null };
    },

    vm({ params: { id = '' } }) {
      const places = statesOf(scope, input.state()).flatMap((state) => vmPage(state, id, clock()) ?? []);
      const events = about((e) => e.serverId === id);
      if (places.length === 0 && events.length === 0)
        throw new BadRequest(404, `the log has no recent move or quarantine of a VM ${JSON.stringify(id)}`);
      const ran = hostsOf(movesOf(history.events(), (_, serverId) => serverId === id, MAX_LIMIT));
      return { serverId: id, aggregates: places, ran, events };
    },

    host({ params: { name = '' } }) {
      const places = statesOf(scope, input.state()).flatMap((state) => hostPage(state, name, clock()) ?? []);
      const events = recent((stored) => concerns(stored, name));
      if (places.length === 0 && events.length === 0)
        throw new BadRequest(404, `the log has no recent event about a host ${JSON.stringify(name)}`);
      return { host: name, aggregates: places, events };
    },

    quarantine({ query }) {
      const nameOf = names();
      return { quarantine: chosen(query).flatMap((state) => quarantinePage(state, clock(), nameOf)) };
    },

    moves({ params, query }) {
      const aggregate = known(params.name);
      const { oldest } = history;
      return {
        aggregate,
        since: oldest === null ? null : new Date(oldest.storedAt).toISOString(),
        moves: movesOf(history.events(), (of) => of === aggregate, limitOf(query)),
      };
    },

    async vmWhy({ params: { name, id = '' }, query }) {
      const aggregate = known(name);
      const snapshot = query.get('snapshot');
      const decided =
        snapshot === null ? aggregateState(input.state(), aggregate).decided : decisionAbout(aggregate, snapshot);
      const stored = decided === null ? null : await eventAt(decided.sequence);
      if (stored === null) throw new BadRequest(404, `there is no decision about ${JSON.stringify(name)} yet`);
      return await explaining(() => explainVm({ log, aside: input.aside, reading }, stored, id));
    },

    async hostDrain({ params: { name, host = '' } }) {
      const whole = input.state();
      const state = aggregateState(whole, known(name));
      const snapshot = await snapshotOf(state.aggregate, null);
      const asked = { snapshot, state, hosts: [host], paces: pacesOfAll(whole) };
      const [drain] = await explaining(() => input.aside.run('drain', asked));
      if (drain === undefined)
        throw new BadRequest(404, `the newest snapshot of ${JSON.stringify(name)} has no host ${JSON.stringify(host)}`);
      return drain;
    },

    async hostValues({ params: { name, host = '' }, query }) {
      const aggregate = known(name);
      const sinceMs = timeIn(query, 'since') ?? clock() - VALUES_MS;
      const decisions = decisionsSince(aggregate, new Date(sinceMs));
      return await explaining(() => hostValues({ log, aside: input.aside, reading }, aggregate, host, decisions));
    },

    async whatIf({ params, query }) {
      const aggregate = known(params.name);
      const untilMs = timeIn(query, 'until') ?? clock();
      const sinceMs = timeIn(query, 'since') ?? untilMs - USUAL_MS;
      return await simulating(() =>
        whatIfAnswer(log, input, { aggregate, sinceMs, untilMs, sets: query.getAll('set') }),
      );
    },

    cooldowns({ query }) {
      const nameOf = names();
      const pages = chosen(query).map((state) => cooldownPage(state, clock(), nameOf));
      const vms = pages.flatMap((page) => page.vms).sort((a, b) => (a.until < b.until ? -1 : 1));
      return {
        aggregates: pages.flatMap(({ aggregate }) => aggregate ?? []),
        hosts: pages.flatMap(({ hosts }) => hosts),
        total: vms.length,
        vms: vms.slice(0, limitOf(query)),
      };
    },

    async search({ query }) {
      const text = (query.get('q') ?? '').trim();
      if (text === '' || text.length > QUERY_CHARACTERS)
        throw new BadRequest(400, `give a search text of at most ${QUERY_CHARACTERS} characters: ?q=TEXT`);
      const limit = limitOf(query);
      const aggregates = aggregateNames(scope, input.state());
      const names = await findNames(aggregates, text.toLowerCase(), limit);
      return searchAnswer(input.state(), aggregates, text, limit, names);
    },

    runbook({ params: { section = '' } }) {
      const found = runbook(section);
      if (found === null)
        throw new BadRequest(404, `the runbook of this installation has no section ${JSON.stringify(section)}`);
      return { section, text: found };
    },
  };

  serve(http, handlers);
  const document = JSON.stringify(openApi());
  http.route(OPENAPI, (_, response) => sendTagged(response, 'application/json; charset=utf-8', document));

  const now = (): string => new Date(clock()).toISOString();

  const noPlan = (id: string) =>
    new BadRequest(
      404,
      `no plan ${JSON.stringify(id)} among the recent ones; for an older one add ?sequence= with the sequence of its event, or use kronos explain plan`,
    );

  /** The names of VMs, as the recent plans have them. */
  function names(): NameOf {
    const found = new Map<string, string>();
    for (const { event } of history.events())
      if (event.type === 'cycle.decided')
        for (const { serverId, serverName } of event.data.plan?.steps ?? []) found.set(serverId, serverName);
    return (serverId) => found.get(serverId) ?? null;
  }

  /** The decision that made a plan; null when it is not found. */
  async function decisionOf(planId: string, query: URLSearchParams) {
    const known = findPlan(input.state(), planId)?.page.sequence ?? history.planSequence(planId);
    const sequence = wholeNumber(query, 'sequence') ?? known;
    const event = sequence === null ? null : (await eventAt(sequence))?.event;
    return event?.type === 'cycle.decided' && event.data.plan?.id === planId ? event : null;
  }

  /** With the reasons of its steps, which a large decision keeps beside the log; without them when those are gone. */
  async function inFull(decision: LogEventOf<'cycle.decided'>) {
    const { details } = decision.data;
    if (details === null) return decision;
    try {
      const bytes = await loading(() => log.objects.get(details));
      return { ...decision, data: { ...decision.data, ...recordedDecision(decision.data, bytes) } };
    } catch (error) {
      if (error instanceof MissingObject || error instanceof BadObject) return decision;
      throw error;
    }
  }

  function decisionsSince(aggregate: string, since: number | Date | null) {
    return history
      .decisions(aggregate)
      .filter(({ sequence, time }) => since === null || reaches(sequence, Date.parse(time), since));
  }

  /** @throws BadRequest when it is not in memory */
  function decisionAbout(aggregate: string, id: string) {
    const decision = history.decisions(aggregate).findLast(({ snapshotId }) => snapshotId === id);
    if (decision !== undefined) return decision;
    throw new BadRequest(
      404,
      `${JSON.stringify(aggregate)} has no recent decision about a snapshot ${JSON.stringify(id)}`,
    );
  }

  /** The newest snapshot, or a recorded one of which the decision is in memory. */
  async function snapshotOf(aggregate: string, id: string | null) {
    if (id === null) {
      const newest = await snapshots.newest(aggregate);
      if (newest === null)
        throw new BadRequest(404, `no snapshot of ${JSON.stringify(aggregate)} is kept: kronos status shows why`);
      return newest;
    }
    const decision = decisionAbout(aggregate, id);
    return (await snapshots.recorded(aggregate, id, Date.parse(decision.time))) ?? gone(id);
  }

  /** The aggregates that a query asks for: one, or all. */
  function chosen(query: URLSearchParams) {
    const name = query.get('aggregate');
    const states = statesOf(scope, input.state());
    if (name === null) return states;
    const one = states.filter((state) => state.aggregate === name);
    if (one.length === 0) throw new BadRequest(404, `no aggregate ${JSON.stringify(name)}`);
    return one;
  }

  /** @throws BadRequest for an aggregate that neither the configuration nor the log has */
  function known(aggregate = ''): string {
    if (!aggregateNames(scope, input.state()).includes(aggregate))
      throw new BadRequest(404, `no aggregate ${JSON.stringify(aggregate)}`);
    return aggregate;
  }

  const about = (wanted: (ids: Ids) => boolean) => recent((stored) => wanted(idsOf(stored.event)));

  /** Recent events, oldest first. */
  function recent(wanted: (stored: StoredEvent) => boolean): HistoryEntry[] {
    const found: HistoryEntry[] = [];
    for (const stored of history.events()) {
      if (wanted(stored)) found.push(historyEntry(stored));
      if (found.length === MAX_LIMIT) break;
    }
    return found.reverse();
  }

  /** Whether everything since then is still in memory. */
  function inMemory(since: number | Date): boolean {
    const { oldest } = history;
    if (oldest === null) return false;
    return (
      oldest.sequence === 1 ||
      // An event before the oldest one may have the same stamp.
      (typeof since === 'number' ? oldest.sequence <= since : oldest.storedAt < since.getTime())
    );
  }

  /**
   * Events of the log from there on, at most `limit` of them and found among at most MAX_READ. `next` is the sequence to
   * go on from; null at the end of the log.
   *
   * @throws Busy
   */
  const fromLog = (since: number | Date, limit: number, wanted: (stored: StoredEvent) => boolean) =>
    reading(async () => {
      const events: HistoryEntry[] = [];
      const from = typeof since === 'number' ? since : await firstSince(since);
      const last = input.state().sequence;
      const to = Math.min(last, from + MAX_READ - 1);
      let read = from - 1;
      for await (const stored of log.replay({ from, to })) {
        read = stored.sequence;
        if (wanted(stored)) events.push(historyEntry(stored));
        if (events.length === limit) break;
      }
      return { events, next: read < last ? read + 1 : null };
    });

  /** Sequence of the first event that was stored at that time or later: halves the log until it is found. */
  async function firstSince(time: Date): Promise<number> {
    let before = 0;
    let end = input.state().sequence + 1;
    while (end - before > 1) {
      const middle = Math.floor((before + end) / 2);
      const stored = await eventAt(middle);
      if (stored !== null && stored.storedAt < time.getTime()) before = middle;
      else end = middle;
    }
    return end;
  }

  async function eventAt(sequence: number): Promise<StoredEvent | null> {
    if (sequence < 1 || sequence > input.state().sequence) return null;
    for await (const stored of log.replay({ from: sequence, to: sequence })) return stored;
    return null;
  }

  return { drain: async (name, host) => handlers.hostDrain({ params: { name, host }, query: new URLSearchParams() }) };
}

/** Routes every endpoint: the longest fixed part of its path finds it, and the segments after it are matched one by one. */
function serve(http: HttpServer, handlers: Handlers): void {
  const all = (Object.keys(endpoints) as Operation[]).map((operation) => {
    const path = `${PREFIX}${endpoints[operation].path}`;
    return { path, prefix: path.replace(/\{.*$/, ''), handle: handlers[operation] as (asked: Asked) => object };
  });
  for (const [prefix, below] of Map.groupBy(all, (one) => one.prefix))
    http.route(prefix, (_, response, url) =>
      reply(response, () => {
        for (const { path, handle } of below) {
          const params = match(path, url.pathname);
          if (params !== null) return handle({ params, query: url.searchParams });
        }
        throw new BadRequest(404, `there is no ${url.pathname}; ${OPENAPI} describes the API`);
      }),
    );
}

/** The values of the placeholders of a path, decoded; null: it is another path. */
function match(path: string, pathname: string): Record<string, string> | null {
  const wanted = path.split('/');
  const given = pathname.split('/');
  if (given.length !== wanted.length) return null;
  const params: Record<string, string> = {};
  for (const [i, segment] of wanted.entries()) {
    const value = given[i] ?? '';
    if (segment.startsWith('{')) params[segment.slice(1, -1)] = decode(value);
    else if (segment !== value) return null;
  }
  return params;
}

function gone(snapshotId: string): never {
  throw new BadRequest(
    410,
    `the snapshot ${snapshotId} is no longer kept: [nats] snapshot_max_age sets how long snapshots are kept`,
  );
}

/** Whether an event is at or after that sequence or time. */
const reaches = (sequence: number, timeMs: number, since: number | Date): boolean =>
  typeof since === 'number' ? sequence >= since : timeMs >= since.getTime();

function concerns({ event }: StoredEvent, host: string): boolean {
  switch (event.type) {
    case 'migration.started':
    case 'migration.observed':
    case 'migration.completed':
    case 'migration.failed':
    case 'migration.skipped':
    case 'migration.suspected':
    case 'migration.abortRequested':
    case 'migration.abortRefused':
      return event.data.from === host || event.data.destination === host;
    default:
      return false;
  }
}
