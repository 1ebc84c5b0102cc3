import { systemClock } from '@kronos/clock';
import { defaultConfig } from '@kronos/config';
import { openRegions } from '@kronos/connect';
import {
  type Actor,
  type CycleDecided,
  defaultEngineOptions,
  defaultStorageLimits,
  type ServiceName,
  type Snapshot,
  type StoredEvent,
  serviceNames,
  streamNames,
} from '@kronos/contracts';
import { decidedEvent, digest, runCycle } from '@kronos/cycle';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import {
  appendAll,
  appendEvents,
  bareConnection,
  type NatsServer,
  reportedEvent,
  startNatsServer,
} from '@kronos/eventlog/testing';
import { plannerVersion, score } from '@kronos/placement';
import { type Sketch, snapshotOf } from '@kronos/placement/testing';
import { aggregateState, createFolder, optionsOf } from '@kronos/projections';
import { HttpServer, startTelemetry } from '@kronos/telemetry';
import type { Acting } from '../src/acting/deps.ts';
import { startLedger } from '../src/ledger.ts';
import type { LedgerOptions } from '../src/memory/input.ts';

const by: Actor = { service: 'ledger', instance: 'ledger-test', version: '0.0.0' };

/** A running ledger and its log lines. */
export type TestLedger = {
  readonly url: string;
  /** Lines of its log, parsed. */
  readonly lines: readonly Record<string, unknown>[];
  get(path: string): Promise<{ status: number; body: unknown }>;
  /** The JSON body alone. */
  body(path: string): Promise<unknown>;
  text(path: string): Promise<string>;
  /** Resolves when what people ask for first is in memory. */
  readonly warm: Promise<void>;
  stop(): Promise<void>;
};

/** A NATS server with the streams of Kronos, and ledgers on it. */
export async function ledgerBed() {
  const server: NatsServer = await startNatsServer();
  const connections: EventLog[] = [];
  const running = new Set<TestLedger>();
  const connect = async (name: string) => {
    const log = await connectEventLog({ servers: [server.url], name });
    connections.push(log);
    return log;
  };
  const log = await connect('test');
  await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu', 'general', 'web eu/1'] });

  return {
    server,
    log,
    connect,
    /** Puts events on the log as their writers would. */
    append: (events: Iterable<StoredEvent>): Promise<void> => appendEvents(log, events),
    /** Records what a scorer would have seen at that time, with its scores. */
    async observed(id: string, aggregate: string, timeMs: number, sketch: Sketch): Promise<Snapshot> {
      const time = new Date(timeMs).toISOString();
      const seen = snapshotOf({ ...sketch, time, snapshot: { id, aggregate } });
      const snapshot = { ...seen, scores: score({ ...seen, options: defaultEngineOptions }) };
      await log.putSnapshot(snapshot, {
        by: { service: 'scorer', instance: 'scorer-1', version: '0.0.0' },
        causationId: null,
      });
      return snapshot;
    },
    /** Decides a snapshot as the planner does, by the options on the log. */
    decided: (snapshot: Snapshot): Promise<CycleDecided> => decided(log, snapshot),
    reported: (scope: readonly string[], services?: readonly ServiceName[]): Promise<void> =>
      heartbeats(log, scope, services),
    /** Forgets every snapshot, as their age does. */
    async forgetSnapshots(): Promise<void> {
      const connection = await bareConnection(server.url);
      await connection.request('$JS.API.STREAM.PURGE.KRONOS_SNAPSHOTS', '{}');
      await connection.close();
    },
    /** Consumers on the log now. */
    async consumers(): Promise<number> {
      const connection = await bareConnection(server.url);
      const info = await connection.request('$JS.API.STREAM.INFO.KRONOS_LOG');
      await connection.close();
      return (info.json() as { state: { consumer_count: number } }).state.consumer_count;
    },
    async start(
      options: TestOptions = {},
      clock: () => number = Date.now,
      acting: Acting | null = null,
    ): Promise<TestLedger> {
      const started = await testLedger(await connect('ledger'), options, clock, acting);
      const ledger: TestLedger = {
        ...started,
        stop: async () => {
          if (running.delete(ledger)) await started.stop();
        },
      };
      running.add(ledger);
      return ledger;
    },
    async close(): Promise<void> {
      for (const ledger of running) await ledger.stop();
      for (const connection of connections) await connection.close();
      await server.stop();
    },
  };
}

