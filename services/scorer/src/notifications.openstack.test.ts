import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, promisify } from 'node:util';
import { systemClock } from '@kronos/clock';
import { until } from '@kronos/clock/testing';
import { defaultConfig, Secret } from '@kronos/config';
import { openNotifications } from '@kronos/connect';
import { byText } from '@kronos/contracts';
import { keepServers, type ServerSource } from '@kronos/observation';
import type { Nova, Server } from '@kronos/openstack';
import { createMetrics, type Metrics } from '@kronos/telemetry';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bedUrls } from '../../../test/openstack/urls.ts';
import { createFeed, type Feed, fedServers } from '../src/notifications.ts';
import { openStand, type Stand } from '../testing/bed.ts';

const script = fileURLToPath(new URL('../../../test/openstack/bed', import.meta.url));
const bed = async (...args: string[]): Promise<string> =>
  (await promisify(execFile)(script, args, { maxBuffer: 64 * 1024 ** 2 })).stdout;
const HOSTS = ['cmp1', 'cmp2', 'cmp3', 'cmp4', 'cmp5', 'cmp6'];
/** Its nova-compute sends only unversioned notifications. */
const OLD = 'cmp6';
const signal = new AbortController().signal;
const WITHIN_MS = 120_000;
/** A list of servers takes a tenth of a second of the cloud's CPU. */
const EVERY_MS = 400;

const act = async (id: string, body: Record<string, unknown>): Promise<void> => {
  const answer = await bed('api', 'POST', `/servers/${id}/action`, JSON.stringify(body));
  if (/"code": ?4\d\d/.test(answer)) throw new Error(answer);
};
const boot = async (count: number, host: string): Promise<string[]> =>
  (await bed('servers', String(count), host)).match(/[0-9a-f-]{36}/g) ?? [];

