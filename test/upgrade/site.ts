import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { loadConfig } from '@kronos/config';
import { connectLog } from '@kronos/connect';
import { startNatsServer } from '@kronos/eventlog/local';
import { demoPolicies, type MigrationRecord } from '@kronos/simcloud';
import { expect } from 'vitest';
import { demoConfig } from '../../libs/cli/src/demo/files.ts';
import { endProcess, type ServiceName } from '../../libs/cli/src/demo/installation.ts';
import { startCloud } from '../../libs/cli/src/demo/stage.ts';
import { SHORT_SEARCH, type Watch, watch } from '../e2e/world.ts';

/** Readers before writers. */
export const SERVICES = ['ledger', 'executor', 'planner', 'scorer'] as const satisfies readonly ServiceName[];

/** One nats-server, one simulated cloud, and services that come from different checkouts. */
export interface Site extends Watch {
  /** Runs the `kronos` command of a checkout. @returns what it wrote; @throws when it fails */
  readonly kronos: (root: string, ...args: readonly string[]) => Promise<string>;
  /** Ends the service and starts the one of this checkout in its place. */
  readonly start: (service: ServiceName, root: string) => Promise<void>;
  /** The same, and waits until the service says that it is ready. */
  readonly replace: (service: ServiceName, root: string) => Promise<void>;
  /** All migrations of the cloud: one for each request that Nova got. */
  readonly migrations: () => Promise<readonly MigrationRecord[]>;
  readonly close: () => Promise<void>;
}

interface Running {
  readonly child: ChildProcess;
  readonly url: Promise<string>;
}

const READY_MS = 120_000;

/** @throws what it wrote, where it fails */
async function run(main: string, args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  child.stdout.on('data', (chunk) => (text += chunk));
  child.stderr.on('data', (chunk) => (text += chunk));
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`${main} ${args.join(' ')} ended with ${code}:\n${text}`);
  return text;
}

/** @param speed of the simulated Nova; the lower, the more moves are under way */
export async function openSite({ seed, speed }: { seed: number; speed: number }): Promise<Site> {
  const directory = await mkdtemp(join(tmpdir(), 'kronos-upgrade-'));
  await mkdir(join(directory, 'logs'));
  const nats = await startNatsServer();
  const cloud = await startCloud({ seed, speed });
  const policiesFile = join(directory, 'policies.yaml');
  const configFile = join(directory, 'kronos.conf');
  const places = { natsUrl: nats.url, policiesFile, keystoneUrl: cloud.keystone, prometheusUrl: cloud.prometheus };
  await writeFile(policiesFile, demoPolicies);
  await writeFile(configFile, demoConfig(places));
  const { config } = loadConfig({ file: configFile, env: {}, role: 'provision' });
  const log = await connectLog(config, 'test', null);
  const running = new Map<ServiceName, Running>();

  function start(service: ServiceName, root: string): Running {
    const main = join(root, 'services', service, 'src', 'main.ts');
    const child = spawn(process.execPath, [main, '--config', configFile], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...SHORT_SEARCH },
    });
    const file = createWriteStream(join(directory, 'logs', `${service}.log`), { flags: 'a' });
    child.stderr.pipe(file, { end: false });
    const url = new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        file.write(`${line}\n`);
        const found = /"url":"(http[^"]+)"/.exec(line)?.[1];
        if (found !== undefined) resolve(found);
      });
      child.once('close', (code) => {
        file.end();
        reject(new Error(`${service} of ${root} ended with ${code}`));
      });
    });
    url.catch(() => undefined);
    return { child, url };
  }

  const begin = async (service: ServiceName, root: string): Promise<void> => {
    const before = running.get(service);
    if (before !== undefined) await endProcess(before.child);
    running.set(service, start(service, root));
  };

  const readyz = async (service: ServiceName): Promise<{ readonly ok: boolean; readonly text: string }> => {
    const answer = await fetch(new URL('/readyz', await running.get(service)?.url));
    return { ok: answer.ok, text: await answer.text() };
  };

  return {
    ...watch({ log, directory }),
    kronos: (root, ...args) => run(join(root, 'libs', 'cli', 'src', 'main.ts'), [...args, '--config', configFile]),
    start: begin,
    async replace(service, root) {
      await begin(service, root);
      await expect.poll(() => readyz(service), { timeout: READY_MS, interval: 250 }).toMatchObject({ ok: true });
    },
    async migrations() {
      const answer = await fetch(`${cloud.admin}/migrations`);
      return ((await answer.json()) as { migrations: MigrationRecord[] }).migrations;
    },
    async close() {
      await Promise.all([...running.values()].map(({ child }) => endProcess(child)));
      await log.close();
      await endProcess(cloud.child);
      await nats.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