/** A heartbeat of an instance of each service, of which the next is due in an hour. */
async function heartbeats(
  log: EventLog,
  scope: readonly string[],
  services: readonly ServiceName[] = serviceNames,
): Promise<void> {
  const time = new Date().toISOString();
  for (const service of services)
    await log.append(reportedEvent(service, `${service}-1`, time, { intervalSeconds: 3600, aggregates: [...scope] }));
}

/** The decision about a snapshot, by the state of the log, on the log. */
async function decided(log: EventLog, snapshot: Snapshot): Promise<CycleDecided> {
  const folder = createFolder();
  for await (const stored of log.replay({ to: await log.lastSequence(streamNames.log) })) folder.apply(stored);
  const state = aggregateState(folder.snapshot(), snapshot.aggregate);
  const options = optionsOf(state);
  const { decision, digests } = runCycle({ snapshot, state, options });
  const planner: Actor = { service: 'planner', instance: 'planner-1', version: '0.0.0' };
  const event = decidedEvent(decision, {
    snapshot,
    basis: folder.sequence,
    plannerVersion,
    options,
    digests: { snapshot: digest(snapshot), ...digests },
    details: null,
    by: planner,
    nowMs: Date.parse(snapshot.time) + 1,
  });
  await appendAll(log, [event]);
  return event;
}

/** `regions`: of [console]. */
type TestOptions = Partial<LedgerOptions> & { readonly regions?: readonly string[] };

/** A ledger on that log. Its connection is the ledger's own: it is closed with it. */
export async function testLedger(
  log: EventLog,
  options: TestOptions = {},
  clock: () => number = Date.now,
  acting: Acting | null = null,
): Promise<TestLedger> {
  const { regions = [], ...own } = options;
  const lines: Record<string, unknown>[] = [];
  const telemetry = await startTelemetry({
    service: 'ledger',
    version: '0.0.0',
    instance: 'ledger-test',
    config: { ...defaultConfig, log: { level: 'debug', format: 'json' } },
    destination: { write: (line: string) => void lines.push(JSON.parse(line)) },
  });
  const logger = telemetry.log;
  const http = new HttpServer({
    address: '127.0.0.1',
    port: 0,
    portOption: 'ledger_port',
    log: logger,
    metrics: telemetry.metrics,
  });
  const { url } = await http.listen();
  const ending = new AbortController();
  const others = openRegions({ console: { ...defaultConfig.console, regions } }, systemClock);
  const service = await startLedger({
    log,
    options: {
      scope: ['gpu'],
      checkpointIntervalSeconds: 3600,
      checkpointEvents: 1_000_000,
      maxClockSkewSeconds: 5,
      console: true,
      archive: null,
      sinks: new Map(),
      ...own,
    },
    by,
    logger,
    metrics: telemetry.metrics.instruments,
    onScrape: telemetry.metrics.onScrape,
    http,
    tracer: telemetry.tracer,
    stopping: ending.signal,
    clock: { ...systemClock, now: clock },
    ownClock: { problem: () => null, skewSeconds: () => 0 },
    acting,
    regions: others,
  });
  const get = async (path: string) => {
    const response = await fetch(`${url}${path}`);
    return { status: response.status, body: (await response.json()) as unknown };
  };
  return {
    url,
    lines,
    warm: service.warm,
    get,
    body: async (path) => (await get(path)).body,
    text: async (path) => (await fetch(`${url}${path}`)).text(),
    async stop() {
      await service.stop();
      await others.close();
      await http.close();
      await telemetry.shutdown();
    },
  };
}
