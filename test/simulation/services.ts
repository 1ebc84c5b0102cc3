/** The services of Kronos as processes of the simulation: the compositions of their `main.ts`, with what is outside simulated. */
import type { Config } from '@kronos/config';
import { connectLog, type Outside, openCloud, openNotifications, openPrometheus } from '@kronos/connect';
import type { Policy, ServiceName } from '@kronos/contracts';
import { type Decider, decideHere, searches } from '@kronos/cycle';
import { executorService } from '@kronos/executor';
import { createLogger, createMetrics, HttpServer, live, type ServiceDefinition } from '@kronos/telemetry';
import { trace } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { ledgerService } from '../../services/ledger/src/service.ts';
import { plannerService } from '../../services/planner/src/service.ts';
import { scorerService } from '../../services/scorer/src/service.ts';
import type { CloudNetwork, NatsNetwork } from './network.ts';
import type { KnownCells } from './numa.ts';
import type { SimulatedRabbit } from './rabbit.ts';
import type { Process } from './world.ts';

// Loaded on demand elsewhere: how long loading takes is not of the seed.
await import('../../libs/connect/src/instrumented.ts');

export type { ServiceName };
export const serviceNames: readonly ServiceName[] = ['scorer', 'planner', 'executor', 'ledger'];

/** The parts that the services share: the configuration, and the ways to NATS and to the cloud. */
export interface Site {
  readonly config: Config;
  readonly policies: readonly Policy[];
  /** NUMA cells of hosts from a file; absent or null: from the exporter. */
  readonly hostCells?: KnownCells | null;
  readonly nats: Pick<NatsNetwork, 'connect'>;
  readonly cloud: CloudNetwork;
  /** How many intervals a planner works on a decision with the whole `search_work_limit`. Absent: its clock stands still meanwhile. */
  readonly decideIntervals?: number;
  /** Null: nobody takes Nova's notifications. */
  readonly rabbit: SimulatedRabbit | null;
  /** Lines of the services' logs, for `--verbose` and for tests. */
  readonly onLine: (process: string, line: string) => void;
  readonly logLevel: string;
}

export interface Running {
  /** Ends as on SIGTERM; resolves when it has ended. */
  stop(): Promise<void>;
}

const metrics = createMetrics(resourceFromAttributes({}));
const tracer = trace.getTracer('simulation');
const STOP_TIMEOUT_MS = 10_000;
/** Slower than in production: heartbeats are for people, and at their usual pace they would be most of what is stored. */
const PACE = { everyMs: 300_000, lookMs: 20_000 };

/**
 * A planner that decides slowly. A decision takes time on the simulation's virtual clock, in proportion to its work limit; one that is
 * gated or does not search takes none. Nothing waits for the time of this machine.
 */
function slowDecider({ config: { engine }, decideIntervals = 0 }: Site, { clock }: Outside): Decider {
  const wholeMs = decideIntervals * engine.evaluationInterval * 1000;
  const closed = Promise.withResolvers<never>();
  closed.promise.catch(() => undefined);
  return {
    proposal: decideHere.proposal,
    close: async () => closed.reject(new Error('the decider was closed')),
    async cycle(input, begun) {
      const cycle = await decideHere.cycle(input, begun);
      const tookMs =
        cycle.decision.outcome === 'gated' || !searches(input)
          ? 0
          : wholeMs * (input.options.searchWorkLimit / engine.searchWorkLimit);
      if (tookMs > 0) await Promise.race([clock.sleep(tookMs), closed.promise]);
      return cycle;
    },
  };
}

const definitions: Readonly<Record<ServiceName, (outside: Outside, site: Site) => ServiceDefinition>> = {
  scorer: scorerService,
  planner: (outside, site) => plannerService(outside, () => slowDecider(site, outside)),
  executor: (outside) => executorService([], outside),
  ledger: ledgerService,
};

function outsideOf({ nats, cloud, rabbit }: Site, process: Process): Outside {
  const means = { clock: process.clock, random: process.random, transport: cloud.transport(process) };
  return {
    clock: process.clock,
    connectLog: (config, name, logger, instrumentation) =>
      connectLog(config, name, logger, {
        ...instrumentation,
        connect: (options, hooks, wrap) => nats.connect(process, hooks, options, wrap),
      }),
    openCloud: (config, instruments) => openCloud(config, {}, instruments, means),
    openPrometheus: (config) => openPrometheus(config, means),
    openNotifications: (config, hooks) => openNotifications(config, hooks, rabbit?.connect(process)),
    pace: PACE,
  };
}

/** Starts a service. `ended` is called when it ends by itself: its process ends then, and is started again. */
export function startService(
  service: ServiceName,
  site: Site,
  process: Process,
  ended: (error: unknown) => void,
): Running {
  const definition = definitions[service](outsideOf(site, process), site);
  const log = createLogger({
    service,
    version: definition.version,
    level: site.logLevel,
    destination: { write: (line: string) => site.onLine(process.name, line) },
  });
  const stopping = new AbortController();
  let told = false;
  const signalled = Promise.withResolvers<void>();
  const done = live(definition, {
    context: {
      service,
      version: definition.version,
      instance: process.name,
      // Another thread would take real time to answer, and no seed says how much.
      config: { ...site.config, engine: { ...site.config.engine, searchThreads: 1 } },
      policiesOf: () => site.policies,
      hostCells: site.hostCells ?? null,
      log,
      tracer,
      metrics: metrics.instruments,
      onScrape: () => undefined,
      // It never listens.
      http: new HttpServer({ address: '127.0.0.1', port: 0, portOption: `${service}_port`, log, metrics }),
      stopping: stopping.signal,
    },
    stopping,
    signalled: signalled.promise,
    stopTimeoutMs: STOP_TIMEOUT_MS,
    after: process.clock.after,
  });
  const over = (error: unknown): void => {
    if (!told) ended(error);
  };
  done.then(() => over(null), over);
  return {
    async stop() {
      told = true;
      stopping.abort();
      signalled.resolve();
      await done.catch(() => undefined);
    },
  };
}
