import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { createNova, createPlacement, createSession } from '@kronos/openstack';
import { createFolder, type Folder } from '@kronos/projections';
import { createLogger, createMetrics } from '@kronos/telemetry';
import { trace } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from './clock.ts';
import { taskMeters } from './meters.ts';
import { defaultTaskOptions, type TaskOptions } from './options.ts';
import { providers } from './providers.ts';
import { AGGREGATE, type Bed, breaches, smallCloud, startBed } from './testing.ts';
import { createExecutor, type Executor } from './worker.ts';

const caps = { maxConcurrentMigrations: 4, maxOutboundPerHost: 1, maxInboundPerHost: 2, maxConcurrentPerGroup: 1 };

/** The waits of the specification, at the pace of the simulated cloud. */
const scaled: TaskOptions = {
  ...defaultTaskOptions,
  pollIntervalMs: 50,
  retryBackoffMs: 100,
  retryBackoffMaxMs: 1000,
  takeoverMs: 3000,
  postWindowMs: 1000,
  abortAgainMs: 500,
  settleMs: 3000,
  blindMaxMs: 500,
};

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function bedWith(...given: Parameters<typeof startBed>): Promise<Bed> {
  const bed = await startBed(...given);
  closing.push(() => bed.close());
  return bed;
}

async function executorOn(
  bed: Bed,
  options: Partial<TaskOptions> = {},
  name = 'executor',
): Promise<{ executor: Executor; log: EventLog }> {
  const log = await connectEventLog({ servers: [bed.nats.url], name });
  const view = await log.view<Folder>({ initial: createFolder(), evolve: (folder, stored) => folder.apply(stored) });
  await view.refresh();
  const session = createSession({
    auth: {
      authType: 'password',
      authUrl: bed.sim.urls.identity,
      username: 'admin',
      password: 'secret',
      projectName: 'admin',
      userDomainName: 'Default',
      projectDomainName: 'Default',
    },
    retry: { connection: { retries: 0, backoffMs: 10 }, status: { retries: 0, backoffMs: 10 } },
  });
  const nova = createNova(session);
  const metrics = createMetrics(resourceFromAttributes({}));
  const executor = createExecutor({
    log,
    view,
    aggregates: [AGGREGATE],
    cloud: { nova, placement: createPlacement(session), providerOf: providers(nova, systemClock) },
    check: { aggregates: [AGGREGATE], optOut: ['kronos:exclude'], force: options.force ?? false },
    options: { ...scaled, ...options },
    caps,
    ackWaitMs: 1000,
    concurrency: 100,
    by: { service: 'executor', instance: name, version: '0' },
    clock: systemClock,
    logger: createLogger({ service: name, version: '0', level: process.env.TEST_LOG ?? 'silent', format: 'json' }),
    tracer: trace.getTracer('test'),
    meters: taskMeters(metrics.instruments),
  });
  closing.push(async () => {
    await executor.stop();
    await view.close();
    await log.close();
    await session.close();
    await metrics.shutdown();
  });
  return { executor, log };
}

describe('the executor on a simulated cloud', () => {
  it('migrates a server and says so when Nova has said so', async () => {
    const bed = await bedWith(smallCloud());
    await executorOn(bed);
    const tasks = await bed.release([{ server: 'h1-1', from: 'h1', to: 'h2' }]);
    const [final] = await bed.finals(tasks);
    expect(final).toMatchObject({
      type: 'migration.completed',
      data: {
        outcome: 'migrated',
        host: 'h2',
        retries: 0,
        warnings: [],
        nova: { status: 'completed', migrationId: 1 },
      },
    });
    const results = await bed.results();
    expect(results.map(({ event }) => event.type)).toEqual([
      'migration.started',
      'migration.observed',
      'migration.completed',
    ]);
    expect(breaches(bed.sim, results, tasks, caps)).toEqual([]);
  });
});
