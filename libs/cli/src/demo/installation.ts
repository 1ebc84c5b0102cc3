import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig, parsePolicies } from '@kronos/config';
import { connectLog } from '@kronos/connect';
import { type ServiceName, serviceNames } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import { startNatsServer } from '@kronos/eventlog/local';
import { serviceMain } from '../grammar/services.ts';
import { nameInstallation, provisionStreams } from '../provisioning.ts';
import { endProcess, spawnService } from './serviceProcess.ts';

/** An own nats-server and the four services, each a process of its own, in a directory of their own. */
export type DemoInstallation = {
  readonly directory: string;
  readonly configFile: string;
  readonly log: EventLog;
  /** Policy name -> threshold, in the order of the file. */
  readonly thresholds: ReadonlyMap<string, number>;
  /** Addresses of the services' own HTTP servers, by service, as far as they have said so. */
  readonly urls: ReadonlyMap<ServiceName, string>;
  /** Starts a service again (or one more replica of it) and gives its process. */
  readonly start: (service: ServiceName) => ChildProcess;
  readonly processes: ReadonlyMap<ServiceName, readonly ChildProcess[]>;
  /** Ends everything; `keepFiles` leaves the directory with the logs. */
  readonly close: (options?: { readonly keepFiles?: boolean }) => Promise<void>;
};

type Overrides = Readonly<Record<string, string>>;

const oneServer = async () => {
  const server = await startNatsServer();
  return { urls: [server.url], stop: () => server.stop() };
};

export type InstallationOptions = {
  /** The text of kronos.conf. */
  readonly config: (places: { readonly natsUrl: string; readonly policiesFile: string }) => string;
  /** The text of policies.yaml. */
  readonly policies: string;
  /** Overrides of options for the services, as oslo.config takes them from the environment; a function: for each its own. */
  readonly env?: Overrides | ((of: ServiceName | 'provision') => Overrides);
  /** Starts the NATS servers; default: one, without accounts. */
  readonly nats?: () => Promise<{ readonly urls: readonly string[]; readonly stop: () => Promise<void> }>;
  /** Called when a service ends although nobody asked it to. */
  readonly onExit: (service: ServiceName, code: number | null) => void;
  readonly say: (text: string) => void;
};

/** Builds it in a directory under the system's temporary one and on free ports, and starts the services. */
export async function openInstallation(options: InstallationOptions): Promise<DemoInstallation> {
  const directory = await mkdtemp(join(tmpdir(), 'kronos-'));
  const undo: (() => Promise<unknown>)[] = [];
  const close = async ({ keepFiles = false } = {}) => {
    for (const step of undo.splice(0).reverse()) await step().catch(() => {});
    if (!keepFiles) await rm(directory, { recursive: true, force: true });
  };
  try {
    await mkdir(join(directory, 'logs'));
    options.say('starting nats-server');
    const nats = await (options.nats ?? oneServer)();
    undo.push(() => nats.stop());
    const policiesFile = join(directory, 'policies.yaml');
    const configFile = join(directory, 'kronos.conf');
    await writeFile(policiesFile, options.policies);
    await writeFile(configFile, options.config({ natsUrl: nats.urls.join(','), policiesFile }));

    const { env = {} } = options;
    const envOf = typeof env === 'function' ? env : (of: ServiceName | 'provision') => (of === 'provision' ? {} : env);
    const { config } = loadConfig({ file: configFile, env: envOf('provision'), role: 'provision' });
    const log = await connectLog(config, 'demo', null);
    undo.push(() => log.close());
    await provisionStreams(log, config);
    await nameInstallation(log, config, { by: 'demo', nowMs: Date.now(), installationId: randomUUID() });

    const { policies } = parsePolicies({ file: policiesFile, text: options.policies });
    const thresholds = new Map(policies.map((p) => [p.name, p.threshold]));
    const processes = new Map<ServiceName, ChildProcess[]>();
    const urls = new Map<ServiceName, string>();
    let closing = false;
    const start = (service: ServiceName): ChildProcess => {
      const child = spawnService({
        main: serviceMain(service),
        service,
        directory,
        configFile,
        env: envOf(service),
        onUrl: (url) => {
          if (!urls.has(service)) urls.set(service, url);
        },
      });
      child.on('close', (code, signal) => {
        if (!closing && signal === null) options.onExit(service, code);
      });
      processes.set(service, [...(processes.get(service) ?? []), child]);
      return child;
    };
    options.say(`starting ${serviceNames.join(', ')}`);
    for (const service of serviceNames) start(service);
    undo.push(async () => {
      closing = true;
      await Promise.all([...processes.values()].flat().map(endProcess));
    });
    return { directory, configFile, log, thresholds, urls, start, processes, close };
  } catch (error) {
    await close();
    throw error;
  }
}
