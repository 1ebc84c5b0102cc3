/**
 * Rules of a real Nova that Kronos cannot see: a filter of the scheduler by metadata of aggregates (AggregateInstanceExtraSpecsFilter), and a
 * server whose power state is unknown. cmp2 is not in the aggregate `gold`, which the flavor asks for.
 */
import type { LogEvent } from '@kronos/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoInstallation, openInstallation } from '../../libs/cli/src/demo/installation.ts';
import { runKronos } from '../e2e/command.ts';
import { ofType, type Watch, watch } from '../e2e/world.ts';
import { bed, bedConfig, bedCpu, bedPolicy, bedUrls } from './urls.ts';

const AGGREGATE = 'kronos-refusals';
const GOLD = 'kronos-gold';
const SPEC = 'aggregate_instance_extra_specs:tier';
/** The flavor of the servers that the bed boots. */
const FLAVOR = '1';
const LIMIT_MS = 280_000;

const config = ({ natsUrl, policiesFile }: { natsUrl: string; policiesFile: string }) => `[engine]
aggregates = ${AGGREGATE}
policies_file = ${policiesFile}
dry_run = false
evaluation_interval = 5
search_work_limit = 200000
cooldown = 1
instance_cooldown = 1
settle_seconds = 6
[executor]
poll_interval = 1
max_concurrent_migrations = 1
[prometheus]
url = ${bedUrls.prometheus}
staleness_threshold = 30
${bedConfig({ natsUrl })}`;

const POLICIES = `policies:\n${bedPolicy({ ...bedCpu, weight: 1, threshold: 0.12, moves: 6 })}`;

describe('rules of Nova that no API shows', () => {
  let kronos: DemoInstallation;
  let log: Watch;
  let powerless = '';

  beforeAll(async () => {
    await bed('reset');
    await bed('seconds', '1');
    await bed('aggregate', AGGREGATE, 'cmp1', 'cmp2', 'cmp3');
    const gold = (await bed('aggregate', GOLD, 'cmp1', 'cmp3')).trim();
    const metadata = { set_metadata: { metadata: { tier: 'gold' } } };
    await bed('api', 'POST', `/os-aggregates/${gold}/action`, JSON.stringify(metadata));
    const specs = { extra_specs: { [SPEC]: 'gold' } };
    await bed('api', 'POST', `/flavors/${FLAVOR}/os-extra_specs`, JSON.stringify(specs));
    const ids = (await bed('servers', '6', 'cmp1', '5', '6000')).trim().split('\n');
    powerless = ids[0] ?? expect.fail('no server');
    await bed('power', powerless, '0');
    kronos = await openInstallation({ config, policies: POLICIES, say: () => {}, onExit: () => {} });
    log = watch(kronos);
  });
  afterAll(async () => {
    await kronos?.close();
    await bed('api', 'DELETE', `/flavors/${FLAVOR}/os-extra_specs/${SPEC}`);
    await bed('reset');
  });

  const startsOn = (host: string) =>
    ofType(log.events, 'migration.started').filter(({ data }) => data.destination === host).length;

  it('are asked once: the refusal is remembered for the shape, and the rest goes elsewhere', async () => {
    const refused = (events: readonly LogEvent[]) =>
      ofType(events, 'migration.failed').filter(
        ({ data }) => data.destination === 'cmp2' && data.cause === 'scheduler',
      );
    await log.until('a refusal by the scheduler', (events) => refused(events).length > 0, LIMIT_MS);
    const quiet = (events: readonly LogEvent[]) => {
      const last = events.findLastIndex(({ type }) => type === 'migration.completed');
      return (
        last >= 0 && ofType(events.slice(last), 'cycle.decided').filter(({ data }) => data.plan === null).length >= 3
      );
    };
    await log.until('moves elsewhere, and no further plan', quiet, LIMIT_MS);
    expect(startsOn('cmp2')).toBe(1);
    expect(startsOn('cmp3')).toBeGreaterThanOrEqual(2);
    const [first] = refused(log.events);
    expect(first?.data).toMatchObject({
      hostAtFault: null,
      nova: { reason: expect.stringContaining('No valid host') },
    });
    const { text } = await runKronos(['explain', 'vm', first?.data.serverId ?? ''], {
      KRONOS_CONFIG: kronos.configFile,
    });
    expect(text).toContain('No valid host was found');
  }, 590_000);

  it('are asked never for a server without a power state in which Nova moves it', async () => {
    expect(ofType(log.events, 'migration.started').filter(({ data }) => data.serverId === powerless)).toEqual([]);
    const { text } = await runKronos(['explain', 'vm', powerless], { KRONOS_CONFIG: kronos.configFile });
    expect(text).toContain('powerState NOSTATE');
  }, 60_000);
});
