import { until } from '@kronos/clock/testing';
import { bucketNames, defaultStorageLimits, streamDefinitions, streamNames, UNASSIGNED } from '@kronos/contracts';
import { expect, test } from 'vitest';
import { failure } from '../../testing/async.ts';
import { pausedEvent, testLimits } from '../../testing/messages.ts';
import { startProxy } from '../../testing/proxy.ts';
import { onEachServer } from '../../testing/suite.ts';
import { atLeast } from '../wire/capabilities.ts';
import { definitionDifferences, streamConfig } from '../wire/definitions.ts';
import { NotProvisioned, PayloadTooSmall, ProvisionRefused } from '../wire/errors.ts';

const aggregates = ['gpu', UNASSIGNED, 'Größe 1 / "*>"', 'x'.repeat(255)];
const wanted = { limits: testLimits, replicas: 1, aggregates };
const everything = {
  streams: Object.values(streamNames),
  buckets: Object.values(bucketNames),
  taskConsumers: aggregates,
  limits: testLimits,
};

onEachServer('provisioning', { concurrent: false }, (bench) => {
  test('makes everything once, and finds nothing to do the second time', async () => {
    const log = await bench.connect(await bench.server());
    const first = await log.provision(wanted);
    expect(first.created).toHaveLength(everything.streams.length + everything.buckets.length + aggregates.length);
    const second = await log.provision(wanted);
    expect(second).toEqual({ created: [], changed: [], kept: [], extra: [], unchanged: first.created });
    await log.verify(everything);
  });

  test('changes what may change, and names durables that no aggregate has any more', async () => {
    const { log } = await bench.provisioned(aggregates);
    const limits = { ...testLimits, logMaxBytes: testLimits.logMaxBytes / 2, snapshotMaxAgeSeconds: 1800 };
    const report = await log.provision({ limits, replicas: 1, aggregates: ['gpu'], ackWaitSeconds: 12 });
    expect(report.created).toEqual([]);
    expect(report.changed).toContainEqual({ what: 'stream KRONOS_LOG', fields: ['max_bytes'] });
    expect(report.changed).toContainEqual({ what: 'consumer KRONOS_MIGRATIONS/tasks-gpu', fields: ['ack_wait'] });
    expect(report.extra).toHaveLength(aggregates.length - 1);
    await log.verify({ ...everything, taskConsumers: ['gpu'], limits, ackWaitSeconds: 12 });
  });

  test('streams that were made without a limit of consumers get one, where the server can change it', async () => {
    const server = await bench.server();
    const { jsm } = await bench.bare(server);
    const [older] = streamDefinitions(testLimits).filter(({ name }) => name === streamNames.log);
    if (older === undefined) throw new Error('no log');
    await jsm.streams.add({
      ...streamConfig(older, 1),
      subjects: [...older.subjects],
      max_consumers: -1,
      max_bytes: 2e8,
    });
    const log = await bench.connect(server);
    const report = await log.provision(wanted);
    const { config } = await jsm.streams.info(streamNames.log);
    const old = !atLeast(bench.found.version, '2.14.0');
    expect(config).toMatchObject({ max_bytes: testLimits.logMaxBytes, max_consumers: old ? -1 : older.maxConsumers });
    expect(report.changed).toEqual([
      { what: 'stream KRONOS_LOG', fields: old ? ['max_bytes'] : ['max_bytes', 'max_consumers'] },
    ]);
    expect(report.kept).toEqual(
      old ? [`stream KRONOS_LOG: max_consumers is -1, and must be ${older.maxConsumers}`] : [],
    );
    await log.verify(everything);
    expect((await log.provision(wanted)).changed).toEqual([]);
  });

  test('a server that takes too small messages is refused at provisioning and at the start, with the size needed', async () => {
    const small = await bench.server({ config: 'max_payload: 500KB' });
    const log = await bench.connect(small);
    for (const act of [log.provision(wanted), log.verify({ streams: [], buckets: [], taskConsumers: [] })]) {
      const error = await failure(act);
      expect(error).toBeInstanceOf(PayloadTooSmall);
      expect(String(error)).toMatch(/at most 512000 bytes.*needs 1048576/);
    }
    const enough = await bench.connect(await bench.server({ config: 'max_payload: 1MB' }));
    await enough.provision(wanted);
  });

  test('verify names every difference at once, and the remedy', async () => {
    const { server, log } = await bench.provisioned(['gpu']);
    const { jsm } = await bench.bare(server);
    await jsm.streams.update('KRONOS_SNAPSHOTS', { discard: 'new' });
    await jsm.streams.delete('OBJ_kronos-details');
    await jsm.consumers.delete('KRONOS_MIGRATIONS', 'tasks-gpu');
    const error = await failure(log.verify({ ...everything, taskConsumers: ['gpu', 'new one'] }));
    expect(error).toBeInstanceOf(NotProvisioned);
    expect((error as NotProvisioned).differences).toEqual([
      'stream KRONOS_SNAPSHOTS: discard is "new", and must be "old"',
      'bucket kronos-details is missing',
      'consumer KRONOS_MIGRATIONS/tasks-gpu is missing (the tasks of aggregate "gpu")',
      'consumer KRONOS_MIGRATIONS/tasks-new=20one is missing (the tasks of aggregate "new one")',
    ]);
    expect(String(error)).toContain('kronos provision');
    await log.provision({ ...wanted, aggregates: ['gpu', 'new one'] });
    await log.verify({ ...everything, taskConsumers: ['gpu', 'new one'] });
  });

  test('a service need not know the sizes of the installation', async () => {
    const { log } = await bench.provisioned(['gpu']);
    await log.verify({ streams: ['KRONOS_LOG'], buckets: ['kronos-snapshots'], taskConsumers: ['gpu'] });
    const error = await failure(
      log.verify({ streams: ['KRONOS_LOG'], buckets: [], taskConsumers: [], limits: defaultStorageLimits }),
    );
    expect(String(error)).toContain('max_bytes');
  });

  test('a cluster whose servers are slow to answer at first: every request of provisioning is asked again', async () => {
    const server = await bench.server();
    const proxy = bench.closing.add(await startProxy(server.port));
    const log = await bench.connect(proxy, { requestTimeoutMs: 300 });
    // The last request of provisioning: the list of all consumers.
    const asked = () => proxy.sentSince(0).split('$JS.API.CONSUMER.LIST.').length - 1;
    proxy.muteAt('$JS.API.CONSUMER.LIST.');
    const provisioning = log.provision(wanted);
    await Promise.race([until(() => asked() >= 5), provisioning]);
    proxy.heal();
    expect((await provisioning).extra).toEqual([]);
  });

  test('what cannot be changed is an error that says so', async () => {
    const server = await bench.server();
    const { jsm } = await bench.bare(server);
    await jsm.streams.add({ name: 'KRONOS_MIGRATIONS', subjects: ['kronos.migrations.*'], retention: 'limits' });
    const error = await failure((await bench.connect(server)).provision(wanted));
    expect(error).toBeInstanceOf(ProvisionRefused);
    expect(String(error)).toMatch(/KRONOS_MIGRATIONS.*retention.*; this cannot be changed/);
  });

  test('subjects that another stream takes are an error that says so', async () => {
    const server = await bench.server();
    const { jsm } = await bench.bare(server);
    await jsm.streams.add({ name: 'OTHER', subjects: ['kronos.>'] });
    expect(String(await failure((await bench.connect(server)).provision(wanted)))).toMatch(/another stream takes/);
  });

  test('a server without the room is an error that names the limits', async () => {
    const server = await bench.server({ jetstream: 'max_file: 100MB' });
    expect(String(await failure((await bench.connect(server)).provision(wanted)))).toMatch(/max_file/);
  });

  test('a work queue takes no second consumer of the same subject, so two durables cannot share a task', async () => {
    const { server, log } = await bench.provisioned(['gpu']);
    const { jsm } = await bench.bare(server);
    const add = (config: object) =>
      failure(jsm.consumers.add('KRONOS_MIGRATIONS', { ack_policy: 'explicit', ...config }));
    expect(await add({ durable_name: 'rival', filter_subject: 'kronos.migrations.gpu' })).toMatchObject({
      code: 10100,
    });
    expect(await add({ durable_name: 'all' })).toMatchObject({ code: 10099 });
    expect(
      await add({ durable_name: 'none', ack_policy: 'none', filter_subject: 'kronos.migrations.x' }),
    ).toMatchObject({
      code: 10084,
    });
    // Somebody else's consumer in the way of ours.
    await jsm.consumers.add('KRONOS_MIGRATIONS', {
      durable_name: 'rival',
      ack_policy: 'explicit',
      filter_subject: 'kronos.migrations.new',
    });
    expect(String(await failure(log.provision({ ...wanted, aggregates: ['gpu', 'new'] })))).toContain('10100');
  });

  test('the log can be neither purged nor thinned out', async () => {
    const { server, log } = await bench.provisioned();
    const { sequence } = await log.append(pausedEvent('1'));
    const { jsm } = await bench.bare(server);
    expect(await failure(jsm.streams.purge('KRONOS_LOG'))).toMatchObject({ code: 10110 });
    expect(await failure(jsm.streams.deleteMessage('KRONOS_LOG', sequence))).toMatchObject({ code: 10057 });
    expect(await failure(jsm.streams.update('KRONOS_LOG', { deny_purge: false }))).toMatchObject({ status: 500 });
  });

  test('a field that the server drops without a word is found by comparing its answer', async () => {
    const server = await bench.server();
    const { jsm } = await bench.bare(server);
    const config = { name: 'TTL', subjects: ['ttl.*'], allow_msg_ttl: true };
    const made = await jsm.streams.add(config);
    const { messageTtl } = (await bench.connect(server)).server.capabilities;
    expect(definitionDifferences(config, { ...made.config })).toEqual(
      messageTtl ? [] : [{ field: 'allow_msg_ttl', want: true, have: undefined }],
    );
  });

  test('making a durable again with another configuration changes it on old servers and is refused by new ones', async () => {
    const { server } = await bench.provisioned(['gpu']);
    const { jsm } = await bench.bare(server);
    const again = jsm.consumers.add('KRONOS_MIGRATIONS', {
      durable_name: 'tasks-gpu',
      ack_policy: 'explicit',
      filter_subject: 'kronos.migrations.gpu',
      max_ack_pending: 7,
    });
    if (bench.found.version.startsWith('2.9.')) expect((await again).config.max_ack_pending).toBe(7);
    else expect(await failure(again)).toMatchObject({ code: 10148 });
  });

  test('sync_interval is for servers that have it', async () => {
    const jetstream = 'sync_interval: always';
    const { syncInterval } = (await bench.connect(await bench.server())).server.capabilities;
    if (syncInterval) {
      // The operator of the server sees it there. No client of an account sees it.
      const log = (await bench.server({ jetstream, config: 'http: "127.0.0.1:-1"' })).logText();
      const [, port] = /http monitor on 127\.0\.0\.1:(\d+)/.exec(log) ?? [];
      const { config } = (await (await fetch(`http://127.0.0.1:${port}/jsz`)).json()) as { config: unknown };
      expect(config).toMatchObject({ sync_always: true });
    } else expect(String(await failure(bench.server({ jetstream })))).toContain('sync_interval');
  });
});
