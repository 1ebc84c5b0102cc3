import { randomUUID } from 'node:crypto';
import { systemClock } from '@kronos/clock';
import { until } from '@kronos/clock/testing';
import type { InventoryReported } from '@kronos/contracts';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { type KeptServers, keepServers } from '@kronos/observation';
import type { Nova, Server } from '@kronos/openstack';
import { demoCloud } from '@kronos/simcloud';
import { createMetrics, type Metrics } from '@kronos/telemetry';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createFeed, type Feed, fedServers } from '../src/notifications.ts';
import { type Bed, openBed } from '../testing/bed.ts';

/** A message as Nova puts it on RabbitMQ; `context` stands for what must never be shown. */
function message(event: string, publisher: string, data: Record<string, unknown> | null): Uint8Array {
  const inner = {
    message_id: randomUUID(),
    publisher_id: publisher,
    event_type: event,
    priority: 'INFO',
    payload: data === null ? { instance_id: 'old' } : { 'nova_object.name': 'P', 'nova_object.data': data },
    _context_auth_token: 'context',
  };
  return Buffer.from(JSON.stringify({ 'oslo.version': '2.0', 'oslo.message': JSON.stringify(inner) }));
}
const about = (event: string, host: string, { id, on }: { id: string; on: string | null }): Uint8Array =>
  message(event, `nova-compute:${host}`, { uuid: id, host: on });

interface Part {
  readonly feed: Feed;
  readonly kept: KeptServers;
  readonly log: EventLog;
  readonly metrics: Metrics;
  readonly calls: string[];
  read(): Promise<readonly Server[]>;
  from(host: string): string | undefined;
}

