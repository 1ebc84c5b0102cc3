import type { Verification } from '@kronos/checkpoints';
import type { Clock } from '@kronos/clock';
import { type Config, shownOptions } from '@kronos/config';
import {
  type Actor,
  ALL,
  iso,
  messageId,
  REPORTED_PARTS,
  REPORTED_REASON,
  type ServiceName,
  type ServiceReported,
} from '@kronos/contracts';
import { type Check, checkOf, type HttpServer, type Logger } from '@kronos/telemetry';
import type { ServiceLog } from './instrumented.ts';

export type ReportInput = {
  readonly log: ServiceLog;
  readonly http: Pick<HttpServer, 'check' | 'readiness'>;
  readonly config: Config;
  readonly by: Actor & { readonly service: ServiceName };
  /** Aggregates that it serves. */
  readonly aggregates: readonly string[];
  /** Aborted when the service has to stop. */
  readonly stopping: AbortSignal;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly pace?: ReportPace | undefined;
  /** Sinks of notifications that take nothing now. */
  readonly sinks?: () => NonNullable<ServiceReported['data']['sinks']>;
};

export type ReportPace = {
  /** Time from one heartbeat to the next while nothing changes. */
  readonly everyMs: number;
  /** Interval between two checks of readiness: a change is sent at once. */
  readonly lookMs: number;
};

export type Heartbeats = {
  /** Later heartbeats report how far the checkpoint that the fold started from is verified. */
  verify(verification: Pick<Verification, 'checkpoint' | 'verifiedTo' | 'verified'>): void;
  /** Sends the last one. Call it before the log is closed. */
  stop(): Promise<void>;
};

const USUAL_PACE: ReportPace = { everyMs: 10_000, lookMs: 1000 };
type Failing = ServiceReported['data']['failing'][number];

/** A failed check as a heartbeat carries it: bounded. */
const reported = (check: string, { reason, parts }: Extract<Check, { ok: false }>): Failing => ({
  check,
  reason: reason.slice(0, REPORTED_REASON),
  ...(parts === undefined
    ? {}
    : { parts: parts.slice(0, REPORTED_PARTS).map((one) => ({ ...one, text: one.text.slice(0, REPORTED_REASON) })) }),
});

/** A heartbeat that is not stored within this time is dropped: the next one has newer data. */
const APPEND_MS = 2000;

const heartbeat = (by: ReportInput['by'], nowMs: number, data: ServiceReported['data']): ServiceReported => ({
  type: 'service.reported',
  version: 1,
  id: messageId.reported(by.service, by.instance, nowMs),
  time: iso(nowMs),
  aggregate: ALL,
  by,
  correlationId: `${by.service}/${by.instance}`,
  causationId: null,
  data,
});

/**
 * Reports a service on KRONOS_SERVICES: now, at each change of its readiness, every
 * `everyMs`, and when it stops. Adds the readiness check `appends`: whether NATS takes what the service writes.
 */
export function reportService(input: ReportInput): Heartbeats {
  const { log, http, config, by, stopping, logger, clock, pace = USUAL_PACE } = input;
  const about = {
    startedAt: iso(clock.now()),
    intervalSeconds: pace.everyMs / 1000,
    aggregates: [...input.aggregates],
    options: shownOptions(config, by.service) as ServiceReported['data']['options'],
  };
  http.check('appends', () => checkOf(log.refused()));

  let verification: Parameters<Heartbeats['verify']>[0] | null = null;
  const checkpoint = (): Pick<ServiceReported['data'], 'checkpoint'> => {
    if (verification === null || verification.checkpoint === null) return {};
    return { checkpoint: { sequence: verification.checkpoint, verifiedTo: verification.verifiedTo } };
  };

  let sent = '';
  let sentAtMs = Number.NEGATIVE_INFINITY;
  let troubled = false;

  async function send(state: ServiceReported['data']['state'], failing: ServiceReported['data']['failing']) {
    const nowMs = clock.now();
    const sinks = input.sinks?.() ?? [];
    try {
      const data = { ...about, ...checkpoint(), ...(sinks.length === 0 ? {} : { sinks }), state, failing };
      await log.append(heartbeat(by, nowMs, data), { timeoutMs: APPEND_MS });
      troubled = false;
      sentAtMs = nowMs;
      return true;
    } catch (error) {
      logger[troubled ? 'debug' : 'warn']({ err: error }, 'a heartbeat was not stored; the next one is sent in time');
      troubled = true;
      return false;
    }
  }

  async function look(): Promise<void> {
    const { checks } = await http.readiness();
    const state = stopping.aborted ? 'stopping' : checks.started?.ok === false ? 'starting' : 'running';
    const failing = Object.entries(checks).flatMap(([check, result]) =>
      result.ok || check === 'started' ? [] : [reported(check, result)],
    );
    // Ages and counters in texts change all the time; what fails does not.
    const what = failing.map(({ check, parts = [] }) => [check, ...parts.map(({ code, part }) => `${code} ${part}`)]);
    const now = JSON.stringify([state, what, verification?.verified]);
    if (now === sent && clock.now() - sentAtMs < pace.everyMs) return;
    if (await send(state, failing)) sent = now;
  }

  let looking: Promise<void> | null = null;
  const lookOnce = () => {
    looking ??= look()
      .catch((error: unknown) => logger.error({ err: error }, 'readiness could not be reported'))
      .finally(() => {
        looking = null;
      });
  };
  lookOnce();
  const end = clock.every(pace.lookMs, lookOnce);
  return {
    verify(started) {
      verification = started;
    },
    async stop() {
      end();
      await looking;
      await send('stopped', []);
    },
  };
}
