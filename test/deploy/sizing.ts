// The data that Kronos writes to NATS for a cloud of a given size, as JSON: node test/deploy/sizing.ts [HOSTSxVMS] [CYCLES]

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { until } from '@kronos/clock/testing';
import { streamNames } from '@kronos/contracts';
import { demoPolicies, type Sim } from '@kronos/simcloud';
import { demoConfig } from '../../libs/cli/src/demo/files.ts';
import { openInstallation } from '../../libs/cli/src/demo/installation.ts';
import { endProcess } from '../../libs/cli/src/demo/serviceProcess.ts';

const [size = '40x1000', cycles = '10'] = process.argv.slice(2);
const main = fileURLToPath(new URL('main.ts', import.meta.resolve('@kronos/simcloud')));
const cloud = spawn(process.execPath, [main, '--scenario', size, '--speed', '20'], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
const line = await new Promise<string>((resolve) => createInterface({ input: cloud.stdout }).once('line', resolve));
const { urls } = JSON.parse(line) as { urls: Sim['urls'] };
const info = (await (await fetch(`${urls.admin}/hosts`)).json()) as { hosts: { name: string }[] };
const kronos = await openInstallation({
  policies: demoPolicies,
  config: (places) =>
    demoConfig({ ...places, keystoneUrl: urls.identity, prometheusUrl: urls.prometheus })
      .replace(/^aggregates = .*$/m, 'aggregates = aggregate-1')
      .replace(/^evaluation_interval = .*$/m, 'evaluation_interval = 5'),
  say: () => {},
  onExit: (service, code) => console.error(`${service} ended with ${code}`),
});
try {
  const types: Record<string, number> = {};
  /** Bytes of bodies: of the smallest decision without a plan, of all decisions with a plan and all results; the moves of the plans. */
  const log = { quietest: Number.POSITIVE_INFINITY, planned: 0, moves: 0 };
  const follow = async () => {
    for await (const { message, problem } of kronos.log.tail({ families: ['plans', 'results'], since: 'all' }))
      if (problem === undefined) {
        types[message.type] = (types[message.type] ?? 0) + 1;
        const plan = message.type === 'cycle.decided' ? message.data.plan : null;
        const length = JSON.stringify(message).length;
        if (message.type === 'cycle.decided' && plan === null) log.quietest = Math.min(log.quietest, length);
        else log.planned += length;
        log.moves += plan?.steps.length ?? 0;
      }
  };
  follow().catch(() => {});
  await until(() => (types['cycle.decided'] ?? 0) >= Number(cycles), 180_000, `${cycles} decisions`);
  const bytes: Record<string, unknown> = {};
  for (const stream of [streamNames.log, streamNames.snapshots, 'OBJ_kronos-snapshots', 'OBJ_kronos-details'])
    bytes[stream] = await kronos.log.usage(stream);
  console.log(JSON.stringify({ size, hosts: info.hosts.length, types, log, bytes }, null, 2));
} finally {
  await kronos.close();
  await endProcess(cloud);
}
