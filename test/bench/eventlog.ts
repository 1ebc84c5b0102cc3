/**
 * The event log: how fast a state is rebuilt from it, beside the bare ordered consumer of the client, and how fast it is
 * written. Prints JSON; rates are per second, ratios are of runs on the same machine, one after the other.
 *
 *   node test/bench/eventlog.ts [events, default 200000]
 */
import { availableParallelism } from 'node:os';
import { defaultStorageLimits, type LogEvent, messageId, streamNames, taskId } from '@kronos/contracts';
import { connectEventLog } from '@kronos/eventlog';
import { startNatsServer } from '@kronos/eventlog/testing';
import { createFolder } from '@kronos/projections';
import { jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';

const events = Number(process.argv[2] ?? 200_000);
const ROUNDS = 3;

/** Attempts of moves: started, observed, completed; ten aggregates. */
function* history(count: number): Generator<LogEvent> {
  for (let i = 0; i < count; i++) {
    const n = Math.floor(i / 3);
    const aggregate = `aggregate-${n % 10}`;
    const planId = `${aggregate}-${n}`;
    const task = taskId(planId, 1);
    const attempt = {
      taskId: task,
      planId,
      serverId: `7d1e8f8c-5a0f-4a70-8a53-${String(n).padStart(12, '0')}`,
      attempt: 1,
      from: `compute-${n % 50}`,
      destination: `compute-${(n + 1) % 50}`,
    };
    const envelope = {
      version: 1 as const,
      time: new Date(1_767_225_600_000 + i * 1_000).toISOString(),
      aggregate,
      by: { service: 'executor' as const, instance: 'executor-1', version: '0.1.0' },
      correlationId: planId,
      causationId: messageId.requested(task, 1),
    };
    const nova = {
      migrationId: n + 1,
      requestId: `req-${n}`,
      status: 'completed',
      reason: null,
      queuedMs: 100,
      runningMs: 9_000,
      totalMs: 9_100,
      memoryBytes: 1_000_000_000,
      diskBytes: null,
    };
    if (i % 3 === 0)
      yield {
        ...envelope,
        type: 'migration.started',
        id: messageId.started(task, 1),
        data: { ...attempt, groups: [], newestMigrationId: n, forced: false, ramMb: 4096, diskGb: 20 },
      };
    else if (i % 3 === 1)
      yield {
        ...envelope,
        type: 'migration.observed',
        id: messageId.observed(task, 1),
        data: { ...attempt, migrationId: n + 1, requestId: `req-${n}` },
      };
    else
      yield {
        ...envelope,
        type: 'migration.completed',
        id: messageId.ended(task, 1),
        data: { ...attempt, outcome: 'migrated', host: attempt.destination, retries: 0, nova, warnings: [] },
      };
  }
}

const timed = async (act: () => Promise<void>): Promise<number> => {
  const began = performance.now();
  await act();
  return performance.now() - began;
};
const rate = (ms: number, count = events): number => Math.round((count / ms) * 1000);
const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;

const server = await startNatsServer();
const log = await connectEventLog({ servers: [server.url], name: 'bench' });
const nc = await connect({ servers: server.url });
try {
  await log.provision({ limits: { ...defaultStorageLimits, snapshotMaxBytes: 2 ** 30 }, replicas: 1, aggregates: [] });
  const writeMs = await timed(async () => {
    await log.appendMany(history(events));
  });
  const usage = await log.usage(streamNames.log);
  const oneByOne = 2_000;
  const singleMs = await timed(async () => {
    let sequence = 0;
    for (const event of history(oneByOne))
      sequence = (
        await log.append({ ...event, id: `again:${event.id}`, aggregate: 'other' }, { expectedLastSequence: sequence })
      ).sequence;
  });
  const total = events + oneByOne;

  const bare = async (body: (data: Uint8Array) => void): Promise<void> => {
    const consumer = await jetstream(nc).consumers.get(streamNames.log);
    const messages = await consumer.consume({ max_messages: 5_000 });
    let seen = 0;
    for await (const message of messages) {
      body(message.data);
      if (++seen === total) break;
    }
  };
  const decoder = new TextDecoder();
  const runs: Record<string, number[]> = { bare: [], parsed: [], rebuilt: [], folded: [] };
  for (let round = 0; round < ROUNDS; round++) {
    runs.bare?.push(await timed(() => bare(() => undefined)));
    runs.parsed?.push(await timed(() => bare((data) => JSON.parse(decoder.decode(data)))));
    runs.rebuilt?.push(
      await timed(async () => {
        const view = await log.view({ initial: 0, evolve: (n) => n + 1 });
        if (view.state !== total) throw new Error(`${view.state} of ${total} events were folded`);
        await view.close();
      }),
    );
    runs.folded?.push(
      await timed(async () => {
        const view = await log.view({ initial: createFolder(), evolve: (folder, stored) => folder.apply(stored) });
        await view.close();
      }),
    );
  }
  const rates = Object.fromEntries(Object.entries(runs).map(([name, ms]) => [name, rate(median(ms), total)]));
  const ratio = (name: string) => Number(((rates[name] ?? 0) / (rates.bare ?? 1)).toFixed(2));
  process.stdout.write(
    `${JSON.stringify(
      {
        server: server.version,
        node: process.version,
        cpus: availableParallelism(),
        events: total,
        bytesPerEvent: Math.round(usage.bytes / usage.messages),
        perSecond: {
          appendOneByOneExpected: rate(singleMs, oneByOne),
          appendMany: rate(writeMs),
          bareOrderedConsumer: rates.bare,
          bareAndJsonParse: rates.parsed,
          viewCounting: rates.rebuilt,
          viewFoldingState: rates.folded,
        },
        ratioToBare: { jsonParse: ratio('parsed'), viewCounting: ratio('rebuilt'), viewFoldingState: ratio('folded') },
      },
      null,
      2,
    )}\n`,
  );
} finally {
  await nc.close();
  await log.close();
  await server.stop();
}
