import type { ServerResponse } from 'node:http';
import { ALL, type StoredEvent } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import { aggregateState, type LogState } from '@kronos/projections';
import type { Status } from '@kronos/status';
import { type HttpServer, sendBusy, sendJson } from '@kronos/telemetry';
import { type History, RECENT_DECISIONS } from '../history.ts';
import { type HistoryEntry, historyEntry, type Ids, idsOf } from './describe.ts';
import {
  aggregateNames,
  aggregatePage,
  aggregateSummary,
  findPlan,
  findTask,
  hostPage,
  planList,
  quarantinePage,
  statesOf,
  taskPage,
  vmPage,
} from './pages.ts';

export type ApiInput = {
  readonly state: () => LogState;
  readonly history: History;
  readonly log: Pick<EventLog, 'replay'>;
  /** Aggregates of the configuration. */
  readonly scope: readonly string[];
  readonly version: string;
  readonly clock: () => number;
  /** What is wrong with the installation. */
  readonly status: () => Promise<Status>;
};

const PREFIX = '/api/v1';
const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1000;
/** Events that one request reads from the log at most; the answer says where to go on. */
const MAX_READ = 5_000;
/** Requests that read from the log at once. */
const READS_AT_ONCE = 2;

/** A request that cannot be answered, with what the client should do about it. */
class BadRequest extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** As many requests as allowed read from the log now. */
class Busy extends Error {}

