/** For tests of the scorer: a simulated cloud with its Prometheus, a real NATS server, and scorers against both. */
import { systemClock } from '@kronos/clock';
import { defaultConfig, parsePolicies } from '@kronos/config';
import type { Policy, Snapshot, SnapshotTaken } from '@kronos/contracts';
import { connectEventLog, type EventLog, natsWire, type Write } from '@kronos/eventlog';
import { commandEvent, type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { HistoryReader, readOptions, type ServerSource } from '@kronos/observation';
import {
  createNeutron,
  createNova,
  createPlacement,
  createSession,
  type Nova,
  type Placement,
  type Session,
} from '@kronos/openstack';
import { cellsSettings } from '@kronos/placement/testing';
import { createPrometheus, type Prometheus } from '@kronos/prometheus';
import { demoPolicies, type ScenarioInput, type Sim, type SimClock, startSim } from '@kronos/simcloud';
import { createMetrics, type Logger, type Metrics } from '@kronos/telemetry';
import { type Tracer, trace } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { pino } from 'pino';
import type { ScorerDeps, ScorerSettings } from '../src/deps.ts';
import { cycleRequest, type SnapshotRequest } from '../src/requests.ts';
import { createScorer, type Scorer, type Taken } from '../src/scorer.ts';
import { Seen } from '../src/seen.ts';

/** The demo's two policies, CPU and memory. */
export const policies: readonly Policy[] = parsePolicies({ file: 'policies.yaml', text: demoPolicies }).policies;

export interface StandOptions {
  readonly scope: readonly string[];
  /** Keystone, with the user admin / secret, and Prometheus. */
  readonly urls: { readonly identity: string; readonly prometheus: string };
  readonly policies?: readonly Policy[];
  /** Time of the scorers; default: the real one. */
  readonly clock?: SimClock;
}

export interface BedOptions {
  readonly scenario: ScenarioInput;
  readonly scope: readonly string[];
  /** Time of the cloud and of the scorers; default: the real one. */
  readonly clock?: SimClock;
}

/** One scorer with clients of its own, as a process would have. */
export interface BedScorer extends Scorer {
  readonly seen: Seen;
  readonly metrics: Metrics;
  /** Takes the snapshots of one cycle of these aggregates (default: all in scope). */
  cycle(number: number, aggregates?: readonly string[]): Promise<Taken>;
}

export interface ScorerOptions extends Partial<ScorerSettings> {
  readonly name?: string;
  readonly nova?: (nova: Nova) => Nova;
  readonly logger?: Logger;
  readonly tracer?: Tracer;
  readonly pageSize?: number;
  readonly seen?: Seen;
  /** The log that snapshots state; default: they state none. */
  readonly logMark?: NonNullable<ScorerDeps['logMark']>;
  /** The source of the servers; default: every server is read each time. */
  readonly servers?: (nova: Nova) => ServerSource;
}

/** A NATS server that is set up, and scorers against a cloud. */
export interface Stand {
  readonly nats: NatsServer;
  readonly log: EventLog;
  readonly settings: ScorerSettings;
  /** Called with what is about to be written; an error that it throws is that of the append. Tests replace it. */
  onWrite: (write: Write) => void;
  /** A logger that writes nothing. */
  readonly silent: Logger;
  scorer(options?: ScorerOptions): BedScorer;
  /** All messages on the snapshot stream, oldest first. */
  taken(): Promise<SnapshotTaken[]>;
  /** The newest snapshot of an aggregate. */
  newest(aggregate: string): Promise<Snapshot>;
  /** Waits until the messages on the snapshot stream fulfil a condition; fails after ten minutes. */
  until(what: string, condition: (taken: readonly SnapshotTaken[]) => boolean): Promise<SnapshotTaken[]>;
  /** An operator's request for a snapshot, of one aggregate or of all. */
  request(aggregate: string, purpose: 'evaluate' | 'record', commandId: string): Promise<void>;
  close(): Promise<void>;
}

/** A stand whose cloud is simulated. */
export interface Bed extends Stand, AsyncDisposable {
  readonly sim: Sim;
}

export async function openBed({ scenario, scope, clock = { now: Date.now } }: BedOptions): Promise<Bed> {
  const sim = await startSim({ scenario, clock });
  const stand = await openStand({ scope, urls: sim.urls, clock });
  const closeStand = stand.close;
  const close = async (): Promise<void> => {
    await closeStand();
    await sim.close();
  };
  return Object.assign(stand, { sim, close, [Symbol.asyncDispose]: close });
}

export async function openStand(options: StandOptions): Promise<Stand> {
  const { scope, urls, clock = { now: Date.now } } = options;
  const nats = await startNatsServer();
  const log = await connectEventLog({ servers: [nats.url], name: 'scorer' }, {}, natsWire, (seams) => ({
    ...seams,
    async append(write) {
      stand.onWrite(write);
      return seams.append(write);
    },
  }));
  await log.provision({
    limits: { snapshotMaxAgeSeconds: 3600, snapshotMaxBytes: 64 * 1024 ** 2, logMaxBytes: 64 * 1024 ** 2 },
    replicas: 1,
    aggregates: scope,
  });
  const opened: (Session | Prometheus)[] = [];
  const silent = pino({ level: 'silent' });
  const settings: ScorerSettings = {
    scope,
    policiesOf: () => options.policies ?? policies,
    balances: () => true,
    forecasts: () => false,
    intervalMs: 60_000,
    stalenessMs: 300_000,
    queryDeadlineMs: 5_000,
    concurrency: 8,
    hostMetrics: true,
    observe: readOptions(defaultConfig),
    hostCells: null,
    cells: { ...cellsSettings, map: {} },
  };
  const stand: Stand = {
    nats,
    log,
    settings,
    onWrite: () => undefined,
    silent,
    scorer: (options = {}) => openScorer({ scope, urls, clock, log, settings, silent, opened }, options),
    async taken() {
      const found: SnapshotTaken[] = [];
      for await (const { message, problem } of log.replaySnapshots()) {
        if (problem !== undefined) throw new Error(problem);
        found.push(message as SnapshotTaken);
      }
      return found;
    },
    async newest(aggregate) {
      const message = (await stand.taken()).findLast((one) => one.aggregate === aggregate);
      if (message === undefined) throw new Error(`no snapshot of ${aggregate}`);
      return log.getSnapshot(message);
    },
    until: (what, condition) => awaitTaken(log, what, condition),
    async request(aggregate, purpose, commandId) {
      await log.append(commandEvent('evaluation.requested', aggregate, commandId, { purpose }));
    },
    async close() {
      await log.close();
      await Promise.all(opened.map((one) => one.close()));
      await nats.stop();
    },
  };
  return stand;
}

/** The parts that the scorers of a stand share. */
interface Shared extends Pick<Stand, 'log' | 'settings' | 'silent'> {
  readonly scope: readonly string[];
  readonly urls: StandOptions['urls'];
  readonly clock: { now(): number };
  /** The clients that the stand closes. */
  readonly opened: (Session | Prometheus)[];
}

function openScorer({ scope, urls, clock, log, settings, silent, opened }: Shared, options: ScorerOptions): BedScorer {
  const session = sessionAt(urls.identity);
  const prometheus = createPrometheus({ url: urls.prometheus, maxRetries: 0, timeoutMs: 5_000 });
  opened.push(session, prometheus);
  const nova = createNova(session, { pageSize: options.pageSize ?? 1000 });
  const placement: Placement = createPlacement(session);
  const metrics = createMetrics(resourceFromAttributes({}));
  const seen = options.seen ?? new Seen();
  const { name = 'scorer-1', nova: change = (one: Nova) => one, servers, ...changes } = options;
  const scorer = createScorer({
    log,
    ...(options.logMark === undefined ? {} : { logMark: options.logMark }),
    nova: change(nova),
    ...(servers === undefined ? {} : { servers: servers(nova) }),
    placement,
    neutron: createNeutron(session),
    prometheus: scope.some(changes.balances ?? settings.balances) ? prometheus : null,
    seen,
    history:
      changes.forecasts === undefined
        ? null
        : new HistoryReader({
            prometheus,
            clock: systemClock,
            horizonMs: 3_600_000,
            days: 3,
            concurrency: 8,
            deadlineMs: settings.queryDeadlineMs,
          }),
    settings: { ...settings, ...changes },
    by: { service: 'scorer', instance: name, version: '0' },
    clock: { ...systemClock, now: () => clock.now() },
    logger: options.logger ?? silent,
    tracer: options.tracer ?? trace.getTracer('test'),
    metrics: metrics.instruments,
  });
  return {
    ...scorer,
    seen,
    metrics,
    cycle: (number, aggregates = scope) =>
      scorer.take(
        aggregates.map((aggregate): SnapshotRequest => cycleRequest(aggregate, number)),
        new AbortController().signal,
      ),
  };
}

/** A session of the administrator that tries nothing again. */
const sessionAt = (authUrl: string): Session =>
  createSession({
    auth: {
      authUrl,
      username: 'admin',
      password: 'secret',
      projectName: 'admin',
      userDomainId: 'default',
      projectDomainId: 'default',
    },
    retry: { connection: { retries: 0, backoffMs: 0 }, status: { retries: 0, backoffMs: 0 } },
  });

async function awaitTaken(
  log: EventLog,
  what: string,
  condition: (taken: readonly SnapshotTaken[]) => boolean,
): Promise<SnapshotTaken[]> {
  // Ends only a test that cannot pass, like the limit of `until`.
  const timeout = AbortSignal.timeout(600_000);
  const found: SnapshotTaken[] = [];
  const late = new Promise<never>((_, reject) => {
    timeout.addEventListener('abort', () =>
      reject(new Error(`waited ten minutes for ${what}; seen: ${found.map((one) => one.data.snapshotId).join(', ')}`)),
    );
  });
  const messages = log.tail({ families: ['snapshots'], since: 'all' })[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await Promise.race([messages.next(), late]);
      if (next.done === true) throw new Error('the stream ended');
      found.push(next.value.message as SnapshotTaken);
      if (condition(found)) return found;
    }
  } finally {
    void messages.return?.();
  }
}