describe('the mode notifications', () => {
  let bed: Bed;
  let hosts: string[];
  let number = 0;
  const opened: EventLog[] = [];
  const following: Promise<unknown>[] = [];

  beforeAll(async () => {
    bed = await openBed({ scenario: demoCloud(), scope: ['general'] });
    hosts = [...new Set([...bed.sim.cloud.servers.values()].flatMap((one) => one.host ?? []))].sort();
    expect(hosts.length).toBeGreaterThan(2);
  });
  afterEach(async () => {
    for (const log of opened.splice(0)) await log.close();
    await Promise.all(following.splice(0));
  });
  afterAll(() => bed.close());

  /** The parts of one process. */
  async function scorer(syncIntervalMs = 3_600_000): Promise<Part> {
    const log = await connectEventLog({ servers: [bed.nats.url], name: 'scorer' });
    opened.push(log);
    const metrics = createMetrics(resourceFromAttributes({}));
    const calls: string[] = [];
    let part: Part | null = null;
    bed.scorer({
      name: `feed-${++number}`,
      servers: (nova) => {
        const counted: Nova = {
          ...nova,
          listServers(query, options) {
            calls.push(query?.host ?? (query?.changesSince === undefined ? 'every' : 'changes'));
            return nova.listServers(query, options);
          },
          listServerIdsByHost(options) {
            calls.push('comparison');
            return nova.listServerIdsByHost(options);
          },
          getServer(id, options) {
            calls.push(id);
            return nova.getServer(id, options);
          },
        };
        const kept = keepServers({
          nova: counted,
          clock: systemClock,
          mode: 'notifications',
          optOut: ['kronos:exclude'],
          syncIntervalMs,
          maxClockSkewMs: 5_000,
          clockWrong: () => false,
          concurrency: 8,
          onResync: () => undefined,
        });
        const feed = createFeed({
          log,
          inventory: kept.inventory,
          syncIntervalMs,
          by: { service: 'scorer', instance: `feed-${number}`, version: '0' },
          clock: systemClock,
          logger: bed.silent,
          metrics: metrics.instruments,
        });
        const source = fedServers(kept, feed);
        const signal = new AbortController().signal;
        part = {
          feed,
          kept,
          log,
          metrics,
          calls,
          read: () => source.read(signal, { hosts: async () => hosts, cellsReached: async () => true }),
          from: (host) => source.listingOf(host)?.from,
        };
        return source;
      },
    });
    if (part === null) throw new Error('no source');
    const made: Part = part;
    following.push(made.feed.follow().catch(() => undefined));
    await until(() => made.feed.ready());
    made.feed.connected(true, 'test');
    return made;
  }
  const expected = (): string[] => [...bed.sim.cloud.servers.values()].map((one) => `${one.uuid} ${one.host}`).sort();
  const shown = (servers: readonly Server[]): string[] => servers.map((one) => `${one.id} ${one.host}`).sort();
  const on = (host: string) => {
    const found = [...bed.sim.cloud.servers.values()].find((one) => one.host === host && one.vmState === 'active');
    if (found === undefined) throw new Error(`no server on ${host}`);
    return found;
  };
  /** Puts a server on another host, like a migration that has just ended. */
  function move(id: string, to: string): void {
    const server = bed.sim.cloud.servers.get(id);
    if (server === undefined) throw new Error(`no server ${id}`);
    server.host = to;
    bed.sim.cloud.setServer(bed.sim.clock.now(), id, { name: server.name });
  }
  async function stored(log: EventLog, host: string): Promise<InventoryReported['data'] | null> {
    for await (const one of log.tail({ families: ['inventory'], aggregates: [host], since: 'last', end: true }))
      if (one.problem === undefined) return (one.message as InventoryReported).data;
    return null;
  }
  /** Every nova-compute speaks of one of its servers, and all lists are read since. */
  async function trusting(part: Part): Promise<void> {
    await part.read();
    for (const host of hosts)
      await part.feed.store(about('instance.power_on.end', host, { id: on(host).uuid, on: host }));
    await part.read();
    await part.read();
    part.calls.length = 0;
  }

  test('reads the list of each host in every cycle until its nova-compute is heard', async () => {
    const part = await scorer();
    expect(shown(await part.read())).toEqual(expected());
    const [first = '', ...others] = hosts;
    expect(await part.feed.store(about('instance.reboot.end', first, { id: on(first).uuid, on: first }))).toBe(
      'stored',
    );
    // A conductor saves for a compute, with the compute's binary: that is not the compute.
    for (const host of others) await part.feed.store(about('instance.update', host, { id: on(host).uuid, on: host }));
    await part.read();
    await part.read();
    part.calls.length = 0;
    expect(shown(await part.read())).toEqual(expected());
    expect(part.calls.sort()).toEqual(others);
    expect(hosts.map((host) => part.from(host))).toEqual(['notifications', ...others.map(() => 'api')]);
  });

  test('reads nothing but what a notification named, and the stream holds the list of each host', async () => {
    const part = await scorer();
    await trusting(part);
    expect(shown(await part.read())).toEqual(expected());
    expect(part.calls).toEqual([]);
    const [from = '', to = ''] = hosts;
    const moved = on(from);
    move(moved.uuid, to);
    await part.feed.store(about('instance.live_migration_post_dest.end', to, { id: moved.uuid, on: to }));
    expect((await stored(part.log, from))?.instances).not.toContain(moved.uuid);
    expect((await stored(part.log, to))?.instances).toContain(moved.uuid);
    expect(shown(await part.read())).toEqual(expected());
    expect(part.calls).toEqual([moved.uuid]);
    const gone = on(to);
    bed.sim.cloud.deleteServer(bed.sim.clock.now(), gone.uuid);
    await part.feed.store(about('instance.delete.end', to, { id: gone.uuid, on: to }));
    part.calls.length = 0;
    const after = await part.read();
    expect(after.some((one) => one.id === gone.uuid)).toBe(false);
    expect(part.calls).toEqual([]);
    expect(hosts.map((host) => part.from(host))).toEqual(hosts.map(() => 'notifications'));
  });

  test('hears what another scorer takes from RabbitMQ, and both may write the same host', async () => {
    const [one, two] = [await scorer(), await scorer()];
    await Promise.all([one.read(), two.read()]);
    const [host = ''] = hosts;
    const many = Array.from({ length: 40 }, (_, i) =>
      (i % 2 === 0 ? one : two).feed.store(about('instance.power_off.end', host, { id: on(host).uuid, on: host })),
    );
    expect(new Set(await Promise.all(many))).toEqual(new Set(['stored']));
    for (let i = 0; i < 2; i++) await Promise.all([one.read(), two.read()]);
    expect([one.from(host), two.from(host)]).toEqual(['notifications', 'notifications']);
  });

  test('rejects what it cannot read, names it, and loses nothing else', async () => {
    const part = await scorer();
    const [host = ''] = hosts;
    const bad = [
      Buffer.from('no JSON'),
      Buffer.from('{}'),
      Buffer.from(JSON.stringify({ 'oslo.message': '{' })),
      about('instance.update', host, { id: 'no uuid', on: host }),
      about('instance.update', host, { id: on(host).uuid, on: 'x'.repeat(300) }),
      Buffer.alloc(2_000_000, 0x20),
    ];
    const outcomes = await Promise.all([
      ...bad.map((one) => part.feed.store(one)),
      part.feed.store(message('compute.instance.update', `compute.${host}`, null)),
      part.feed.store(message('service.update', `nova-compute:${host}`, { host })),
      part.feed.store(about('instance.reboot.end', host, { id: on(host).uuid, on: host })),
    ]);
    expect(outcomes).toEqual([...bad.map(() => 'bad'), 'stored', 'stored', 'stored']);
    const text = await part.metrics.scrape();
    for (const line of [
      `kronos_notifications_total{outcome="rejected"} ${bad.length}`,
      'kronos_notifications_total{outcome="unversioned"} 1',
      'kronos_notifications_total{outcome="ignored"} 1',
      'kronos_notifications_total{outcome="stored"} 1',
    ])
      expect(text).toContain(line);
  });

  test('compares at once when RabbitMQ is back, and trusts nobody when it was away for longer than sync_interval', async () => {
    const part = await scorer();
    await trusting(part);
    // Lost with the binding: no notification names it.
    const [from = '', to = ''] = hosts;
    move(on(from).uuid, to);
    part.feed.connected(false, 'test');
    part.feed.connected(true, 'test');
    expect(shown(await part.read())).toEqual(expected());
    expect(part.calls).toContain('comparison');

    const impatient = await scorer(1);
    await trusting(impatient);
    impatient.feed.connected(false, 'test');
    const lostAt = performance.now();
    await until(() => performance.now() - lostAt > 10);
    await impatient.read();
    expect(hosts.map((host) => impatient.from(host))).toEqual(hosts.map(() => 'api'));
  });
});
