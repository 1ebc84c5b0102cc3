import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Cancel, Clock } from '@kronos/clock';

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;
/** A process that ran for this long starts again at once after its end, as after its first one. */
const STEADY_MS = 60_000;
/** More than an orderly stop of a service takes. */
const STOP_MS = 20_000;

/** The wait before a process is started again, when it has ended for the `ends`-th time in a row. */
export const restartWaitMs = (ends: number): number => Math.min(FIRST_WAIT_MS * 2 ** (ends - 1), LONGEST_WAIT_MS);

export type Program = {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
};

export type KeeperHooks = {
  readonly onLine: (line: string) => void;
  /** It ended by itself, with this status or signal, and starts again after the wait. */
  readonly onEnd: (how: string, waitMs: number) => void;
};

/** A process that is started again whenever it ends by itself. */
export interface Keeper {
  /** The id of the running process; null between two of them. */
  readonly pid: number | null;
  /** SIGTERM, and SIGKILL for a process that does not end. It does not start again. */
  readonly stop: () => Promise<void>;
}

/** Runs in front of a program: the kernel then sends it SIGTERM when this process dies. */
export type Tether = readonly string[];

/** Starts a program and keeps it running. */
export function keepRunning(program: Program, clock: Clock, hooks: KeeperHooks, tether: Tether = []): Keeper {
  let child: ChildProcess | null = null;
  let ends = 0;
  let waiting: Cancel | null = null;
  let stopping = false;
  let gone: Promise<void> = Promise.resolve();

  function start(): void {
    const started = clock.monotonic();
    const [command = '', ...args] = [...tether, program.command, ...program.args];
    // A group of its own: Ctrl-C reaches this process alone, which stops the others in their order.
    const own = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: program.env, detached: true });
    child = own;
    for (const stream of [own.stdout, own.stderr]) createInterface({ input: stream }).on('line', hooks.onLine);
    const { promise, resolve } = Promise.withResolvers<void>();
    gone = promise;
    let over = false;
    const end = (how: string): void => {
      if (over) return;
      over = true;
      child = null;
      resolve();
      if (stopping) return;
      ends = clock.monotonic() - started >= STEADY_MS ? 1 : ends + 1;
      hooks.onEnd(how, restartWaitMs(ends));
      waiting = clock.after(restartWaitMs(ends), start);
    };
    own.once('error', (error) => end(error.message));
    own.once('close', (code, signal) => end(signal === null ? `status ${code}` : String(signal)));
  }

  start();
  return {
    get pid() {
      return child?.pid ?? null;
    },
    async stop() {
      stopping = true;
      waiting?.();
      const own = child;
      if (own === null) return;
      own.kill('SIGTERM');
      const cancel = clock.after(STOP_MS, () => own.kill('SIGKILL'));
      await gone;
      cancel();
    },
  };
}
