import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { until } from '@kronos/clock/testing';
import { streamNames } from '@kronos/contracts';
import { connectEventLog } from '@kronos/eventlog';
import { findNatsServer, freePorts, startNatsCluster, startNatsServer } from '@kronos/eventlog/testing';
import { demoCloud, demoPolicies, startSim } from '@kronos/simcloud';
import { afterEach, describe, expect, it } from 'vitest';
import { demoConfig } from '../../libs/cli/src/demo/files.ts';
import { runHere, runKronos } from './command.ts';
import { SHORT_SEARCH } from './world.ts';

const launcher = fileURLToPath(new URL('../../libs/cli/bin/kronos.js', import.meta.url));
const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

/** A simulated cloud and the two files of a configuration for it. */
async function installation() {
  const directory = mkdtempSync(join(tmpdir(), 'kronos-up-'));
  undo.push(() => rmSync(directory, { recursive: true, force: true }));
  const sim = await startSim({ scenario: demoCloud(), speed: 10 });
  undo.push(() => sim.close());
  const [port = 0] = await freePorts(1);
  const natsUrl = `nats://127.0.0.1:${port}`;
  const policiesFile = join(directory, 'policies.yaml');
  const config = join(directory, 'kronos.conf');
  writeFileSync(policiesFile, demoPolicies);
  const text = demoConfig({
    natsUrl,
    keystoneUrl: sim.urls.identity,
    prometheusUrl: sim.urls.prometheus,
    policiesFile,
  });
  writeFileSync(config, text.replace('dry_run = false', 'dry_run = true'));
  return { directory, config, natsUrl, data: join(directory, 'kronos-data') };
}

type Started = { readonly child: ChildProcess; readonly text: () => string; readonly end: Promise<number | null> };

function start(config: string, ...args: string[]): Started {
  const child = spawn(process.execPath, [launcher, 'up', '-c', config, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...SHORT_SEARCH, OS_ENGINE__SEARCH_THREADS: '1' },
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
  const end = new Promise<number | null>((resolve) => child.once('close', resolve));
  undo.push(async () => {
    child.kill('SIGTERM');
    await end;
  });
  return { child, text: () => text, end };
}

const said = (up: Started, pattern: RegExp): Promise<RegExpExecArray> =>
  until(
    () => pattern.exec(up.text()),
    240_000,
    () => `${pattern} in:\n${up.text()}`,
  );

/** Process ids by service, of the newest processes that the one log names. */
function pids(data: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const line of readFileSync(join(data, 'kronos.log'), 'utf8').split('\n').slice(0, -1)) {
    const { service, instance, message } = JSON.parse(line) as Record<string, string | undefined>;
    const pid = Number(instance?.split(':').at(-1));
    if (message === 'starting' && service !== undefined && pid > 1) found.set(service, pid);
  }
  return found;
}

const runs = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

const decisions = async (natsUrl: string): Promise<number> => {
  const log = await connectEventLog({ servers: [natsUrl], name: 'test' });
  try {
    let count = 0;
    for await (const { event } of log.replay()) if (event.type === 'cycle.decided') count++;
    return count;
  } finally {
    await log.close();
  }
};

