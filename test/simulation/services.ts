/** The services of Kronos as processes of the simulation: their real code, composed as each `main.ts` does it. */
import { foldLog } from '@kronos/checkpoints';
import { type Config, engineOptions, storageLimits } from '@kronos/config';
import { type ClockCheck, checkClock } from '@kronos/connect';
import { type Actor, bucketNames, type Policy, streamNames } from '@kronos/contracts';
import type { EventLog, LogView } from '@kronos/eventlog';
import { createExecutor, providers, taskMeters, taskOptions } from '@kronos/executor';
import { createNova, createPlacement, createSession } from '@kronos/openstack';
import { createPrometheus } from '@kronos/prometheus';
import type { SimUrls } from '@kronos/simcloud';
import { createLogger, createMetrics, HttpServer, type Logger } from '@kronos/telemetry';
import { trace } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { startLedger } from '../../services/ledger/src/ledger.ts';
import { createPlanner } from '../../services/planner/src/loop.ts';
import { createCycle } from '../../services/scorer/src/cycle.ts';
import { createScorer } from '../../services/scorer/src/scorer.ts';
import { Seen } from '../../services/scorer/src/seen.ts';
import type { CloudNetwork, NatsNetwork } from './network.ts';
import type { Process } from './world.ts';

export type ServiceName = 'scorer' | 'planner' | 'executor' | 'ledger';
export const serviceNames: readonly ServiceName[] = ['scorer', 'planner', 'executor', 'ledger'];

/** What the services share: the configuration, and the ways to NATS and to the cloud. */
export interface Site {
  readonly config: Config;
  readonly policies: readonly Policy[];
  readonly aggregates: readonly string[];
  readonly nats: NatsNetwork;
  readonly cloud: CloudNetwork;
  readonly urls: SimUrls;
  /** Lines of the services' logs, for `--verbose` and for tests. */
  readonly onLine: (process: string, line: string) => void;
  readonly logLevel: string;
}

export interface Running {
  /** Ends as on SIGTERM. */
  stop(): Promise<void>;
}

const metrics = createMetrics(resourceFromAttributes({}));
const tracer = trace.getTracer('simulation');
const version = 'simulated';

const cloudOf = (site: Site, process: Process) => {
  const session = createSession({
    auth: {
      authType: 'password',
      authUrl: site.urls.identity,
      username: 'admin',
      password: 'secret',
      projectName: 'admin',
      userDomainName: 'Default',
      projectDomainName: 'Default',
    },
    clock: process.clock,
    random: process.random,
    transport: site.cloud.transport(process),
  });
  const { clock } = process;
  return {
    nova: createNova(session, { pageSize: site.config.nova.pageSize, monotonic: () => clock.monotonic() }),
    placement: createPlacement(session, { monotonic: () => clock.monotonic() }),
    close: () => session.close(),
  };
};

const loggerOf = (site: Site, service: string, process: Process): Logger =>
  createLogger({
    service,
    version,
    level: site.logLevel,
    format: 'json',
    destination: { write: (line: string) => site.onLine(process.name, line) },
  });

type Start = (site: Site, process: Process, fail: (error: unknown) => void) => Promise<Running>;

const scorer: Start = async (site, process, fail) => {
  const { config } = site;
  const logger = loggerOf(site, 'scorer', process);
  const log = await site.nats.connect(process);
  await log.verify({
    streams: [streamNames.snapshots, streamNames.log],
    buckets: [bucketNames.snapshots],
    taskConsumers: [],
    limits: storageLimits(config),
  });
  const cloud = cloudOf(site, process);
  const prometheus = createPrometheus({
    url: site.urls.prometheus,
    timeoutMs: config.prometheus.timeout * 1000,
    clock: process.clock,
    random: process.random,
    transport: site.cloud.transport(process),
  });
  const seen = new Seen();
  const intervalMs = config.engine.evaluationInterval * 1000;
  const stopping = new AbortController();
  const one = createScorer({
    log,
    nova: cloud.nova,
    placement: cloud.placement,
    prometheus,
    seen,
    settings: {
      scope: site.aggregates,
      policies: site.policies,
      balance: true,
      intervalMs,
      stalenessMs: config.prometheus.stalenessThreshold * 1000,
      queryDeadlineMs: Math.max(intervalMs, config.prometheus.timeout * 1000),
      concurrency: 8,
      observe: { hypervisorTypes: config.nova.hypervisorTypes, optOut: config.engine.optOut, cells: [] },
    },
    by: { service: 'scorer', instance: process.name, version },
    clock: process.clock,
    logger,
    tracer,
    metrics: metrics.instruments,
  });
  const cycle = createCycle({
    log,
    scorer: one,
    seen,
    scope: site.aggregates,
    intervalMs,
    clock: process.clock,
    maxClockSkewMs: config.engine.maxClockSkew * 1000,
    instance: process.name,
    logger,
    metrics: metrics.instruments,
    signal: stopping.signal,
  });
  const done = cycle.run();
  done.catch(fail);
  return {
    async stop() {
      stopping.abort(new Error('stopped'));
      await done.catch(() => undefined);
      await log.close();
      await cloud.close();
      await prometheus.close();
    },
  };
};