describe("Nova's notifications on a real RabbitMQ", () => {
  let stand: Stand;
  let nova: Nova;
  let source: ServerSource;
  let feed: Feed;
  let metrics: Metrics;
  let comparisons = 0;
  let connected = false;
  let stop: () => Promise<void> = async () => undefined;
  let following: Promise<unknown> = Promise.resolve();

  const read = (): Promise<readonly Server[]> =>
    source.read(signal, { hosts: async () => HOSTS, cellsReached: async () => true });
  const from = (host: string): string | undefined => source.listingOf(host)?.from;
  /** Nova shows the groups of a server where it is read by itself, not in a list. */
  const sorted = (servers: readonly Server[]): Omit<Server, 'groupIds'>[] =>
    servers.map(({ groupIds: _, ...one }) => one).sort((a, b) => byText(a.id, b.id));
  /** Reads until the kept list is Nova's own, on both sides of one reading of it. */
  const same = async (): Promise<void> => {
    let differing: unknown = 'none read';
    await until(
      async () => {
        const before = sorted(await nova.listServers({}, { signal }));
        const kept = sorted(await read());
        const after = sorted(await nova.listServers({}, { signal }));
        differing = after.flatMap((one, i) => (isDeepStrictEqual(one, kept[i]) ? [] : [{ nova: one, kept: kept[i] }]));
        return isDeepStrictEqual(before, after) && isDeepStrictEqual(kept, after);
      },
      WITHIN_MS,
      () => `the kept list to be that of Nova; differing: ${JSON.stringify(differing)}`,
      EVERY_MS,
    );
  };
  const shown = async (id: string): Promise<Server | undefined> =>
    (await nova.listServers({}, { signal })).find((one) => one.id === id);
  const settled = (id: string, status: string, host?: string | null): Promise<unknown> =>
    until(
      async () => {
        const server = await shown(id);
        if (server?.status === 'ERROR') throw new Error(`${id} is in ERROR`);
        return server?.status === status && server.taskState === null && (host === undefined || server.host === host);
      },
      WITHIN_MS,
      async () => `${id} to be ${status} on ${host}: ${JSON.stringify(await shown(id))}`,
      EVERY_MS,
    );

  beforeAll(async () => {
    await bed('reset');
    await bed('seconds', '1');
    await bed('host', OLD, 'unversioned');
    stand = await openStand({ scope: ['_unassigned_'], urls: bedUrls });
    metrics = createMetrics(resourceFromAttributes({}));
    stand.scorer({
      servers: (client) => {
        nova = client;
        const counted: Nova = {
          ...client,
          listServerIdsByHost(options) {
            comparisons++;
            return client.listServerIdsByHost(options);
          },
        };
        const common = { syncIntervalMs: 3_600_000, clock: systemClock };
        const kept = keepServers({
          ...common,
          nova: counted,
          mode: 'notifications',
          optOut: ['kronos:exclude'],
          maxClockSkewMs: 5_000,
          clockWrong: () => false,
          concurrency: 8,
          onResync: () => undefined,
        });
        feed = createFeed({
          ...common,
          log: stand.log,
          inventory: kept.inventory,
          by: { service: 'scorer', instance: 'bed', version: '0' },
          logger: stand.silent,
          metrics: metrics.instruments,
        });
        source = fedServers(kept, feed);
        return source;
      },
    });
    following = feed.follow().catch(() => undefined);
    const inventory = {
      ...defaultConfig.inventory,
      mode: 'notifications' as const,
      // The first broker does not exist.
      transportUrl: new Secret(`rabbit://guest:guest@127.0.0.1:9,127.0.0.1:${bedUrls.rabbitPort}/`),
      queue: `kronos-${randomUUID()}`,
    };
    const consuming = openNotifications(
      { inventory },
      {
        name: 'kronos-scorer bed',
        clock: systemClock,
        ready: () => feed.ready(),
        store: (body) => feed.store(body),
        onState: (state) => {
          connected = state.connected;
          feed.connected(state.connected, state.detail);
        },
      },
    );
    stop = () => consuming.stop();
    await until(() => connected, WITHIN_MS);
  }, 600_000);
  afterAll(async () => {
    await stop();
    await stand?.close();
    await following;
    await bed('host', OLD, 'versioned');
    await bed('reset');
  }, 600_000);

  test('everything that happens to servers is followed, and a compute with unversioned notifications is read in every cycle', {
    timeout: 900_000,
  }, async () => {
    const [stays = '', resized = '', live = '', cold = '', shelved = '', rebuilt = '', deleted = '', old = ''] = [
      ...(await boot(7, 'cmp1')),
      ...(await boot(1, OLD)),
    ];
    await same();
    // Heard, and its list read since.
    await until(async () => (await read()) && from('cmp1') === 'notifications', WITHIN_MS);
    const before = comparisons;
    const image = (await bed('api', 'GET', `/servers/${rebuilt}`)).match(/"image": \{"id": "([0-9a-f-]{36})"/)?.[1];
    await Promise.all([
      act(resized, { resize: { flavorRef: '2' } }),
      act(live, { 'os-migrateLive': { host: 'cmp2', block_migration: 'auto' } }),
      act(cold, { migrate: { host: 'cmp3' } }),
      act(shelved, { shelve: null }),
      act(rebuilt, { rebuild: { imageRef: image } }),
      act(stays, { lock: {} }),
      act(old, { 'os-stop': null }),
      bed('api', 'DELETE', `/servers/${deleted}`),
    ]);
    await Promise.all([
      settled(resized, 'VERIFY_RESIZE'),
      settled(live, 'ACTIVE', 'cmp2'),
      settled(cold, 'VERIFY_RESIZE', 'cmp3'),
      settled(shelved, 'SHELVED_OFFLOADED', null),
      settled(rebuilt, 'ACTIVE', 'cmp1'),
      settled(old, 'SHUTOFF', OLD),
      until(async () => (await shown(deleted)) === undefined, WITHIN_MS, `${deleted} gone`, EVERY_MS),
    ]);
    await same();
    expect(comparisons).toBe(before);
    expect(from('cmp1')).toBe('notifications');
    expect(from(OLD)).toBe('api');
    expect(await metrics.scrape()).not.toContain('outcome="rejected"');
  });

  test('after RabbitMQ was stopped, the next comparison makes the list equal to that of Nova', {
    timeout: 900_000,
  }, async () => {
    const [locked = '', moved = ''] = await boot(2, 'cmp4');
    await same();
    const before = comparisons;
    await bed('rabbit', 'stop');
    await until(() => !connected, WITHIN_MS);
    // The API waits for RabbitMQ with its notification.
    const waiting = act(locked, { lock: {} });
    await bed('rabbit', 'start');
    await waiting;
    await until(() => connected, WITHIN_MS);
    const up = async () => (await nova.listServices({ signal })).every((one) => one.state === 'up');
    await until(up, WITHIN_MS, 'every nova-compute up', EVERY_MS);
    await act(moved, { 'os-migrateLive': { host: 'cmp5', block_migration: 'auto' } });
    await settled(moved, 'ACTIVE', 'cmp5');
    await same();
    expect(comparisons).toBeGreaterThan(before);
    expect(from(OLD)).toBe('api');
  });
});
