/** Drains on a real Nova: VMs that cannot move, fail twice or are deleted, a host that somebody enables, rolling maintenance of three hosts. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LogEvent } from '@kronos/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoInstallation, openInstallation } from '../../libs/cli/src/demo/installation.ts';
import { runKronos } from '../e2e/command.ts';
import { ofType, type Watch, watch } from '../e2e/world.ts';
import { bed, bedConfig } from './urls.ts';

const AGGREGATE = 'kronos-drain';
const HOSTS = ['cmp1', 'cmp2', 'cmp3'];

/** Only rules ask for moves: balancing would compete for them. */
const config = ({ natsUrl, policiesFile }: { natsUrl: string; policiesFile: string }) => `[engine]
aggregates = ${AGGREGATE}
policies_file = ${policiesFile}
balance = false
dry_run = false
evaluation_interval = 5
cooldown = 1
instance_cooldown = 1
instance_quarantine_seconds = 1
settle_seconds = 0
evacuation_ignores_cooldown = true
[executor]
max_concurrent_migrations = 4
poll_interval = 1
retry_backoff = 1
${bedConfig({ natsUrl })}`;

type NovaServer = { id: string; status: string; 'OS-EXT-SRV-ATTR:host': string };
type NovaService = { host: string; status: string; disabled_reason: string | null };

const servers = async (): Promise<NovaServer[]> =>
  (JSON.parse(await bed('api', 'GET', '/servers/detail?all_tenants=1')) as { servers: NovaServer[] }).servers;
const service = async (host: string): Promise<NovaService | undefined> =>
  (JSON.parse(await bed('api', 'GET', `/os-services?binary=nova-compute&host=${host}`)) as { services: NovaService[] })
    .services[0];