/** Adds the read-only JSON interface to the server. */
export function addRoutes(http: HttpServer, input: ApiInput): void {
  const { history, log, scope, clock } = input;
  let reading = 0;

  const route = (path: string, answer: (rest: string, query: URLSearchParams) => unknown | Promise<unknown>): void =>
    http.route(`${PREFIX}${path}`, async (_, response, url) => {
      await reply(response, () => answer(decode(url.pathname.slice(PREFIX.length + path.length)), url.searchParams));
    });

  route('', () => ({
    service: 'kronos-ledger',
    version: input.version,
    sequence: input.state().sequence,
    time: new Date(clock()).toISOString(),
    routes: ROUTES,
  }));

  route('/alarms', async () => {
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
  });

  route('/aggregates', () => ({
    sequence: input.state().sequence,
    time: new Date(clock()).toISOString(),
    aggregates: statesOf(scope, input.state()).map((state) => ({
      ...aggregateSummary(state, clock()),
      inScope: scope.includes(state.aggregate),
    })),
  }));

  route('/aggregates/', (name) => {
    const state = input.state();
    if (!aggregateNames(scope, state).includes(name)) throw new BadRequest(404, `no aggregate ${JSON.stringify(name)}`);
    return {
      ...aggregatePage(aggregateState(state, name), clock()),
      inScope: scope.includes(name),
      sequence: state.sequence,
    };
  });

  route('/plans', (_, query) => {
    const limit = limitOf(query);
    const plans = chosen(query).flatMap((state) => planList(state, limit));
    return { plans: plans.sort((a, b) => b.sequence - a.sequence).slice(0, limit) };
  });

  route('/plans/', async (id, query) => {
    const found = findPlan(input.state(), id);
    const sequence = wholeNumber(query, 'sequence') ?? found?.page.sequence ?? history.planSequence(id);
    const event = sequence === null ? null : await eventAt(sequence);
    const decision = event?.event.type === 'cycle.decided' && event.event.data.plan?.id === id ? event.event : null;
    if (found === null && decision === null)
      throw new BadRequest(
        404,
        `no plan ${JSON.stringify(id)} among the recent ones; for an older one add ?sequence= with the sequence of its event, or use kronos explain plan`,
      );
    return { plan: found?.page ?? null, tasks: found?.tasks ?? [], decision, events: about((e) => e.planId === id) };
  });

  route('/tasks/', (id) => {
    const found = findTask(input.state(), id);
    const events = about((e) => e.taskId === id);
    if (found === null && events.length === 0)
      throw new BadRequest(404, `no task ${JSON.stringify(id)} in flight or among the recent events`);
    return { task: found === null ? null : { aggregate: found.aggregate, ...taskPage(found.task) }, events };
  });

  route('/decisions', (_, query) => {
    const aggregate = query.get('aggregate');
    if (aggregate === null) throw new BadRequest(400, 'say which aggregate: ?aggregate=NAME');
    known(aggregate);
    const since = sinceOf(query);
    const decisions = history
      .decisions(aggregate)
      .filter((d) =>
        typeof since === 'number' ? d.sequence >= since : since === null || Date.parse(d.time) >= since.getTime(),
      );
    return { decisions: decisions.slice(-limitOf(query, RECENT_DECISIONS, RECENT_DECISIONS)) };
  });

  route('/history', async (_, query) => {
    const aggregate = query.get('aggregate');
    if (aggregate !== null && aggregate !== ALL) known(aggregate);
    const since = sinceOf(query);
    const limit = limitOf(query);
    const wanted = ({ event }: StoredEvent) => aggregate === null || event.aggregate === aggregate;
    if (since !== null && !inMemory(since)) return { from: 'log', ...(await fromLog(since, limit, wanted)) };
    const found: StoredEvent[] = [];
    for (const stored of history.events()) {
      if (since !== null && !after(stored, since)) break;
      if (wanted(stored)) found.push(stored);
      if (since === null && found.length === limit) break;
    }
    found.reverse();
    return { from: 'memory', events: found.slice(0, limit).map(historyEntry), next: found[limit]?.sequence ?? null };
  });

  route('/vms/', (id) => {
    const places = statesOf(scope, input.state()).flatMap((state) => vmPage(state, id, clock()) ?? []);
    const events = about((e) => e.serverId === id);
    if (places.length === 0 && events.length === 0)
      throw new BadRequest(
        404,
        `the log says nothing about a VM ${JSON.stringify(id)} that was moved or set apart recently`,
      );
    return { serverId: id, aggregates: places, events };
  });

  route('/hosts/', (name) => {
    const places = statesOf(scope, input.state()).flatMap((state) => hostPage(state, name, clock()) ?? []);
    const events = recent((stored) => concerns(stored, name));
    if (places.length === 0 && events.length === 0)
      throw new BadRequest(404, `the log says nothing recent about a host ${JSON.stringify(name)}`);
    return { host: name, aggregates: places, events };
  });

  route('/quarantine', (_, query) => ({
    quarantine: chosen(query).flatMap((state) => quarantinePage(state, clock())),
  }));

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
  function known(aggregate: string): void {
    if (!aggregateNames(scope, input.state()).includes(aggregate))
      throw new BadRequest(404, `no aggregate ${JSON.stringify(aggregate)}`);
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
  async function fromLog(since: number | Date, limit: number, wanted: (stored: StoredEvent) => boolean) {
    if (reading >= READS_AT_ONCE) throw new Busy();
    reading++;
    try {
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
    } finally {
      reading--;
    }
  }

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
}

/** What there is, for a client that asks at the root. */
const ROUTES = [
  `${PREFIX}/alarms`,
  `${PREFIX}/aggregates`,
  `${PREFIX}/aggregates/{name}`,
  `${PREFIX}/plans?aggregate=&limit=`,
  `${PREFIX}/plans/{id}?sequence=`,
  `${PREFIX}/tasks/{id}`,
  `${PREFIX}/decisions?aggregate=&since=&limit=`,
  `${PREFIX}/history?aggregate=&since=&limit=`,
  `${PREFIX}/vms/{id}`,
  `${PREFIX}/hosts/{name}`,
  `${PREFIX}/quarantine?aggregate=`,
] as const;

async function reply(response: ServerResponse, answer: () => unknown | Promise<unknown>): Promise<void> {
  try {
    sendJson(response, 200, await answer());
  } catch (error) {
    if (error instanceof Busy) {
      sendBusy(response);
      return;
    }
    if (!(error instanceof BadRequest)) throw error;
    sendJson(response, error.status, { error: error.message });
  }
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new BadRequest(400, `${JSON.stringify(segment)} is not percent-encoded UTF-8`);
  }
}

function limitOf(query: URLSearchParams, usual = DEFAULT_LIMIT, most = MAX_LIMIT): number {
  const limit = wholeNumber(query, 'limit') ?? usual;
  if (limit < 1 || limit > most) throw new BadRequest(400, `limit must be a whole number from 1 to ${most}`);
  return limit;
}

function wholeNumber(query: URLSearchParams, name: string): number | null {
  const text = query.get(name);
  if (text === null) return null;
  if (!/^\d{1,15}$/.test(text)) throw new BadRequest(400, `${name} must be a whole number, 0 or more`);
  return Number(text);
}

/** A log sequence, or a time in ISO-8601. */
function sinceOf(query: URLSearchParams): number | Date | null {
  const text = query.get('since');
  if (text === null || text === '') return null;
  if (/^\d{1,15}$/.test(text)) return Math.max(1, Number(text));
  const time = new Date(text);
  if (Number.isNaN(time.getTime()))
    throw new BadRequest(400, 'since must be a log sequence or a time in ISO-8601, such as 2026-01-05T10:00:00Z');
  return time;
}

const after = ({ sequence, storedAt }: StoredEvent, since: number | Date): boolean =>
  typeof since === 'number' ? sequence >= since : storedAt >= since.getTime();

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
