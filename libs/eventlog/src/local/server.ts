import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FoundBinary, findNatsServer, type WantedVersion } from './find.ts';
import { freePorts } from './ports.ts';

/** Far longer than a server needs, also on a machine that is busy with other work: they end only what hangs. */
export const START_MS = 120_000;
const STOP_MS = 60_000;

export type ServerOptions = {
  readonly version?: WantedVersion;
  /** A server that was found already; wins over `version`. */
  readonly server?: FoundBinary;
  /** More lines for the server's configuration: accounts, max_payload. */
  readonly config?: string;
  /** More options of its `jetstream` block, such as `sync_interval: always`. */
  readonly jetstream?: string;
  /** Environment for `$NAMES` in the configuration. */
  readonly env?: Readonly<Record<string, string>>;
  /** Where the store is; default: a directory of its own that is removed at the end. */
  readonly storeDir?: string;
  readonly port?: number;
  /** Default: the loopback interface. */
  readonly node?: ClusterNode;
};

export interface NatsServer {
  readonly url: string;
  readonly port: number;
  /** Its `server_name`, by which leaders and replicas are named. */
  readonly name: string;
  readonly version: string;
  readonly binary: string;
  readonly storeDir: string;
  readonly pid: number | null;
  /** The output of the server so far. */
  logText(): string;
  /** SIGTERM, and removes the store if it is the server's own. */
  stop(): Promise<void>;
  /** SIGKILL: no goodbye. The store stays; restart brings it back. */
  kill(): Promise<void>;
  /** Stopped (if it runs) and started again on the same port and store. */
  restart(): Promise<void>;
  /** SIGSTOP, and waits until no thread of it runs: until then it may still answer. */
  pause(): Promise<void>;
  /** SIGCONT. */
  resume(): void;
}

const ended = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

/** Whether every thread of a process is stopped by a signal (state T, proc(5)). Other systems than Linux are believed. */
function isStopped(pid: number): boolean {
  if (process.platform !== 'linux') return true;
  const tasks = `/proc/${pid}/task`;
  try {
    return readdirSync(tasks).every((task) => /\) T /.test(readFileSync(join(tasks, task, 'stat'), 'utf8')));
  } catch {
    // A thread ended while it was looked at.
    return false;
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (ended(child)) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGCONT');
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await gone;
  clearTimeout(timer);
}

/** Servers, and their directories, that a run which ends before it stopped them must not leave behind. */
const children = new Set<ChildProcess>();
const directories = new Set<string>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
  for (const dir of directories) rmSync(dir, { recursive: true, force: true, maxRetries: 2 });
});

class Process implements NatsServer {
  readonly name: string;
  readonly port: number;
  readonly version: string;
  readonly binary: string;
  readonly storeDir: string;
  readonly #dir: string;
  readonly #node: ClusterNode;
  readonly #env: Readonly<Record<string, string>>;
  #child: ChildProcess | null = null;

  constructor(place: Place, dir: string, storeDir: string, env: Readonly<Record<string, string>>) {
    this.name = place.name;
    this.binary = place.found.path;
    this.version = place.found.version;
    this.port = place.port;
    this.storeDir = storeDir;
    this.#dir = dir;
    this.#node = place.node;
    this.#env = env;
  }

  get url(): string {
    return `nats://${this.#node.address}:${this.port}`;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  get #log(): string {
    return join(this.#dir, 'server.log');
  }

  logText(): string {
    try {
      return readFileSync(this.#log, 'utf8');
    } catch {
      return '';
    }
  }

  async start(): Promise<void> {
    const output = openSync(this.#log, 'w');
    const { namespace } = this.#node;
    const inside = namespace === undefined ? [] : ['ip', 'netns', 'exec', namespace];
    const [program = '', ...args] = [...inside, this.binary, '-c', join(this.#dir, 'nats.conf')];
    const child = spawn(program, args, {
      stdio: ['ignore', output, output],
      env: { ...process.env, ...this.#env },
    });
    closeSync(output);
    this.#child = child;
    children.add(child);
    child.once('exit', () => children.delete(child));
    const failed = new Promise<never>((_, reject) => child.once('error', reject));
    failed.catch(() => undefined);
    const until = performance.now() + START_MS;
    while (!/Server is ready/.test(this.logText())) {
      if (ended(child)) throw new Error(`nats-server ended at once:\n${this.logText()}`);
      if (performance.now() > until) {
        await end(child, 'SIGKILL');
        throw new Error(`nats-server was not ready in ${START_MS} ms:\n${this.logText()}`);
      }
      await Promise.race([new Promise((resolve) => setTimeout(resolve, 20)), failed]);
    }
  }

  async stop(): Promise<void> {
    if (this.#child !== null) await end(this.#child, 'SIGTERM');
    rmSync(this.#dir, { recursive: true, force: true });
    directories.delete(this.#dir);
  }

  async kill(): Promise<void> {
    if (this.#child !== null) await end(this.#child, 'SIGKILL');
  }

  async restart(): Promise<void> {
    if (this.#child !== null) await end(this.#child, 'SIGTERM');
    await this.start();
  }

  async pause(): Promise<void> {
    if (this.#child?.pid === undefined) return;
    this.#child.kill('SIGSTOP');
    const until = performance.now() + STOP_MS;
    while (!isStopped(this.#child.pid)) {
      if (performance.now() > until) throw new Error(`nats-server did not stop within ${STOP_MS} ms of SIGSTOP`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }
}

/** Where a server runs. */
export type ClusterNode = {
  /** The address that it listens on, and by which the others and clients reach it. */
  readonly address: string;
  /** The network namespace that it runs in, as `ip netns` names it. */
  readonly namespace?: string;
};

type Place = {
  readonly found: FoundBinary;
  readonly node: ClusterNode;
  readonly port: number;
  readonly name: string;
  readonly cluster?: string;
};

export const LOOPBACK: ClusterNode = { address: '127.0.0.1' };

/** Starts a server in a directory of its own. */
export async function launch(place: Place, options: ServerOptions): Promise<NatsServer> {
  const dir = mkdtempSync(join(tmpdir(), 'kronos-nats-'));
  directories.add(dir);
  const storeDir = options.storeDir ?? join(dir, 'store');
  writeFileSync(
    join(dir, 'nats.conf'),
    [
      `server_name: "${place.name}"`,
      `host: "${place.node.address}"`,
      `port: ${place.port}`,
      `jetstream {\n  store_dir: ${JSON.stringify(storeDir)}\n  max_mem: 268435456\n  max_file: 107374182400\n  ${options.jetstream ?? ''}\n}`,
      place.cluster ?? '',
      options.config ?? '',
      '',
    ].join('\n'),
  );
  const server = new Process(place, dir, storeDir, options.env ?? {});
  try {
    await server.start();
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
  return server;
}

/**
 * Starts a nats-server with JetStream on a free port, with a store of its own.
 *
 * @throws ServerNotFound when there is none and none can be fetched
 */
export async function startNatsServer(options: ServerOptions = {}): Promise<NatsServer> {
  const found = options.server ?? (await findNatsServer(options.version ?? 'any'));
  const [port = 0] = options.port === undefined ? await freePorts(1) : [options.port];
  return await launch({ found, node: options.node ?? LOOPBACK, port, name: `kronos-${port}` }, options);
}
