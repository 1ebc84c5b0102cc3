import { type Clock, systemClock } from '@kronos/clock';
import { connectEventLog, type EventLog, type LogView } from '@kronos/eventlog';
import { createNeutron, createNova, createPlacement, createSession, type Nova, type Session } from '@kronos/openstack';
import { folding, type LogState } from '@kronos/projections';
import { createLogger, createMetrics, type Metrics } from '@kronos/telemetry';
import { trace } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { checkedCloud } from '../src/checkedCloud.ts';
import { type TaskMeters, taskMeters } from '../src/meters.ts';
import { createExecutor, type Executor, type ExecutorDeps } from '../src/worker.ts';

interface Parts {
  readonly log: EventLog;
  readonly view: LogView<LogState>;
  readonly session: Session;
}

/** The connections of one executor: the log, folded to its end, and a session of the simulated cloud's administrator. */
export async function openParts(
  servers: { readonly natsUrl: string; readonly authUrl: string },
  name: string,
  session: Omit<Parameters<typeof createSession>[0], 'auth'>,
): Promise<Parts> {
  const log = await connectEventLog({ servers: [servers.natsUrl], name });
  const view = await log.view(folding());
  return {
    log,
    view,
    session: createSession({
      auth: {
        authType: 'password',
        authUrl: servers.authUrl,
        username: 'admin',
        password: 'secret',
        projectName: 'admin',
        userDomainName: 'Default',
        projectDomainName: 'Default',
      },
      ...session,
    }),
  };
}

type Servers = Parameters<typeof openParts>[0];

interface Given extends Pick<ExecutorDeps, 'aggregates' | 'check' | 'options' | 'caps' | 'ackWaitMs' | 'concurrency'> {
  readonly name: string;
  readonly session: Parameters<typeof openParts>[2];
  /** `[nova] sriov_ports` */
  readonly sriovPorts: Parameters<typeof checkedCloud>[1];
  readonly clock?: Clock;
  /** Of its log; default: silent. */
  readonly level?: string | undefined;
  readonly metersOf?: (meters: TaskMeters) => TaskMeters;
  /** Methods in place of those of its log. */
  readonly wrap?: ((log: EventLog) => Partial<EventLog>) | undefined;
}

export interface Started {
  readonly executor: Executor;
  readonly log: EventLog;
  readonly nova: Nova;
  readonly metrics: Metrics;
  /** @param graceMs for tasks that run */
  stop(graceMs?: number): Promise<void>;
}

/** An executor on connections of its own. */
export async function startExecutor(servers: Servers, given: Given): Promise<Started> {
  const { name, session: calls, sriovPorts, clock = systemClock, level = 'silent', metersOf, wrap, ...deps } = given;
  const { log, view, session } = await openParts(servers, name, calls);
  const nova = createNova(session);
  const metrics = createMetrics(resourceFromAttributes({}));
  const meters = taskMeters(metrics.instruments);
  const clients = { nova, placement: createPlacement(session), neutron: createNeutron(session) };
  const executor = createExecutor({
    ...deps,
    log: Object.assign(Object.create(log) as EventLog, wrap?.(log)),
    view,
    cloud: checkedCloud(clients, sriovPorts, systemClock),
    by: { service: 'executor', instance: name, version: '0' },
    clock,
    clockProblem: () => null,
    logger: createLogger({ service: name, version: '0', level }),
    tracer: trace.getTracer('test'),
    meters: metersOf?.(meters) ?? meters,
  });
  return {
    executor,
    log,
    nova,
    metrics,
    async stop(graceMs) {
      await executor.stop(graceMs);
      await view.close();
      await log.close();
      await session.close();
      await metrics.shutdown();
    },
  };
}
