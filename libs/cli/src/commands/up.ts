import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { systemClock } from '@kronos/clock';
import { type Config, loadConfig } from '@kronos/config';
import { DEFAULT_CONFIG_FILE } from '@kronos/config/defaultFile';
import { connectLog } from '@kronos/connect';
import { type ServiceName, serviceNames, streamNames } from '@kronos/contracts';
import { capabilitiesOf, findNatsServer, onPath } from '@kronos/eventlog/local';
import { UsageError } from '../errors.ts';
import { serviceMain } from '../grammar/services.ts';
import type { ConfigOption } from '../grammar/shared.ts';
import { configFile } from '../open.ts';
import { nameInstallation, provisionStreams } from '../provisioning.ts';
import type { Shell } from '../shell.ts';
import { type Address, ownAddress } from '../up/address.ts';
import { type JsonLog, openJsonLog } from '../up/jsonLog.ts';
import { type Keeper, keepRunning } from '../up/keeper.ts';

export type UpOptions = ConfigOption & { readonly data?: string };

const NATS = 'nats-server';
const POLL_MS = 250;
/** Time for the archive to get the last events of the services that have stopped. */
const ARCHIVE_MS = 10_000;

/** kronos up: an own nats-server and the four services, until Ctrl-C. */
export async function up(shell: Shell, options: UpOptions): Promise<number> {
  const named = configFile(shell, options);
  const file = resolve(named ?? DEFAULT_CONFIG_FILE);
  const data = resolve(
    options.data ?? (file === DEFAULT_CONFIG_FILE ? '/var/lib/kronos' : join(dirname(file), 'kronos-data')),
  );
  const archive = { OS_LEDGER__ARCHIVE_DIR: shell.env.OS_LEDGER__ARCHIVE_DIR ?? join(data, 'archive') };
  // Every service's part is read before anything starts: a mistake ends the command, and no service again and again.
  for (const role of serviceNames) loadConfig({ file: named, env: shell.env, role });
  const { config } = loadConfig({ file: named, env: shell.env, role: 'provision' });
  const { ledger } = loadConfig({ file: named, env: shell.env, role: 'ledger' }).config;
  const address = ownAddress(config);
  const stop = shell.interrupted();
  mkdirSync(data, { recursive: true, mode: 0o700 });
  const unlock = lock(data);
  const log = openJsonLog(join(data, 'kronos.log'), shell.now);
  const run: Run = { shell, log, data, file, keepers: new Map(), urls: new Map() };
  try {
    await startNats(run, config, address);
    await provision(run, config);
    const env = { ...shell.env, ...(ledger.archiveDir === null ? archive : {}) };
    for (const service of serviceNames) startService(run, service, named === undefined ? [] : ['--config', file], env);
    shell.terminal.out(`Started ${serviceNames.join(', ')}. Log: ${join(data, 'kronos.log')}\n`);
    await ready(run, stop);
    if (!stop.aborted) await new Promise<void>((end) => stop.addEventListener('abort', () => end(), { once: true }));
    return 0;
  } finally {
    await stopAll(run, config);
    log.close();
    unlock();
  }
}

type Run = {
  readonly shell: Shell;
  readonly log: JsonLog;
  readonly data: string;
  readonly file: string;
  readonly keepers: Map<string, Keeper>;
  /** Address of a service's HTTP server. */
  readonly urls: Map<string, string>;
};

