import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { loadConfig, parsePolicies, storageLimits } from '@kronos/config';
import { connectLog } from '@kronos/connect';
import type { EventLog } from '@kronos/eventlog';
import { startNatsServer } from '@kronos/eventlog/testing';
import { demoPolicies, type Sim } from '@kronos/simcloud';
import { createLogger, kronosVersion } from '@kronos/telemetry';
import { serviceMain } from '../commands/service.ts';
import { DEMO_AGGREGATE, demoConfig } from './files.ts';

const services = ['scorer', 'planner', 'executor', 'ledger'] as const;
export type DemoService = (typeof services)[number];

/** The demo's world: a nats-server, a simulated cloud and the four services, each a process of its own. */
export type Stage = {
  readonly directory: string;
  readonly configFile: string;
  readonly prometheusUrl: string;
  /** The simulated cloud's own record and controls. */
  readonly cloudUrl: string;
  /** Policy name -> threshold, in the order of the file. */
  readonly thresholds: ReadonlyMap<string, number>;
  readonly log: EventLog;
  /** Addresses of the services' own HTTP servers, by service, as far as they have said so. */
  readonly urls: ReadonlyMap<DemoService, string>;
  /** Starts a service again (or one more replica of it) and gives its process. */
  readonly start: (service: DemoService) => ChildProcess;
  readonly processes: ReadonlyMap<DemoService, readonly ChildProcess[]>;
  /** Ends everything; `keepFiles` leaves the directory with the logs. */
  readonly close: (options?: { readonly keepFiles?: boolean }) => Promise<void>;
};

export type StageOptions = {
  readonly seed: number;
  /** How many times faster than real the simulated Nova works. */
  readonly speed: number;
  /** Called once when a service ends although nobody asked it to. */
  readonly onExit: (service: DemoService, code: number | null) => void;
  readonly say: (text: string) => void;
  /** Overrides of options for the services, as oslo.config takes them from the environment. */
  readonly env?: Readonly<Record<string, string>>;
};

/** Builds it all, in an own directory under the system's temporary one and on free ports. */
export async function openStage(options: StageOptions): Promise<Stage> {
  const directory = await mkdtemp(join(tmpdir(), 'kronos-demo-'));
  const undo: (() => Promise<unknown>)[] = [];
  const close = async ({ keepFiles = false } = {}) => {
    for (const step of undo.splice(0).reverse()) await step().catch(() => {});
    if (!keepFiles) await rm(directory, { recursive: true, force: true });
  };
  try {
    await mkdir(join(directory, 'logs'));
    options.say('starting nats-server');
    const nats = await startNatsServer();
    undo.push(() => nats.stop());
    options.say(`starting a simulated OpenStack (${options.speed} times faster than a real one)`);
    const cloud = await startCloud(directory, options);
    undo.push(() => end(cloud.child));

    const policiesFile = join(directory, 'policies.yaml');
    const configFile = join(directory, 'kronos.conf');
    await writeFile(policiesFile, demoPolicies);
    await writeFile(
      configFile,
      demoConfig({ natsUrl: nats.url, keystoneUrl: cloud.keystone, prometheusUrl: cloud.prometheus, policiesFile }),
    );

    const { config } = loadConfig({ file: configFile, env: {}, role: 'provision' });
    const quiet = createLogger({ service: 'demo', version: kronosVersion, level: 'silent', format: 'json' });
    const log = await connectLog(config, 'demo', quiet);
    undo.push(() => log.close());
    await log.provision({
      limits: storageLimits(config),
      replicas: config.nats.replicas,
      aggregates: [DEMO_AGGREGATE],
      ackWaitSeconds: config.nats.ackWait,
    });

    const { policies } = parsePolicies({ file: policiesFile, text: demoPolicies });
    const thresholds = new Map(policies.map((p) => [p.name, p.threshold]));
    const processes = new Map<DemoService, ChildProcess[]>();
    const urls = new Map<DemoService, string>();
    let closing = false;
    const start = (service: DemoService): ChildProcess => {
      const child = spawn(process.execPath, [serviceMain(service), '--config', configFile], {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, ...options.env },
      });
      const file = createWriteStream(join(directory, 'logs', `${service}.log`), { flags: 'a' });
      child.stderr?.pipe(file, { end: false });
      createInterface({ input: child.stdout ?? process.stdin }).on('line', (line) => {
        file.write(`${line}\n`);
        const url = /"url":"([^"]+)"/.exec(line)?.[1];
        if (url !== undefined && !urls.has(service)) urls.set(service, url);
      });
      child.on('exit', (code, signal) => {
        file.end();
        if (!closing && signal === null) options.onExit(service, code);
      });
      processes.set(service, [...(processes.get(service) ?? []), child]);
      return child;
    };
    options.say(`starting ${services.join(', ')}`);
    for (const service of services) start(service);
    undo.push(async () => {
      closing = true;
      await Promise.all([...processes.values()].flat().map(end));
    });
    return {
      directory,
      configFile,
      prometheusUrl: cloud.prometheus,
      cloudUrl: cloud.admin,
      thresholds,
      log,
      urls,
      start,
      processes,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

type SimulatedCloud = { child: ChildProcess; keystone: string; prometheus: string; admin: string };

async function startCloud(directory: string, { seed, speed }: StageOptions): Promise<SimulatedCloud> {
  const main = fileURLToPath(new URL('main.ts', import.meta.resolve('@kronos/simcloud')));
  const args = ['--scenario', 'demo', '--port', '0', '--speed', String(speed), '--seed', String(seed)];
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  child.stderr?.pipe(createWriteStream(join(directory, 'logs', 'simcloud.log')));
  const line = await firstLine(child, 'the simulated cloud');
  const { urls } = JSON.parse(line) as { urls: Pick<Sim['urls'], 'identity' | 'prometheus' | 'admin'> };
  return { child, keystone: urls.identity, prometheus: urls.prometheus, admin: urls.admin };
}

async function firstLine(child: ChildProcess, what: string): Promise<string> {
  const lines = createInterface({ input: child.stdout ?? process.stdin });
  return await new Promise((resolve, reject) => {
    lines.once('line', resolve);
    child.once('exit', (code) => reject(new Error(`${what} ended with ${code} before it was ready`)));
  });
}

/** Asks a process to stop, and waits until it has; a process that does not is killed after 8 s. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 8000);
  await exited;
  clearTimeout(timer);
}