describe('kronos up', () => {
  it('runs an installation, restarts what ends, continues after a kill, and its log moves to a NATS cluster', async () => {
    const { config, natsUrl, data, directory } = await installation();
    const first = start(config);
    const [, id = ''] = await said(first, /New installation (\S+), at event 1 of the log/);
    const [, console = ''] = await said(first, /Ready\. Console: (\S+)/);
    expect(await (await fetch(console)).text()).toContain('Kronos');
    await until(async () => (await decisions(natsUrl)) > 0);

    const planner = pids(data).get('planner') ?? expect.fail('no planner has started');
    process.kill(planner, 'SIGKILL');
    await said(first, /planner ended \(SIGKILL\) and starts again in 1 s/);
    await until(() => pids(data).get('planner') !== planner);
    const before = await decisions(natsUrl);
    await until(async () => (await decisions(natsUrl)) > before);

    const second = start(config);
    expect(await second.end).toBe(2);
    expect(second.text()).toMatch(/kronos up runs already in .*kronos-data, as process \d+/);

    const started = [...pids(data).values()];
    expect(started).toHaveLength(4);
    first.child.kill('SIGKILL');
    await first.end;
    // The nats-server goes too: its port is free for the next start.
    await until(() => !started.some(runs));

    const third = start(config);
    const [, again, at] = await said(third, /Continues installation (\S+), at event (\d+) of the log/);
    expect(again).toBe(id);
    expect(Number(at)).toBeGreaterThan(before);
    await said(third, /Ready/);
    await until(async () => (await decisions(natsUrl)) > before + 1);
    third.child.kill('SIGTERM');
    expect(await third.end).toBe(0);
    expect(third.text()).toMatch(/Stopped\. The next kronos up continues from/);
    expect([...pids(data).values()].filter(runs)).toEqual([]);

    // The page's way to a cluster: the archive is the copy of the log.
    const cluster = await startNatsCluster(3, { server: await findNatsServer('newest') });
    undo.push(() => cluster.stop());
    const env = { KRONOS_CONFIG: config, OS_NATS__SERVERS: cluster.urls.join(','), OS_NATS__REPLICAS: '3' };
    const archive = join(data, 'archive');
    const { events, last } = JSON.parse((await runHere(['archive', 'verify', archive, '--json'])).text) as {
      events: number;
      last: number;
    };
    expect(await runKronos(['provision', '--for-restore'], env)).toMatchObject({ status: 0 });
    const restored = await runKronos(['archive', 'restore', archive], env);
    expect(restored, restored.text).toMatchObject({
      status: 0,
      text: expect.stringContaining(`restored ${events} events`),
    });
    // The server of the trial has nothing that the copy lacks.
    const fourth = start(config, '--data', data);
    const [, end] = await said(fourth, /Continues installation \S+, at event (\d+) of the log/);
    fourth.child.kill('SIGTERM');
    expect(await fourth.end).toBe(0);
    expect(Number(end)).toBe(last);
    const log = await connectEventLog({ servers: cluster.urls, name: 'test', replicas: 3 });
    undo.push(() => log.close());
    expect(await log.lastSequence(streamNames.log)).toBe(last + 1);

    // The services go on there with the same two files.
    for (const service of ['scorer', 'planner', 'ledger'])
      undo.push(runService(service, config, { ...env, OS_LEDGER__ARCHIVE_DIR: join(directory, 'archive') }));
    await until(async () => (await log.lastSequence(streamNames.log)) > last + 1);
  });

  it('refuses what it cannot serve, before it starts anything', async () => {
    const { config, data } = await installation();
    const taken = await startNatsServer();
    undo.push(() => taken.stop());
    const up = (env: Readonly<Record<string, string>>) => runKronos(['up', '-c', config, '--data', data], env);
    const busy = await up({ OS_NATS__SERVERS: taken.url });
    expect(busy).toMatchObject({ status: 2, text: expect.stringContaining('a program listens at') });
    const remote = await up({ OS_NATS__SERVERS: 'nats://192.0.2.1:4222' });
    expect(remote).toMatchObject({ status: 2, text: expect.stringContaining('not an address of this machine alone') });
    const wrong = await up({ OS_ENGINE__COOLDOWN: 'soon' });
    expect(wrong).toMatchObject({ status: 1, text: expect.stringContaining('OS_ENGINE__COOLDOWN') });
  });
});

/** Starts a service; gives what ends it. */
function runService(name: string, config: string, env: Readonly<Record<string, string>>): () => Promise<void> {
  const child = spawn(process.execPath, [launcher, name, '--config', config], {
    stdio: 'ignore',
    env: { ...process.env, ...SHORT_SEARCH, OS_ENGINE__SEARCH_THREADS: '1', ...env },
  });
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()));
  return () => {
    child.kill('SIGTERM');
    return gone;
  };
}
