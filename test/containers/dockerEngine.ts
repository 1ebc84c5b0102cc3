import { spawnSync } from 'node:child_process';
import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';

const engine = fileURLToPath(new URL('engine', import.meta.url));
const MINUTE = 60_000;
/** With this status `engine` and `deploy/images/build` say that it cannot be done here, and not that it failed. */
export const CANNOT = 3;

type Ran = { readonly status: number | null; readonly output: string };

export function run(command: string, args: readonly string[], minutes: number): Ran {
  const done = spawnSync(command, args, {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: minutes * MINUTE,
    killSignal: 'SIGKILL',
  });
  return { status: done.status, output: `${done.stdout ?? ''}${done.stderr ?? ''}${done.error?.message ?? ''}`.trim() };
}

/**
 * A Docker engine: the one that answers, else one of our own; DOCKER_HOST and PATH name it afterwards.
 *
 * @returns why there is none here, or what ends it
 * @throws Error when it could not be started
 */
export function startEngine(): { readonly none: string } | { readonly end: () => void } {
  const up = run(engine, ['up'], 4);
  if (up.status === CANNOT || up.status === null) return { none: up.output || 'It took too long to start an engine.' };
  if (up.status !== 0) throw new Error(`no Docker engine: ${up.output}`);
  const ours = /export DOCKER_HOST=(\S+) PATH="\$PATH:(.*)"/.exec(run(engine, ['env'], 1).output);
  if (ours === null) return { end: () => undefined };
  process.env.DOCKER_HOST = ours[1];
  process.env.PATH = `${process.env.PATH ?? ''}${delimiter}${ours[2]}`;
  return {
    end: () => {
      if (process.env.KRONOS_ENGINE_KEEP === undefined) run(engine, ['down'], 1);
    },
  };
}
