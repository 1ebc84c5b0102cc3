import { until } from '@kronos/clock/testing';
import { streamNames } from '@kronos/contracts';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterAll, expect, test } from 'vitest';
import { type NatsCluster, startNatsCluster } from '../testing/cluster.ts';
import { startedEvent, taskMessage, testLimits } from '../testing/messages.ts';
import { onNewest } from '../testing/newest.ts';
import { Closing } from '../testing/suite.ts';
import { connectEventLog } from './index.ts';
import { AppendConflict } from './wire/errors.ts';

/** Three servers, three copies; on a current server, as older ones are refused for that. */

const closing = new Closing();
afterAll(() => closing.all());

const leaderOf = async (cluster: NatsCluster, stream: string): Promise<string> => {
  const nc = await connect({ servers: [...cluster.urls] });
  const info = await (await jetstreamManager(nc)).streams.info(stream);
  await nc.close();
  return info.cluster?.leader ?? '';
};

onNewest('three servers', (found) => {
  test('three servers: one winner per race, and nothing lost or doubled while the leader is killed', async () => {
    const cluster = closing.add(await startNatsCluster(3, { server: found }));
    const open = async (name: string) =>
      closing.add(await connectEventLog({ servers: [...cluster.urls], name, replicas: 3, requestTimeoutMs: 3_000 }));
    const log = await open('main');
    await log.provision({ limits: testLimits, replicas: 3, aggregates: ['gpu'], ackWaitSeconds: 4 });
    await log.verify({ streams: [streamNames.log], buckets: [], taskConsumers: ['gpu'], ackWaitSeconds: 4 });

    const racers = await Promise.all(Array.from({ length: 12 }, (_, i) => open(`racer-${i}`)));
    for (let round = 0; round < 10; round++) {
      const expectedLastSequence = await log.lastSequenceOf('results', 'gpu');
      const results = await Promise.allSettled(
        racers.map((racer, i) => racer.append(startedEvent(round * 100 + i), { expectedLastSequence })),
      );
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      for (const result of results)
        if (result.status === 'rejected') expect(result.reason).toBeInstanceOf(AppendConflict);
    }

    const view = await log.view({
      initial: [] as string[],
      evolve: (ids, { event }) => [...ids, 'id' in event ? event.id : event.type],
      snapshot: (ids) => ids,
    });
    expect(view.at().state).toHaveLength(10);
    const handled: number[] = [];
    const worker = log.tasks({
      aggregates: ['gpu'],
      concurrency: 2,
      ackWaitMs: 4_000,
      handle: async ({ sequence }) => {
        // Some are being handled when the leader is killed.
        await log.lastSequenceOf('results', 'gpu').catch(() => null);
        handled.push(sequence);
        return { kind: 'done' };
      },
    });
    const writer = await open('writer');
    const ids: string[] = [];
    const writing = (async () => {
      for (let i = 0; i < 120; i++) {
        const event = startedEvent(5_000 + i);
        await writer.append(event, { timeoutMs: 60_000 });
        ids.push(event.id);
        if (i % 6 === 0) await writer.append(taskMessage(i), { timeoutMs: 60_000 });
      }
    })();
    await until(() => ids.length > 20);
    const leader = await leaderOf(cluster, streamNames.log);
    const victim = cluster.servers.find(({ port }) => leader === `kronos-${port}`);
    await victim?.kill();
    await writing;
    await victim?.restart();
    await until(async () => ((await view.refresh().catch(() => null))?.sequence ?? 0) >= 130);
    expect(view.at().state.slice(10)).toEqual(ids);
    await until(() => new Set(handled).size === 20);
    await worker.stop();
    expect(log.healthy().ok).toBe(true);
  });
});
