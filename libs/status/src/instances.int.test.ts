import { until } from '@kronos/clock/testing';
import { defaultStorageLimits, messageId, type ServiceReported, streamNames } from '@kronos/contracts';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { bareConnection, type NatsServer, reportedEvent, startNatsServer } from '@kronos/eventlog/testing';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { LivingInstances } from './index.ts';

let server: NatsServer;
let log: EventLog;

beforeAll(async () => {
  server = await startNatsServer();
  log = await connectEventLog({ servers: [server.url], name: 'test' });
});
afterAll(async () => {
  await log.close();
  await server.stop();
});
beforeEach(makeAnew);

async function makeAnew(): Promise<void> {
  const connection = await bareConnection(server.url);
  await connection.request(`$JS.API.STREAM.DELETE.${streamNames.services}`, '');
  await connection.close();
  await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu'] });
}

let sent = 0;
async function report(instance: string, state: ServiceReported['data']['state'] = 'running'): Promise<void> {
  const event = reportedEvent('planner', instance, new Date().toISOString(), { state });
  await log.append({ ...event, id: messageId.reported('planner', instance, ++sent) });
}
const names = async (instances: LivingInstances, nowMs = Date.now()) =>
  (await instances.at(nowMs))?.map(({ instance }) => instance).sort() ?? null;

it('counts the instances whose heartbeats arrive, from the first look on', async () => {
  await report('a:1');
  await report('b:1', 'stopped');
  const instances = new LivingInstances(log);
  expect(await names(instances)).toEqual(['a:1']);
  await report('c:1');
  await until(async () => (await names(instances))?.includes('c:1'));
  await report('a:1', 'stopped');
  await until(async () => (await names(instances))?.includes('a:1') === false);
  expect(await names(instances)).toEqual(['c:1']);
});

it('does not count an instance whose heartbeats stay away', async () => {
  await report('a:1');
  const instances = new LivingInstances(log);
  expect(await names(instances)).toEqual(['a:1']);
  expect(await names(instances, Date.now() + 60_000)).toEqual([]);
  // A clock that was wrong for a moment.
  expect(await names(instances)).toEqual(['a:1']);
});

it('counts the instances on a stream that was made anew', async () => {
  await report('a:1');
  await report('a:2');
  const instances = new LivingInstances(log);
  expect(await names(instances)).toEqual(['a:1', 'a:2']);
  await makeAnew();
  await report('b:1');
  // No heartbeat of before is left.
  expect(await names(instances, Date.now() + 60_000)).toEqual([]);
  expect(await names(instances)).toEqual(['b:1']);
});
