/** For tests of the executor: a simulated cloud, a log that is set up, plans to carry out, and what must always hold. */
import {
  type LogEvent,
  type LogEventOf,
  type MigrationRequested,
  messageId,
  type StoredEvent,
  streamNames,
  taskId,
} from '@kronos/contracts';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { type StepInput, testLog } from '@kronos/projections/testing';
import { type ScenarioInput, type Sim, startSim } from '@kronos/simcloud';

export const AGGREGATE = 'gpu';

/** Nova's pace in tests: its steps and every wait that belongs to them go so many times faster. */
export const SPEED = 60;

/** A cloud of a few hosts in one aggregate, `vms` servers on each, named h1-1, h1-2, h2-1 and so on. */
export function smallCloud(
  hosts = 4,
  vms = 3,
  more: Partial<ScenarioInput> = {},
  aggregate: string = AGGREGATE,
): ScenarioInput {
  const names = Array.from({ length: hosts }, (_, i) => `h${i + 1}`);
  return {
    name: 'small',
    hosts: names.map((name) => ({ name, vcpus: 32, memoryMb: 65_536, diskGb: 1000 })),
    aggregates: [{ name: aggregate, hosts: names }],
    flavors: [{ name: 'm1', vcpus: 2, memoryMb: 2048, diskGb: 10 }],
    servers: names.flatMap((host) =>
      Array.from({ length: vms }, (_, i) => ({ name: `${host}-${i + 1}`, host, flavor: 'm1' })),
    ),
    ...more,
  };
}

/** A move as tests name it: the server by name. */
export type Move = Omit<StepInput, 'serverId'> & { readonly server: string };

export interface Bed {
  readonly sim: Sim;
  readonly nats: NatsServer;
  readonly log: EventLog;
  /** Uuid of a server by name. */
  uuid(server: string): string;
  /** Puts a released plan on the log and its tasks on the queue; gives the tasks' ids. */
  release(moves: readonly Move[], options?: ReleaseOptions): Promise<readonly string[]>;
  /** A person's command about a task. */
  command(type: 'migration.cancelled' | 'migration.aborted', task: string): Promise<void>;
  pause(paused: boolean): Promise<void>;
  /** The results on the log, oldest first. */
  results(): Promise<readonly Result[]>;
  /** The final result of each of these tasks, once all have one. Rejects after `withinMs`. */
  finals(tasks: readonly string[], withinMs?: number): Promise<readonly Final[]>;
  close(): Promise<void>;
}

export interface ReleaseOptions {
  readonly planTtlSeconds?: number;
  /** Changes a task's message before it is published. */
  readonly edit?: (message: MigrationRequested) => MigrationRequested;
}

export type Result = StoredEvent & {
  readonly event: LogEventOf<
    'migration.started' | 'migration.observed' | 'migration.completed' | 'migration.failed' | 'migration.skipped'
  >;
};
export type Final = LogEventOf<'migration.completed' | 'migration.failed' | 'migration.skipped'>;

