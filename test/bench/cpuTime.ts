import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Runs its arguments as a command and adds a line `cpu USER SYSTEM`, in seconds, to its stderr. */
const TIMED = 'TIMEFORMAT="cpu %U %S"; time "$@"';

/** Runs a command. `seconds` are of CPU: other load on the machine changes little. @throws what `execFile` throws, at the time limit too */
export async function cpuTime(
  command: string,
  args: readonly string[],
  limitSeconds: number,
): Promise<{ stdout: string; seconds: number }> {
  const { stdout, stderr } = await run('bash', ['-c', TIMED, 'bash', command, ...args], {
    timeout: limitSeconds * 1000,
    maxBuffer: 2 ** 26,
  });
  const [, user, system] = /cpu ([\d.]+) ([\d.]+)\n$/.exec(stderr) ?? [];
  return { stdout, seconds: Number(user) + Number(system) };
}

/** The CPU time of this process so far, with all of its threads. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
