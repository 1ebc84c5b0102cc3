/** The invariants after any run, by the simulated cloud's own record. */
import type { CallRecord, Sim } from '@kronos/simcloud';
import { isFinal, type Result } from './plans.ts';

export interface CapLimits {
  readonly maxConcurrentMigrations: number;
  readonly maxOutboundPerHost: number;
  readonly maxInboundPerHost: number;
  readonly maxConcurrentPerGroup?: number;
}

/** The parts of a simulated cloud that are checked. */
export type CloudRecord = Pick<Sim, 'migrations' | 'calls'> & {
  readonly cloud: {
    readonly servers: ReadonlyMap<string, { readonly host: string }>;
    readonly groupOf: ReadonlyMap<string, { readonly name: string }>;
  };
};

/** Events that end an attempt. */
const OUTCOMES: ReadonlySet<string> = new Set(['migration.completed', 'migration.failed', 'migration.skipped']);

/**
 * The invariants after any run, by the cloud's own record: each task has exactly one final result, each attempt at most one
 * POST that Nova took and at most one migration, no cap was ever exceeded, and every server is where its result says.
 * Gives the breaches in words; empty when all holds.
 */
export function breaches(
  sim: CloudRecord,
  results: readonly Result[],
  tasks: readonly string[],
  caps: CapLimits,
): readonly string[] {
  const found: string[] = [];
  const events = results.map(({ event }) => event);
  for (const task of tasks) {
    const finals = events.filter((event) => event.data.taskId === task && isFinal(event));
    if (finals.length !== 1) found.push(`${task} has ${finals.length} final results`);
    const attempts = new Set(events.filter((e) => e.data.taskId === task).map((e) => e.data.attempt));
    for (const attempt of attempts) {
      const starts = events.filter(
        (e) => e.type === 'migration.started' && e.data.taskId === task && e.data.attempt === attempt,
      );
      if (starts.length > 1) found.push(`${task} attempt ${attempt} was started ${starts.length} times`);
      const ends = events.filter((e) => OUTCOMES.has(e.type) && e.data.taskId === task && e.data.attempt === attempt);
      if (ends.length > 1) found.push(`${task} attempt ${attempt} has ${ends.length} outcomes`);
    }
    const final = finals[0];
    if (final?.type === 'migration.completed') {
      const server = sim.cloud.servers.get(final.data.serverId);
      if (server !== undefined && server.host !== final.data.host)
        found.push(`${task} completed on ${final.data.host}, and the server is on ${server.host}`);
    }
  }
  found.push(...tooMany(sim, results), ...capBreaches(sim, caps));
  return found;
}

/** More migrations in Nova than attempts on the log, for any server. */
function tooMany(sim: CloudRecord, results: readonly Result[]): string[] {
  const found: string[] = [];
  const migrations = Map.groupBy(sim.migrations(), (migration) => migration.server);
  for (const [server, ofServer] of migrations) {
    const starts = results.filter(({ event }) => event.type === 'migration.started' && event.data.serverId === server);
    if (ofServer.length > starts.length)
      found.push(`${server} has ${ofServer.length} migrations in Nova and ${starts.length} attempts on the log`);
  }
  const posts = sim.calls().filter((call) => call.method === 'POST' && /\/servers\/[^/]+\/action/.test(call.path));
  for (const [path, ofServer] of Map.groupBy(posts, (call) => call.path)) {
    const server = /\/servers\/([^/]+)\/action/.exec(path)?.[1] ?? '';
    const starts = results.filter(({ event }) => event.type === 'migration.started' && event.data.serverId === server);
    // A 401 is answered before anything is done, and the same request goes out again with a new token.
    const sent = ofServer.filter((call) => call.status !== 401 && !isSettling(call)).length;
    if (sent > starts.length) found.push(`${server} was posted ${sent} times for ${starts.length} attempts on the log`);
    // One that did not reach Nova is sent again.
    const settled = ofServer.filter((call) => isSettling(call) && (call.status ?? 500) < 300).length;
    if (settled > starts.length)
      found.push(`${server} was confirmed or reverted ${settled} times for ${starts.length} attempts on the log`);
  }
  return found;
}

/** Whether it asks Nova to confirm or to revert a move between cells. */
const isSettling = ({ body }: CallRecord): boolean =>
  typeof body === 'object' && body !== null && ('confirmResize' in body || 'revertResize' in body);

const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'error', 'cancelled', 'confirmed', 'reverted']);

/** Overlaps of migrations, by the moments at which Nova set their statuses. */
function capBreaches(sim: CloudRecord, caps: CapLimits): string[] {
  const spans = sim.migrations().map((migration) => ({
    source: migration.source,
    group: sim.cloud.groupOf.get(migration.server)?.name ?? null,
    destination: migration.dest ?? migration.requestedHost ?? '',
    from: migration.history[0]?.atMs ?? 0,
    to: ENDED.has(migration.status) ? (migration.history.at(-1)?.atMs ?? 0) : Number.POSITIVE_INFINITY,
  }));
  const most = (of: (span: (typeof spans)[number]) => string | null): number => {
    let highest = 0;
    for (const span of spans) {
      if (of(span) === null) continue;
      const now = spans.filter((other) => of(other) === of(span) && other.from <= span.from && other.to > span.from);
      highest = Math.max(highest, now.length);
    }
    return highest;
  };
  const found: string[] = [];
  const check = (what: string, seen: number, limit: number): void => {
    if (seen > limit) found.push(`${what}: ${seen} at once, at most ${limit} are allowed`);
  };
  check(
    'max_concurrent_migrations',
    most(() => ''),
    caps.maxConcurrentMigrations,
  );
  check(
    'max_outbound_per_host',
    most((span) => span.source),
    caps.maxOutboundPerHost,
  );
  check(
    'max_inbound_per_host',
    most((span) => span.destination),
    caps.maxInboundPerHost,
  );
  check(
    'max_concurrent_per_group',
    most((span) => span.group),
    caps.maxConcurrentPerGroup ?? Number.POSITIVE_INFINITY,
  );
  return found;
}
