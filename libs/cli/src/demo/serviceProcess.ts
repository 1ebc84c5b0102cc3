/** A service as a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { ServiceName } from '@kronos/contracts';

type ServiceProcess = {
  /** The service's main module. */
  readonly main: string;
  readonly service: ServiceName;
  /** The output of the process goes to `logs/SERVICE.log` there. */
  readonly directory: string;
  readonly configFile: string;
  /** Options from the environment, beside that of this process. */
  readonly env: Readonly<Record<string, string>>;
  /** Called with the address of its own HTTP server. */
  readonly onUrl: (url: string) => void;
};

export function spawnService({ main, service, directory, configFile, env, onUrl }: ServiceProcess): ChildProcess {
  const child = spawn(process.execPath, [main, '--config', configFile], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  const file = createWriteStream(join(directory, 'logs', `${service}.log`), { flags: 'a' });
  child.stderr.pipe(file, { end: false });
  createInterface({ input: child.stdout }).on('line', (line) => {
    file.write(`${line}\n`);
    const url = /"url":"(http[^"]+)"/.exec(line)?.[1];
    if (url !== undefined) onUrl(url);
  });
  child.on('close', () => file.end());
  return child;
}

/** Asks a process to stop, and waits until it has; a process that does not is killed after 12 s. */
export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 12_000);
  await exited;
  clearTimeout(timer);
}
