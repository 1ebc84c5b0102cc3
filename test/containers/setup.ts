import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
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

function run(command: string, args: readonly string[], cwd = root): { status: number | null; output: string } {
  const done = spawnSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  return { status: done.status, output: `${done.stdout ?? ''}${done.stderr ?? ''}${done.error?.message ?? ''}`.trim() };
}

/** A Docker engine (the one that answers, else one of our own for the time of the tests), and the images. */
export async function setup(project: TestProject): Promise<(() => void) | undefined> {
  const up = run(engine, ['up']);
  if (up.status !== 0) {
    console.warn(`skipped: no containers can be run here. ${up.output}`);
    project.provide('noContainers', up.output);
    return undefined;
  }
  const ours = /export DOCKER_HOST=(\S+) PATH="\$PATH:(.*)"/.exec(run(engine, ['env']).output);
  if (ours !== null) {
    process.env.DOCKER_HOST = ours[1];
    process.env.PATH = `${process.env.PATH ?? ''}${delimiter}${ours[2]}`;
  }
  // Its helper container cannot be pulled everywhere; the tests remove what they started.
  process.env.TESTCONTAINERS_RYUK_DISABLED = 'true';
  const down = () => {
    if (ours !== null && process.env.KRONOS_ENGINE_KEEP === undefined) run(engine, ['down']);
  };
  try {
    if (!existsSync(join(here, 'node_modules', 'testcontainers'))) {
      const installed = run('npm', ['ci', '--ignore-scripts', '--no-fund', '--no-audit'], here);
      if (installed.status !== 0) throw new Error(`testcontainers cannot be installed: ${installed.output}`);
    }
    const built = run(join(root, 'deploy/images/build'), ['--local', '--tag', 'test']);
    if (built.status !== 0) throw new Error(`the images cannot be built: ${built.output}`);
  } catch (error) {
    down();
    throw error;
  }
  project.provide('noContainers', null);
  return down;
}
