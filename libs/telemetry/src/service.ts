import { hostname } from 'node:os';
import { type Config, type Loaded, loadConfig, type Renamed } from '@kronos/config';
import type { ServiceName } from '@kronos/contracts';
import type { Tracer } from '@opentelemetry/api';
import { isKronosError, StartAgain, StopTimeoutError } from './errors.ts';
import { HttpServer } from './http.ts';
import type { Logger } from './log.ts';
import type { Instruments, Metrics } from './metrics.ts';
import { scrub } from './scrub.ts';
import { startTelemetry, type Telemetry } from './telemetry.ts';

/** The context of a service at its start. */
export interface ServiceContext {
  readonly service: ServiceName;
  readonly version: string;
  /** The process among the replicas: host name and pid. */
  readonly instance: string;
  readonly config: Config;
  /** The policies of an aggregate; none in the rules-only mode and for services that do not read them. */
  readonly policiesOf: Loaded['policiesOf'];
  readonly hostCells: Loaded['hostCells'];
  readonly log: Logger;
  readonly tracer: Tracer;
  readonly metrics: Instruments;
  readonly onScrape: Metrics['onScrape'];
  /** For checks and routes. It listens from before `start` is called; `/readyz` says `starting` until start has returned. */
  readonly http: HttpServer;
  /** Aborted when the service has to stop. */
  readonly stopping: AbortSignal;
}

/** A running service. */
export interface RunningService {
  /**
   * Settles when the service has stopped by itself; rejects when it cannot go on, with StartAgain when it is to be stopped
   * and started in the same process. Absent: it goes on until told to stop.
   */
  readonly done?: Promise<void>;
  /** Hands over what is running and ends. Called once. */
  stop(): Promise<void>;
}

export interface ServiceDefinition {
  readonly name: ServiceName;
  readonly version: string;
  start(context: ServiceContext): Promise<RunningService>;
}

export interface RunInput {
  /** kronos.conf; absent: the default place. */
  readonly file?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Limit of `stop`; after it the process ends without it. Default 10 s. */
  readonly stopTimeoutMs?: number;
  /** Former names of options that are accepted. Default: those of `@kronos/config`. */
  readonly renamed?: readonly Renamed[];
}

/**
 * The life of a service process: configuration, telemetry, HTTP server, start, work until SIGTERM or SIGINT, stop.
 *
 * Returns the exit code: 0 after an orderly stop, 1 otherwise. An error that is meant for people (its `code` begins with
 * `KRONOS_`) at the start is printed on standard error as one message with its remedy; any other error is logged with its
 * stack. An uncaught error ends the process at once with 1. The next start resumes its work.
 */
export async function runService(definition: ServiceDefinition, input: RunInput): Promise<number> {
  let loaded: Loaded;
  try {
    loaded = loadConfig({ file: input.file, env: input.env, role: definition.name, renamed: input.renamed });
  } catch (error) {
    process.stderr.write(startupMessage(definition.name, error));
    return 1;
  }
  const instance = `${hostname()}:${process.pid}`;
  const telemetry = await startTelemetry({
    service: definition.name,
    version: definition.version,
    instance,
    config: loaded.config,
  });
  const { log } = telemetry;
  for (const warning of loaded.warnings) log.warn(warning, 'an option has a former name');
  const fatal = (error: unknown, origin: string) => {
    log.fatal({ err: error, origin }, 'uncaught error');
    process.exit(1);
  };
  process.on('uncaughtException', fatal);

  const stopping = new AbortController();
  const signalled = new Promise<string>((resolve) => {
    const stop = (signal: string) => {
      if (stopping.signal.aborted) return;
      log.info({ signal }, 'stopping');
      stopping.abort();
      resolve(signal);
    };
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
  });

  let code = 0;
  const http = httpServer(definition.name, loaded.config, telemetry);
  try {
    const context: ServiceContext = {
      service: definition.name,
      version: definition.version,
      instance,
      config: loaded.config,
      policiesOf: loaded.policiesOf,
      hostCells: loaded.hostCells,
      log,
      tracer: telemetry.tracer,
      metrics: telemetry.metrics.instruments,
      onScrape: telemetry.metrics.onScrape,
      http,
      stopping: stopping.signal,
    };
    http.check('started', () => ({ ok: false, reason: 'starting' }));
    const listening = await http.listen();
    log.info({ url: listening.url, port: listening.port, instance }, 'starting');
    const stopTimeoutMs = input.stopTimeoutMs ?? 10_000;
    await live(definition, { context, stopping, signalled, stopTimeoutMs, after: byTimer });
  } catch (error) {
    code = 1;
    if (isKronosError(error)) {
      log.fatal({ code: error.code }, error.message);
      process.stderr.write(startupMessage(definition.name, error));
    } else log.fatal({ err: error }, 'the service cannot continue');
  } finally {
    await http.close();
    await telemetry.shutdown();
  }
  if (code === 0) log.info('stopped');
  return code;
}