/** Two commands must not use one store. @throws UsageError; gives what releases it */
function lock(data: string): () => void {
  const path = join(data, 'kronos-up.pid');
  const pid = existsSync(path) ? Number(readFileSync(path, 'utf8')) : 0;
  if (pid > 0 && pid !== process.pid && runs(pid))
    throw new UsageError(
      `kronos up runs already in ${data}, as process ${pid}`,
      `Stop it, or name another directory with --data. If process ${pid} is another program, delete ${path}.`,
    );
  writeFileSync(path, `${process.pid}\n`);
  return () => rmSync(path, { force: true });
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** On Linux, what a killed `kronos up` has started ends with it. */
function tether(env: Shell['env']): string[] {
  const setpriv = process.platform === 'linux' ? onPath('setpriv', env) : null;
  return setpriv === null ? [] : [setpriv, '--pdeathsig', 'SIGTERM', '--'];
}

type Start = { readonly name: string; readonly command: string; readonly args: readonly string[] };

type KeepOptions = {
  readonly env: NodeJS.ProcessEnv;
  readonly onLine: (line: string) => void;
  readonly onEnd?: (how: string) => void;
};

function keep(run: Run, start: Start, { env, onLine, onEnd = () => {} }: KeepOptions): void {
  const { name } = start;
  const { terminal } = run.shell;
  const hooks = {
    onLine(line: string) {
      run.log.line(name, line);
      onLine(line);
    },
    onEnd(how: string, waitMs: number) {
      onEnd(how);
      const text = `${name} ended (${how}) and starts again in ${waitMs / 1000} s`;
      run.log.line('kronos up', text);
      terminal.err(`kronos: ${text}; see ${join(run.data, 'kronos.log')}\n`);
    },
  };
  run.keepers.set(name, keepRunning({ ...start, env }, systemClock, hooks, tether(run.shell.env)));
}

/** Starts the server and waits until it serves. @throws UsageError when its address is taken; ServerNotFound */
async function startNats(run: Run, config: Config, { host, port }: Address): Promise<void> {
  const [server = ''] = config.nats.servers;
  if (await answers(host, port))
    throw new UsageError(
      `a program listens at ${server} already`,
      'Stop it, or set another port in [nats] servers. To use that server, run kronos provision and the services yourself.',
    );
  const found = await findNatsServer('any');
  const { syncInterval } = capabilitiesOf(found.version);
  const conf = join(run.data, 'nats.conf');
  const lines = [
    '# Written by kronos up at each start.',
    'server_name: kronos',
    `host: ${JSON.stringify(host)}`,
    `port: ${port}`,
    'jetstream {',
    `  store_dir: ${JSON.stringify(join(run.data, 'nats'))}`,
    '  max_file: 107374182400',
    ...(syncInterval ? ['  sync_interval: always'] : []),
    '}',
  ];
  writeFileSync(conf, `${lines.join('\n')}\n`);
  const { promise, resolve: serves, reject } = Promise.withResolvers<void>();
  const words: string[] = [];
  const start = { name: NATS, command: found.path, args: ['-c', conf] };
  keep(run, start, {
    env: process.env,
    onLine(line) {
      if (words.push(line) > 5) words.shift();
      if (/Server is ready/.test(line)) serves();
    },
    // A failure after it has begun to serve does not end the command.
    onEnd: (how) =>
      reject(new Error(`nats-server ended (${how}) before it served. Its last words:\n${words.join('\n')}`)),
  });
  await promise;
  const { terminal } = run.shell;
  terminal.out(`nats-server ${found.version} (${found.from}) at ${server}, data in ${run.data}\n`);
  if (!syncInterval)
    terminal.out(
      'This version writes to the disk every 2 minutes: a power failure can lose the last events.\nWith nats-server 2.10 or newer (KRONOS_NATS_SERVER), each event is on the disk before it counts.\n',
    );
}

const answers = (host: string, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

async function provision({ shell }: Run, config: Config): Promise<void> {
  const log = await connectLog(config, 'provisioner', null);
  try {
    await provisionStreams(log, config);
    const { created, installation } = await nameInstallation(log, config, {
      by: shell.person,
      nowMs: shell.now(),
      installationId: shell.newId(),
    });
    const last = await log.lastSequence(streamNames.log);
    shell.terminal.out(
      `${created ? 'New' : 'Continues'} installation ${installation.id}, at event ${last} of the log\n`,
    );
  } finally {
    await log.close();
  }
}

function startService(run: Run, service: ServiceName, options: readonly string[], env: NodeJS.ProcessEnv): void {
  const start = { name: service, command: process.execPath, args: [serviceMain(service), ...options] };
  keep(run, start, {
    env,
    onLine(line) {
      const url = /"url":"(http[^"]+)"/.exec(line)?.[1];
      if (url !== undefined) run.urls.set(service, url);
    },
  });
}

/** Waits until every service is ready, and tells where the console is. */
async function ready(run: Run, stop: AbortSignal): Promise<void> {
  const waiting = new Set<string>(serviceNames);
  while (waiting.size > 0 && !stop.aborted) {
    for (const service of waiting) {
      const url = run.urls.get(service);
      if (url !== undefined && (await statusOf(`${url}/readyz`)) === 200) waiting.delete(service);
    }
    if (waiting.size > 0) await systemClock.sleep(POLL_MS, stop);
  }
  if (stop.aborted) return;
  const { terminal } = run.shell;
  const own = run.file === DEFAULT_CONFIG_FILE ? '' : ` -c ${run.file}`;
  terminal.out(`Ready. Console: ${run.urls.get('ledger')}\n`);
  terminal.out(`In another terminal: kronos status${own}\nCtrl-C stops everything.\n`);
}

const statusOf = (url: string): Promise<number> =>
  fetch(url).then(
    async (answer) => {
      await answer.arrayBuffer();
      return answer.status;
    },
    () => 0,
  );

/** First who writes, then the ledger with its archive, then the server. */
async function stopAll(run: Run, config: Config): Promise<void> {
  if (run.keepers.size === 0) return;
  run.shell.terminal.out('Stopping ...\n');
  const stopping = (names: readonly string[]) =>
    Promise.all(names.flatMap((name) => run.keepers.get(name)?.stop() ?? []));
  await stopping(['scorer', 'planner', 'executor']);
  await archived(run, config).catch(() => {});
  await stopping(['ledger']);
  await stopping([NATS]);
  run.shell.terminal.out(`Stopped. The next kronos up continues from ${run.data}.\n`);
}

/** Waits until the ledger's archive has the last event of the log. */
async function archived(run: Run, config: Config): Promise<void> {
  const url = run.urls.get('ledger');
  if (url === undefined || run.keepers.get('ledger')?.pid === null) return;
  const log = await connectLog(config, 'cli', null);
  try {
    const last = await log.lastSequence(streamNames.log);
    const until = systemClock.monotonic() + ARCHIVE_MS;
    while (systemClock.monotonic() < until) {
      const metrics = await (await fetch(`${url}/metrics`)).text();
      if (Number(/^kronos_archive_sequence(?:\{[^}]*\})? (\d+)/m.exec(metrics)?.[1] ?? 0) >= last) return;
      await systemClock.sleep(POLL_MS);
    }
  } finally {
    await log.close();
  }
}