/** Compares the clock of a process with the server's, as each service does. */
const clockOf = (
  site: Site,
  process: Process,
  by: Actor,
  log: Pick<EventLog, 'readClock'>,
  view?: Pick<LogView<unknown>, 'changes'>,
): Promise<ClockCheck> =>
  checkClock({
    log,
    ...(view === undefined ? {} : { view }),
    by,
    clock: process.clock,
    maxSkewMs: site.config.engine.maxClockSkew * 1000,
    onProblem: () => undefined,
  });

const planner: Start = async (site, process, fail) => {
  const { config } = site;
  const log = await site.nats.connect(process);
  await log.verify({
    streams: [streamNames.log, streamNames.snapshots, streamNames.migrations],
    buckets: [bucketNames.snapshots, bucketNames.details],
    taskConsumers: site.aggregates,
    limits: storageLimits(config),
    ackWaitSeconds: config.nats.ackWait,
  });
  const view = await foldLog(log);
  const by: Actor = { service: 'planner', instance: process.name, version };
  const clockCheck = await clockOf(site, process, by, log, view);
  const one = createPlanner({
    log,
    view,
    aggregates: site.aggregates,
    options: engineOptions(config),
    by,
    clockProblem: clockCheck.problem,
    logger: loggerOf(site, 'planner', process),
    tracer,
    meters: { decided: () => undefined, notDecided: () => undefined, dispatched: () => undefined },
    clock: process.clock,
  });
  one.run().catch(fail);
  return {
    async stop() {
      clockCheck.stop();
      await one.stop();
      await view.close();
      await log.close();
    },
  };
};

const executor: Start = async (site, process, fail) => {
  const { config } = site;
  const log = await site.nats.connect(process);
  await log.verify({
    streams: [streamNames.log, streamNames.migrations],
    buckets: [],
    taskConsumers: site.aggregates,
    limits: storageLimits(config),
    ackWaitSeconds: config.nats.ackWait,
  });
  const view = await foldLog(log);
  const by: Actor = { service: 'executor', instance: process.name, version };
  const clockCheck = await clockOf(site, process, by, log, view);
  const cloud = cloudOf(site, process);
  const { executor: options } = config;
  const one = createExecutor({
    log,
    view,
    aggregates: site.aggregates,
    cloud: { nova: cloud.nova, placement: cloud.placement, providerOf: providers(cloud.nova, process.clock) },
    check: { aggregates: site.aggregates, optOut: config.engine.optOut, force: options.force },
    options: taskOptions(config),
    caps: {
      maxConcurrentMigrations: options.maxConcurrentMigrations,
      maxOutboundPerHost: options.maxOutboundPerHost,
      maxInboundPerHost: options.maxInboundPerHost,
      maxConcurrentPerGroup: options.maxConcurrentPerGroup,
    },
    ackWaitMs: config.nats.ackWait * 1000,
    concurrency: 2000,
    by,
    clockProblem: clockCheck.problem,
    clock: process.clock,
    logger: loggerOf(site, 'executor', process),
    tracer,
    meters: taskMeters(metrics.instruments),
  });
  one.done.catch(fail);
  return {
    async stop() {
      clockCheck.stop();
      await one.stop();
      await view.close();
      await log.close();
      await cloud.close();
    },
  };
};

const ledger: Start = async (site, process, fail) => {
  const { config } = site;
  const logger = loggerOf(site, 'ledger', process);
  const log = await site.nats.connect(process);
  await log.verify({
    streams: [streamNames.log, streamNames.checkpoints],
    buckets: [bucketNames.checkpoints],
    taskConsumers: [],
    limits: storageLimits(config),
  });
  const by: Actor = { service: 'ledger', instance: process.name, version };
  const clockCheck = await clockOf(site, process, by, log);
  const stopping = new AbortController();
  const one = await startLedger({
    log,
    options: {
      scope: site.aggregates,
      checkpointIntervalSeconds: config.ledger.checkpointInterval,
      checkpointEvents: config.ledger.checkpointEvents,
      maxClockSkewSeconds: config.engine.maxClockSkew,
      console: false,
      archive: null,
    },
    by,
    clockProblem: clockCheck.problem,
    logger,
    metrics: metrics.instruments,
    onScrape: () => undefined,
    // It never listens.
    http: new HttpServer({ address: '127.0.0.1', port: 0, portOption: 'ledger_port', log: logger, metrics }),
    tracer,
    stopping: stopping.signal,
    clock: process.clock,
  });
  one.done?.catch(fail);
  return {
    async stop() {
      clockCheck.stop();
      stopping.abort(new Error('stopped'));
      await one.stop();
    },
  };
};

/** Starts a service. `fail` is called when it ends by itself: its process ends then, and is started again. */
export const startService: Readonly<Record<ServiceName, Start>> = { scorer, planner, executor, ledger };
