/**
 * A policy on a real OpenStack that takes the load of each VM for less than a third of what it is, beside one with the right unit: `kronos
 * status` names the first one after two plans, and does not name the second one. A comparison takes ten minutes, so this takes half an hour.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DemoInstallation, openInstallation } from '../../libs/cli/src/demo/installation.ts';
import { runKronos } from '../e2e/command.ts';
import { ofType, type Watch, watch } from '../e2e/world.ts';
import { bed, bedConfig, bedCpu, bedMemory, bedPolicy, bedUrls } from './urls.ts';

const AGGREGATE = 'kronos-calibration';
const FULL = ['cmp1', 'cmp2', 'cmp3'];
const EMPTY = ['cmp4', 'cmp5', 'cmp6'];
/** A comparison comes ten minutes after the last move of a plan: the next plan has to wait for it. */
const COOLDOWN_SECONDS = 720;
const LIMIT_MS = 4 * COOLDOWN_SECONDS * 1000;

const config = ({ natsUrl, policiesFile }: { natsUrl: string; policiesFile: string }) => `[engine]
aggregates = ${AGGREGATE}
policies_file = ${policiesFile}
dry_run = false
evaluation_interval = 15
search_work_limit = 200000
cooldown = ${COOLDOWN_SECONDS}
instance_cooldown = 1
[executor]
poll_interval = 1
[prometheus]
url = ${bedUrls.prometheus}
staleness_threshold = 30
${bedConfig({ natsUrl })}`;

const POLICIES = `policies:\n${[
  { ...bedCpu, vm: `0.3 * ${bedCpu.vm}`, threshold: 0.05 },
  // Balanced with either half of the hosts full: it decides nothing, and its predictions hold.
  { ...bedMemory, threshold: 0.1 },
]
  .map((policy) => bedPolicy({ ...policy, weight: 0.5, moves: 12 }))
  .join('')}`;

let kronos: DemoInstallation;
let log: Watch;

beforeAll(async () => {
  await bed('reset');
  await bed('seconds', '1');
  await bed('aggregate', AGGREGATE, ...FULL, ...EMPTY);
  for (const host of FULL) await bed('servers', '2', host, '5', '6000');
  kronos = await openInstallation({ config, policies: POLICIES, say: () => {}, onExit: () => {} });
  log = watch(kronos);
});

afterAll(async () => {
  await kronos?.close();
  await bed('reset');
});

it(
  'names the policy whose VMs weigh more than it says, and its cause',
  async () => {
    const status = async () => (await runKronos(['status'], { KRONOS_CONFIG: kronos.configFile })).text;
    // The third plan begins when the moves of the second one have been compared.
    await log.until(
      'the third plan',
      (events) => ofType(events, 'cycle.decided').filter(({ data }) => data.release === 'released').length >= 3,
      LIMIT_MS,
    );
    const text = await status();
    expect(text).toMatch(/ten minutes after moves, .*: the load of the VMs may depend on their host/s);
    expect(text).toContain(`policy cpu in ${AGGREGATE}`);
    expect(text).not.toContain(`policy memory in ${AGGREGATE}`);
  },
  LIMIT_MS + 60_000,
);