describe('drains on a real OpenStack', () => {
  let kronos: DemoInstallation;
  let log: Watch;
  let directory: string;
  let locked = '';
  let failing = '';
  let deleted = '';
  let plain = '';

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kronos-drain-'));
    await bed('reset');
    await bed('seconds', '1');
    await bed('aggregate', AGGREGATE, ...HOSTS);
    const booted = await bed('servers', '4', 'cmp1');
    [locked = '', failing = '', deleted = '', plain = ''] = booted
      .split(/\s+/)
      .filter((id) => /^[0-9a-f-]{36}$/.test(id));
    expect(plain).not.toBe('');
    await bed('api', 'POST', `/servers/${locked}/action`, JSON.stringify({ lock: {} }));
    await bed('fault', failing, 'fail');
    await bed('fault', deleted, 'slow 30');
    kronos = await openInstallation({ config, policies: 'policies: []\n', say: () => {}, onExit: () => {} });
    log = watch(kronos);
    await log.until('a decision', (events) => ofType(events, 'cycle.decided').length > 0, 120_000);
  });
  afterAll(async () => {
    await kronos?.close();
    await rm(directory, { recursive: true, force: true });
    await bed('reset');
  });

  const run = (...args: string[]) => runKronos(args, { KRONOS_CONFIG: kronos.configFile });

  it('a VM that cannot move blocks the end of the drain; one that fails twice leaves; a deleted one no longer counts', async () => {
    const asked = await run('drain', 'cmp1', '--yes', '-r', 'firmware');
    expect(asked.status, asked.text).toBe(0);
    await log.until('the service to be disabled', (events) => ofType(events, 'host.disabled').length > 0, 120_000);
    expect(await service('cmp1')).toMatchObject({
      status: 'disabled',
      disabled_reason: expect.stringMatching(/^Kronos drain /),
    });

    const failures = (events: readonly LogEvent[]) =>
      ofType(events, 'migration.failed').filter(({ data }) => data.serverId === failing && data.started);
    const gone = (events: readonly LogEvent[]) =>
      ofType(events, 'migration.failed').find(({ data }) => data.serverId === deleted && !data.retryPending);
    // Nova runs one live migration per source at a time, so the slow one delays the others in any order.
    await Promise.all([
      (async () => {
        await log.until('two failed attempts', (events) => failures(events).length >= 2);
        await bed('fault', failing, 'clear');
      })(),
      (async () => {
        const observed = (events: readonly LogEvent[]) =>
          ofType(events, 'migration.observed').some(({ data }) => data.serverId === deleted);
        await log.until('the slow migration', observed);
        await bed('api', 'DELETE', `/servers/${deleted}`);
        await log.until('the end of the move of the deleted VM', (events) => gone(events) !== undefined);
      })(),
    ]);
    for (const { data } of failures(log.events)) expect(data.errorType).toBe('MigrationFailed');
    expect(gone(log.events)?.data).toMatchObject({ errorType: 'Cancelled' });

    for (const id of [plain, failing])
      await log.until(
        `the move of ${id}`,
        (events) => ofType(events, 'migration.completed').some(({ data }) => data.serverId === id),
        240_000,
      );
    const stuck = (events: readonly LogEvent[]) =>
      ofType(events, 'cycle.decided').filter(({ data }) => data.stuck.some(({ serverId }) => serverId === locked));
    await log.until('a decision that names the locked VM', (events) => stuck(events).length >= 3, 240_000);
    // The decision after the end of a move waits for a later snapshot and names no VM.
    const shown = async (): Promise<string> => (await run('status')).text;
    await expect.poll(shown, { timeout: 120_000, interval: 1000 }).toMatch(/cmp1.*stuck/s);
    const left = await servers();
    expect(left.filter((one) => one['OS-EXT-SRV-ATTR:host'] === 'cmp1').map(({ id }) => id)).toEqual([locked]);
    for (const id of [plain, failing]) expect(left.find((one) => one.id === id)?.status).toBe('ACTIVE');
  }, 900_000);

  it('somebody enables the host meanwhile: the drain is over, and the host stays enabled', async () => {
    await bed('host', 'cmp1', 'enable');
    const over = (events: readonly LogEvent[]) =>
      ofType(events, 'host.enabled').find(({ data }) => data.host === 'cmp1');
    await log.until('the end of the drain', (events) => over(events) !== undefined, 240_000);
    expect(over(log.events)?.data).toMatchObject({ byKronos: false });
    const undrain = await run('undrain', 'cmp1');
    expect([undrain.status, undrain.text]).toEqual([2, expect.stringContaining('is not being drained')]);
    expect(await service('cmp1')).toMatchObject({ status: 'enabled' });
  });

  it('rolling maintenance of three hosts: each is empty and disabled when its hook runs, and enabled after it', async () => {
    await bed('api', 'POST', `/servers/${locked}/action`, JSON.stringify({ unlock: null }));
    const seen = join(directory, 'seen');
    // The hook reads from Nova.
    const program = fileURLToPath(new URL('bed', import.meta.url));
    const hook = [
      `${program} api GET "/servers/detail?all_tenants=1&host=$KRONOS_HOST" > ${directory}/servers`,
      `${program} api GET "/os-services?binary=nova-compute&host=$KRONOS_HOST" > ${directory}/service`,
      `echo "$KRONOS_HOST $(grep -o hostId ${directory}/servers | wc -l) $(grep -o disabled ${directory}/service | head -1)" >> ${seen}`,
    ].join(' && ');
    const rolled = await run('drain', '--all', '-a', AGGREGATE, '--one-by-one', '--hook', `(${hook}); true`, '--yes');
    expect(rolled.status, rolled.text).toBe(0);
    expect((await readFile(seen, 'utf8')).trim().split('\n')).toEqual(HOSTS.map((host) => `${host} 0 disabled`));
    await log.until(
      'three hosts to be enabled by Kronos',
      (events) => ofType(events, 'host.enabled').filter(({ data }) => data.byKronos).length >= HOSTS.length,
      240_000,
    );
    for (const host of HOSTS) expect(await service(host)).toMatchObject({ status: 'enabled', disabled_reason: null });
    const left = await servers();
    expect(left.map(({ id, status }) => [id, status]).sort()).toEqual(
      [locked, failing, plain].map((id) => [id, 'ACTIVE']).sort(),
    );
  }, 900_000);
});
