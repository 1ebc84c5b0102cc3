import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Why there are no containers here; null when there are. */
    readonly noContainers: string | null;
  }
}

const here = fileURLToPath(new URL('.', import.meta.url));
const root = join(here, '../..');
const engine = join(here, 'engine');

const MINUTE = 60_000;
/** With this status `engine` and `build` say that it cannot be done here, and not that it failed. */
const CANNOT = 3;
/** After this long the tests are given up, whatever they wait for. */
const LIMIT_MINUTES = Number(process.env.KRONOS_CONTAINERS_MINUTES ?? 35);

function run(command: string, args: readonly string[], minutes: number): { status: number | null; output: string } {
  const done = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: minutes * MINUTE,
    killSignal: 'SIGKILL',
  });
  return { status: done.status, output: `${done.stdout ?? ''}${done.stderr ?? ''}${done.error?.message ?? ''}`.trim() };
}

/** A Docker engine (the one that answers, else one of our own for the time of the tests), and the images. */
export async function setup(project: TestProject): Promise<(() => void) | undefined> {
  const skip = (why: string) => {
    console.warn(`skipped: no containers can be run here. ${why}`);
    project.provide('noContainers', why);
    return undefined;
  };
  const up = run(engine, ['up'], 4);
  if (up.status === CANNOT || up.status === null) return skip(up.output || 'It took too long to start an engine.');
  if (up.status !== 0) throw new Error(`no Docker engine: ${up.output}`);
  const ours = /export DOCKER_HOST=(\S+) PATH="\$PATH:(.*)"/.exec(run(engine, ['env'], 1).output);
  if (ours !== null) {
    process.env.DOCKER_HOST = ours[1];
    process.env.PATH = `${process.env.PATH ?? ''}${delimiter}${ours[2]}`;
  }
  // Its helper container cannot be pulled everywhere; the tests remove what they started.
  process.env.TESTCONTAINERS_RYUK_DISABLED = 'true';
  const down = () => {
    clearTimeout(limit);
    // Testcontainers keeps the lock that it makes.
    rmSync(join(tmpdir(), 'testcontainers-node-0.lock'), { recursive: true, force: true });
    if (ours !== null && process.env.KRONOS_ENGINE_KEEP === undefined) run(engine, ['down'], 1);
  };
  const limit = setTimeout(() => {
    console.error(`the tests with containers were not over after ${LIMIT_MINUTES} minutes, and are given up`);
    down();
    process.exit(1);
  }, LIMIT_MINUTES * MINUTE);
  limit.unref();
  try {
    const built = run(join(root, 'deploy/images/build'), ['--local', '--tag', 'test'], 6);
    if (built.status === CANNOT) {
      down();
      return skip(built.output);
    }
    if (built.status !== 0) throw new Error(`the images cannot be built: ${built.output}`);
  } catch (error) {
    down();
    throw error;
  }
  project.provide('noContainers', null);
  return down;
}
