import { spawn } from 'node:child_process';

/** A hook that does not end after it was told to is killed. */
const GRACE_MS = 10_000;

/**
 * Runs a command of a person in a shell, in a process group of its own, with the terminal's output. Gives null when it
 * succeeded, else why not.
 */
export async function runHook(
  command: string,
  env: Readonly<Record<string, string | undefined>>,
  timeoutMs: number,
  interrupted: AbortSignal,
): Promise<string | null> {
  const child = spawn(command, { shell: true, stdio: ['ignore', 'inherit', 'inherit'], env, detached: true });
  const kill = (signal: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // It has ended.
    }
  };
  let why: string | null = null;
  let killer: NodeJS.Timeout | undefined;
  const end = (text: string): void => {
    why ??= text;
    kill('SIGTERM');
    killer ??= setTimeout(() => kill('SIGKILL'), GRACE_MS);
  };
  const timer = setTimeout(() => end(`it did not end within ${timeoutMs / 1000} s and was stopped`), timeoutMs);
  const onInterrupt = (): void => end('it was interrupted');
  interrupted.addEventListener('abort', onInterrupt, { once: true });
  const ended = Promise.withResolvers<string | null>();
  child.once('error', (error) => ended.resolve(error.message));
  child.once('exit', (code, signal) => {
    if (code === 0) ended.resolve(null);
    else ended.resolve(signal === null ? `it ended with status ${code}` : `it was ended by ${signal}`);
  });
  try {
    const text = await ended.promise;
    return why ?? text;
  } finally {
    clearTimeout(timer);
    clearTimeout(killer);
    interrupted.removeEventListener('abort', onInterrupt);
  }
}
