import type { ChildProcess } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { loadConfig } from '@kronos/config';
import { connectLog } from '@kronos/connect';
import type { ServiceName } from '@kronos/contracts';
import { startNatsServer } from '@kronos/eventlog/local';
import type { NatsServer } from '@kronos/eventlog/testing';
import { demoPolicies, type MigrationRecord } from '@kronos/simcloud';
import { expect } from 'vitest';
import { demoConfig } from '../../libs/cli/src/demo/files.ts';
import { endProcess, spawnService } from '../../libs/cli/src/demo/serviceProcess.ts';
import { startCloud } from '../../libs/cli/src/demo/stage.ts';
import { runKronos } from '../e2e/command.ts';
import { as, users, usersOf, WATCHER } from '../e2e/users.ts';
import { migrationsOf, SHORT_SEARCH, type Watch, watch } from '../e2e/world.ts';

/** Readers before writers. */
export const SERVICES = ['ledger', 'executor', 'planner', 'scorer'] as const satisfies readonly ServiceName[];

/** One nats-server, one simulated cloud, and services that come from different checkouts. */
export interface Site extends Watch {
  /** The NATS server gets the users of a checkout, as `nats-server --signal reload` does it. */
  readonly reload: (root: string) => Promise<void>;
  /** Runs the `kronos` command of a checkout as a NATS user. @throws with what it wrote, where it fails */
  readonly kronos: (root: string, user: string, ...args: readonly string[]) => Promise<string>;
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

/** Replaces a part of the configuration of a NATS server, and has it reload. */
async function reconfigure(nats: NatsServer, before: string, after: string): Promise<void> {
  const file = join(dirname(nats.storeDir), 'nats.conf');
  await writeFile(
    file,
    (await readFile(file, 'utf8')).replace(before, () => after),
  );
  const reloads = (): number => nats.logText().split('Reloaded server configuration').length;
  const former = reloads();
  process.kill(nats.pid ?? 0, 'SIGHUP');
  await expect.poll(reloads, { timeout: READY_MS }).toBeGreaterThan(former);
}

export interface SiteOptions {
  readonly seed: number;
  /** Of the simulated Nova: the lower, the more moves are under way. */
  readonly speed: number;
  /** The checkout whose NATS users the server has at first. */
  readonly root: string;
}

export async function openSite({ seed, speed, root: first }: SiteOptions): Promise<Site> {
  const directory = await mkdtemp(join(tmpdir(), 'kronos-upgrade-'));
  await mkdir(join(directory, 'logs'));
  let { config: accounts } = usersOf(first);
  // A server reads its environment once.
  const nats = await startNatsServer({ config: accounts, env: { ...usersOf(first).env, ...users.env } });
  const cloud = await startCloud({ seed, speed });
  const policiesFile = join(directory, 'policies.yaml');
  const configFile = join(directory, 'kronos.conf');
  const places = { natsUrl: nats.url, policiesFile, keystoneUrl: cloud.keystone, prometheusUrl: cloud.prometheus };
  await writeFile(policiesFile, demoPolicies);
  await writeFile(configFile, demoConfig(places));
  const { config } = loadConfig({ file: configFile, env: as(WATCHER), role: 'provision' });
  const log = await connectLog(config, 'test', null);
  const running = new Map<ServiceName, Running>();

  function start(service: ServiceName, root: string): Running {
    const main = join(root, 'services', service, 'src', 'main.ts');
    const { promise: url, resolve, reject } = Promise.withResolvers<string>();
    const child = spawnService({
      main,
      service,
      directory,
      configFile,
      env: { ...SHORT_SEARCH, ...as(service) },
      onUrl: resolve,
    });
    child.once('close', (code) => reject(new Error(`${service} of ${root} ended with ${code}`)));
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
    async reload(root) {
      const { config: its } = usersOf(root);
      await reconfigure(nats, accounts, its);
      accounts = its;
    },
    async kronos(root, user, ...args) {
      const { status, text } = await runKronos([...args, '--config', configFile], as(user), root);
      if (status !== 0) throw new Error(`kronos ${args.join(' ')} of ${root} ended with ${status}:\n${text}`);
      return text;
    },
    start: begin,
    async replace(service, root) {
      await begin(service, root);
      await expect.poll(() => readyz(service), { timeout: READY_MS, interval: 250 }).toMatchObject({ ok: true });
    },
    migrations: () => migrationsOf(cloud.admin),
    async close() {
      await Promise.all([...running.values()].map(({ child }) => endProcess(child)));
      await log.close();
      await endProcess(cloud.child);
      await nats.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