/** The life of one process as a service. */
export interface Life {
  readonly context: ServiceContext;
  /** Ends `context.stopping`. */
  readonly stopping: AbortController;
  /** Resolves when the process receives a stop signal. */
  readonly signalled: Promise<unknown>;
  readonly stopTimeoutMs: number;
  /** Calls once, after a time; gives what cancels it. */
  readonly after: (ms: number, act: () => void) => () => void;
}

const byTimer: Life['after'] = (ms, act) => {
  const timer = setTimeout(act, ms);
  return () => clearTimeout(timer);
};

/**
 * Starts a service, and starts it again each time it ends with {@link StartAgain}. Returns after a stop signal.
 *
 * @throws StopTimeoutError, and what the service ends with
 */
export async function live(definition: ServiceDefinition, life: Life): Promise<void> {
  const { http, log } = life.context;
  for (;;) {
    http.check('started', () => ({ ok: false, reason: 'starting' }));
    const again = await liveOnce(definition, life);
    if (again === null) return;
    log.warn({ reason: again.message }, 'starting again');
  }
}

/** One start and what follows. Gives null after an orderly stop, else why it is to start again. */
async function liveOnce(definition: ServiceDefinition, life: Life): Promise<StartAgain | null> {
  const { context, stopping } = life;
  const { log, http } = context;
  const started = definition.start(context);
  let running: RunningService;
  try {
    // A stop signal during the start takes effect when the start has ended or its time is over.
    running = await Promise.race([started, life.signalled.then(() => within(life, started))]);
  } catch (error) {
    if (stopping.signal.aborted && !(error instanceof StopTimeoutError)) return null;
    throw error;
  }
  http.check('started', () => (stopping.signal.aborted ? { ok: false, reason: 'stopping' } : { ok: true }));
  log.info('started');

  let failure: { readonly error: unknown } | null = null;
  try {
    await Promise.race([life.signalled, running.done ?? new Promise<void>(() => {})]);
  } catch (error) {
    failure = { error };
  }
  const again = failure?.error instanceof StartAgain && !stopping.signal.aborted ? failure.error : null;
  if (again === null) stopping.abort();
  try {
    await within(life, running.stop());
  } catch (error) {
    if (failure === null) throw error;
    log.error({ err: error }, 'stopping failed too');
  }
  if (again === null && failure !== null) throw failure.error;
  return again;
}

async function within<T>({ after, stopTimeoutMs }: Life, work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const cancel = after(stopTimeoutMs, () => reject(new StopTimeoutError(stopTimeoutMs)));
  try {
    return await Promise.race([work, late]);
  } finally {
    cancel();
  }
}

function httpServer(service: ServiceName, config: Config, telemetry: Telemetry): HttpServer {
  const ports = {
    scorer: config.http.scorerPort,
    planner: config.http.plannerPort,
    executor: config.http.executorPort,
    ledger: config.http.ledgerPort,
  };
  return new HttpServer({
    address: config.http.address,
    port: ports[service],
    portOption: `${service}_port`,
    allowedHosts: config.http.allowedHosts,
    log: telemetry.log,
    metrics: telemetry.metrics,
  });
}

/**
 * The message of a process that cannot start: the problem, the remedy, and no stack trace unless it is a defect. Without
 * secrets.
 */
function startupMessage(name: string, error: unknown): string {
  if (!isKronosError(error)) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return scrub(`kronos ${name}: unexpected error: ${text}\n`);
  }
  const remedy = error.remedy === undefined ? '' : `\n${error.remedy}`;
  return scrub(`kronos ${name}: ${error.message}${remedy}\n`);
}
