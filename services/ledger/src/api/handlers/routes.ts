import { type HttpServer, sendTagged } from '@kronos/telemetry';
import { ApiError, costly, reply } from '../answer.ts';
import type { ApiContext, EndpointCall, Handlers } from '../context.ts';
import { endpoints, OPENAPI, PREFIX } from '../endpoints.ts';
import type { ApiInput } from '../input.ts';
import { Lookups } from '../lookups.ts';
import { openApi } from '../openapi.ts';
import { decode } from '../query.ts';
import { eventReads } from '../reads.ts';
import { runbookReader } from '../runbook.ts';
import type { ApiAnswer, Operation } from '../schemas.ts';
import { snapshotReader } from '../snapshots.ts';
import { aggregatesHandlers } from './aggregates.ts';
import { analysesHandlers } from './analyses.ts';
import { eventsHandlers } from './events.ts';
import { exclusionsHandlers } from './exclusions.ts';
import { overviewHandlers } from './overview.ts';
import { plansHandlers } from './plans.ts';
import { snapshotsHandlers } from './snapshots.ts';

/** Maximum number of concurrent requests that read from the log. */
const READS_AT_ONCE = 2;
/** Maximum number of concurrent requests that make a decision again, and that run a what-if. */
const DECISIONS_AT_ONCE = 2;
const WHAT_IFS_AT_ONCE = 1;
/** Maximum number of snapshots and plan details that are read concurrently. */
const LOADS_AT_ONCE = 4;

/** The endpoints that other parts of the ledger use. */
export type LedgerApi = { readonly drain: (aggregate: string, host: string) => Promise<ApiAnswer<'hostDrain'>> };

/** Adds the read-only JSON interface to the server. */
export function addRoutes(http: HttpServer, input: ApiInput): LedgerApi {
  const handlers = handlersOf(contextOf(input));
  serve(http, handlers);
  // Made at the first request: few installations ask for it.
  let document: Buffer | null = null;
  http.route(OPENAPI, (_, response) => {
    document ??= Buffer.from(JSON.stringify(openApi()));
    return sendTagged(response, 'application/json; charset=utf-8', document);
  });
  return { drain: async (name, host) => handlers.hostDrain({ params: { name, host }, query: new URLSearchParams() }) };
}

function contextOf(input: ApiInput): ApiContext {
  const reading = costly(READS_AT_ONCE);
  const loading = costly(LOADS_AT_ONCE);
  const reads = eventReads(input, reading);
  const snapshots = snapshotReader(input.log, input.monotonic, loading);
  return {
    input,
    reads,
    lookups: new Lookups({ input, reads, snapshots, loading }),
    runbook: runbookReader(),
    limits: { reading, explaining: costly(DECISIONS_AT_ONCE), simulating: costly(WHAT_IFS_AT_ONCE) },
  };
}

const handlersOf = (context: ApiContext): Handlers => ({
  ...overviewHandlers(context),
  ...aggregatesHandlers(context),
  ...snapshotsHandlers(context),
  ...plansHandlers(context),
  ...eventsHandlers(context),
  ...exclusionsHandlers(context),
  ...analysesHandlers(context),
});

/** Routes every endpoint: the longest fixed part of its path finds it, and the segments after it are matched one by one. */
function serve(http: HttpServer, handlers: Handlers): void {
  const all = (Object.keys(endpoints) as Operation[]).map((operation) => {
    const path = `${PREFIX}${endpoints[operation].path}`;
    return { path, prefix: path.replace(/\{.*$/, ''), handle: handlers[operation] as (asked: EndpointCall) => object };
  });
  for (const [prefix, below] of Map.groupBy(all, (one) => one.prefix))
    http.route(prefix, (_, response, url) =>
      reply(response, () => {
        for (const { path, handle } of below) {
          const params = match(path, url.pathname);
          if (params !== null) return handle({ params, query: url.searchParams });
        }
        throw new ApiError(404, `there is no ${url.pathname}; ${OPENAPI} describes the API`);
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
