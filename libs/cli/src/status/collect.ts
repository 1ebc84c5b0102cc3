import type { Config } from '@kronos/config';
import { streamNames } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import { type AggregateState, aggregateState, type LogState } from '@kronos/projections';
import { newestSnapshot } from '@kronos/replay';
import { z } from 'zod';
import type { Session } from '../open.ts';
import {
  type AggregateInput,
  aggregateStatus,
  judge,
  type ServiceStatus,
  type Status,
  type StreamStatus,
} from './status.ts';

const READY_TIMEOUT_MS = 1000;

/** Looks at everything that can be seen from here. */
export async function collectStatus({ log, config, scope }: Session, state: LogState, nowMs: number): Promise<Status> {
  const [aggregates, streams, services] = await Promise.all([
    Promise.all(scope.map((name) => inputOf(log, name, aggregateState(state, name)))),
    Promise.all(
      [streamNames.log, streamNames.snapshots, streamNames.migrations].map((name) => streamStatus(log, name)),
    ),
    Promise.all(serviceUrls(config).map(({ service, url }) => serviceStatus(service, url))),
  ]);
  return judge({
    timeMs: nowMs,
    server: log.server.version,
    servers: config.nats.servers,
    aggregates: aggregates.map((input) => aggregateStatus(input, nowMs)),
    streams,
    services,
    logStream: streamNames.log,
  });
}

async function inputOf(log: EventLog, aggregate: string, state: AggregateState): Promise<AggregateInput> {
  const taken = await newestSnapshot(log, aggregate);
  return {
    aggregate,
    state,
    newest:
      taken === null
        ? null
        : {
            timeMs: Date.parse(taken.time),
            hosts: taken.data.hosts,
            servers: taken.data.servers,
            problems: taken.data.problems,
          },
    lastDecision: state.decided === null ? null : await decisionAt(log, aggregate, state.decided.sequence),
  };
}

async function decisionAt(log: EventLog, aggregate: string, sequence: number): Promise<AggregateInput['lastDecision']> {
  for await (const stored of log.replay({ from: sequence, to: sequence })) {
    const { event } = stored;
    if (event.type === 'cycle.decided' && event.aggregate === aggregate) return event.data;
  }
  return null;
}

async function streamStatus(log: EventLog, stream: string): Promise<StreamStatus> {
  const { messages, bytes, maxBytes } = await log.usage(stream);
  return { stream, messages, bytes, maxBytes };
}

/** The services' addresses on this machine, by the configuration; a port of 0 is known to nobody. */
export function serviceUrls({ http }: Config): { service: string; url: string }[] {
  const address =
    { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[http.address] ??
    (http.address.includes(':') ? `[${http.address}]` : http.address);
  const ports = {
    scorer: http.scorerPort,
    planner: http.plannerPort,
    executor: http.executorPort,
    ledger: http.ledgerPort,
  };
  return Object.entries(ports).flatMap(([service, port]) =>
    port === 0 ? [] : [{ service, url: `http://${address}:${port}` }],
  );
}

const readySchema = z.object({
  ready: z.boolean(),
  checks: z.record(z.string(), z.object({ ok: z.boolean(), reason: z.string().optional() })),
});

async function serviceStatus(service: string, url: string): Promise<ServiceStatus> {
  try {
    const answer = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(READY_TIMEOUT_MS) });
    const { ready, checks } = readySchema.parse(await answer.json());
    const reasons = Object.entries(checks).flatMap(([name, { ok, reason }]) =>
      ok ? [] : [`${name}: ${reason ?? 'failed'}`],
    );
    return { service, url, state: ready ? 'ready' : 'notReady', reasons };
  } catch {
    return { service, url, state: 'unreachable', reasons: [] };
  }
}