/** A bed on servers of its own; `nats` takes a server that runs already, which then needs an aggregate of its own. */
export async function startBed(
  scenario: ScenarioInput,
  reuse: {
    readonly nats?: NatsServer;
    readonly ackWaitSeconds?: number;
    readonly aggregate?: string;
    readonly speed?: number;
  } = {},
): Promise<Bed> {
  const sim = await startSim({ scenario, speed: reuse.speed ?? SPEED });
  const nats = reuse.nats ?? (await startNatsServer());
  const log = await connectEventLog({ servers: [nats.url], name: 'bed' });
  const aggregate = reuse.aggregate ?? AGGREGATE;
  await log.provision({
    limits: { snapshotMaxAgeSeconds: 3600, snapshotMaxBytes: 1024 ** 2, logMaxBytes: 256 * 1024 ** 2 },
    replicas: 1,
    aggregates: [aggregate],
    ackWaitSeconds: reuse.ackWaitSeconds ?? 1,
  });
  const first = (await log.lastSequence(streamNames.log)) + 1;
  let plans = 0;
  const bed: Bed = {
    sim,
    nats,
    log,
    uuid: (server) => sim.cloud.server(server).uuid,
    async release(moves, { planTtlSeconds = 3600, edit = (message: MigrationRequested) => message } = {}) {
      plans += 1;
      // Each plan is decided on a snapshot a minute later than the one before it.
      const draft = testLog(aggregate, Date.now() + plans * 60_000);
      draft.configured({ planTtlSeconds });
      const steps = moves.map(({ server, ...move }) => ({ ...move, serverId: bed.uuid(server) }));
      const planId = draft.released(steps);
      draft.dispatched(planId, moves.length);
      const state = draft.state(aggregate);
      for (const { event } of draft.events)
        await log.append({ ...(event as LogEvent), time: new Date().toISOString() });
      const ids = moves.map((_, i) => taskId(planId, i + 1));
      for (const id of ids) {
        const facts = state.tasks.get(id);
        if (facts === undefined) throw new Error(`no task ${id}`);
        const { delaySeconds, ...step } = facts.step;
        const now = Date.now();
        const message: MigrationRequested = {
          type: 'migration.requested',
          version: 1,
          id: messageId.requested(id, 1),
          time: new Date(now).toISOString(),
          aggregate,
          by: { service: 'planner', instance: 'test', version: '0' },
          correlationId: planId,
          causationId: messageId.decided(planId),
          data: {
            ...step,
            planId,
            attempt: 1,
            destination: step.to,
            notBefore: new Date(now + delaySeconds * 1000).toISOString(),
            notAfter: new Date(now + planTtlSeconds * 1000).toISOString(),
          },
        };
        await log.append(edit(message));
      }
      return ids;
    },
    async command(type, task) {
      await control(log, aggregate, type, { taskId: task });
    },
    async pause(paused) {
      await control(log, aggregate, paused ? 'aggregate.paused' : 'aggregate.resumed', {});
    },
    async results() {
      const found: Result[] = [];
      for await (const stored of log.replay({ from: first })) {
        const { event } = stored;
        if (event.aggregate !== aggregate) continue;
        switch (event.type) {
          case 'migration.started':
          case 'migration.observed':
          case 'migration.completed':
          case 'migration.failed':
          case 'migration.skipped':
            found.push({ ...stored, event });
        }
      }
      return found;
    },
    async finals(tasks, withinMs = 20_000) {
      const until = performance.now() + withinMs;
      for (;;) {
        // The server may be away: that is what some tests are about.
        const seen = await bed.results().catch(() => []);
        const finals = seen.map(({ event }) => event).filter(isFinal);
        const found = tasks.map((id) => finals.find((event) => event.data.taskId === id));
        if (found.every((event) => event !== undefined)) return found;
        if (performance.now() > until) {
          const missing = tasks.filter((_, i) => found[i] === undefined);
          const last = seen.map(({ event }) => `${event.type} ${event.data.taskId}/${event.data.attempt}`);
          throw new Error(`no final result in ${withinMs} ms: ${missing.join(', ')}; on the log: ${last.join('; ')}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 40));
      }
    },
    async close() {
      await log.close();
      await sim.close();
      if (reuse.nats === undefined) await nats.stop();
    },
  };
  return bed;
}

export const isFinal = (event: Result['event']): event is Final =>
  event.type === 'migration.completed' ||
  event.type === 'migration.skipped' ||
  (event.type === 'migration.failed' && !event.data.retryPending);

let commands = 0;

async function control(
  log: EventLog,
  aggregate: string,
  type: 'migration.cancelled' | 'migration.aborted' | 'aggregate.paused' | 'aggregate.resumed',
  data: object,
) {
  commands += 1;
  const commandId = `test-${process.pid}-${commands}`;
  await log.append({
    type,
    version: 1,
    id: messageId.control(commandId),
    time: new Date().toISOString(),
    aggregate,
    by: { service: 'operator', instance: 'ada', version: '0' },
    correlationId: commandId,
    causationId: null,
    data: { commandId, comment: null, ...data },
  } as LogEvent);
}

export interface CapLimits {
  readonly maxConcurrentMigrations: number;
  readonly maxOutboundPerHost: number;
  readonly maxInboundPerHost: number;
}

/**
 * What must hold after any run, by the cloud's own record: each task has exactly one final result, each attempt at most one
 * POST that Nova took and at most one migration, no cap was ever exceeded, and every server is where its result says.
 * Gives the breaches in words; empty when all holds.
 */
export function breaches(
  sim: Sim,
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
      const ends = events.filter(
        (e) =>
          e.type !== 'migration.started' &&
          e.type !== 'migration.observed' &&
          e.data.taskId === task &&
          e.data.attempt === attempt,
      );
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
function tooMany(sim: Sim, results: readonly Result[]): string[] {
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
    const sent = ofServer.filter((call) => call.status !== 401).length;
    if (sent > starts.length) found.push(`${server} was posted ${sent} times for ${starts.length} attempts on the log`);
  }
  return found;
}

/** Overlaps of migrations, by the moments at which Nova set their statuses. */
function capBreaches(sim: Sim, caps: CapLimits): string[] {
  const spans = sim.migrations().map((migration) => ({
    source: migration.source,
    destination: migration.dest ?? migration.requestedHost ?? '',
    from: migration.history[0]?.atMs ?? 0,
    to: ['completed', 'failed', 'error', 'cancelled'].includes(migration.status)
      ? (migration.history.at(-1)?.atMs ?? 0)
      : Number.POSITIVE_INFINITY,
  }));
  const most = (of: (span: (typeof spans)[number]) => string): number => {
    let highest = 0;
    for (const span of spans) {
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
  return found;
}
