import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defaultStorageLimits } from '@kronos/contracts';
import { connectEventLog } from '@kronos/eventlog';
import { startNatsServer } from '@kronos/eventlog/testing';

/**
 * CPU (user and system) that a start of `kronos` costs, beside `node -e 0` in the same run. Runs: first argument, default 9.
 * Exit status 1 when a command costs more than its limit.
 */

const runs = Number(process.argv[2] ?? 9);
const main = fileURLToPath(new URL('../../libs/cli/src/main.ts', import.meta.url));

/** At most this many times `node -e 0`. */
const LIMIT = 8;
const STATUS_LIMIT = 15;

const directory = mkdtempSync(join(tmpdir(), 'kronos-startup-'));
const server = await startNatsServer();
const log = await connectEventLog({ servers: [server.url], name: 'bench' });
await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu'] });
await log.close();
const config = join(directory, 'kronos.conf');
const ports = ['scorer', 'planner', 'executor', 'ledger'].map((name) => `${name}_port = 0`).join('\n');
writeFileSync(config, `[engine]\naggregates = gpu\n[nats]\nservers = ${server.url}\n[http]\n${ports}\n`);

const commands: Record<string, string[]> = {
  'node -e 0': ['-e', '0'],
  'kronos --version': [main, '--version'],
  'kronos version': [main, 'version'],
  'kronos --help': [main, '--help'],
  'kronos completion bash': [main, 'completion', 'bash'],
  'kronos status': [main, 'status', '--config', config],
};

/** CPU of one run, in ms. */
function cpuMs(args: readonly string[]): number {
  // A cache of its own, which the first run fills.
  const env = { ...process.env, XDG_CACHE_HOME: directory };
  const child = spawnSync(
    'bash',
    ['-c', 'TIMEFORMAT="%U %S"; time "$0" "$@" >/dev/null 2>/dev/null', process.execPath, ...args],
    { env, encoding: 'utf8' },
  );
  const [user, system] = child.stderr.trim().split(' ').map(Number);
  if (user === undefined || system === undefined) throw new Error(child.stderr);
  return (user + system) * 1000;
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
const measured = new Map<string, number[]>(Object.keys(commands).map((name) => [name, []]));
for (const args of Object.values(commands)) cpuMs(args);
// One after the other, so that all meet the same machine.
for (let run = 0; run < runs; run++)
  for (const [name, args] of Object.entries(commands)) measured.get(name)?.push(cpuMs(args));
const base = median(measured.get('node -e 0') ?? []);
const result = [...measured].map(([command, values]) => {
  const timesNode = Number((median(values) / base).toFixed(1));
  const limit = command === 'kronos status' ? STATUS_LIMIT : LIMIT;
  return { command, cpuMs: Math.round(median(values)), timesNode, limit, ok: timesNode <= limit };
});
if (result.some(({ ok }) => !ok)) process.exitCode = 1;
process.stdout.write(`${JSON.stringify({ runs, result }, null, 2)}\n`);
await server.stop();
rmSync(directory, { recursive: true, force: true });
