import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { CANNOT, run, startEngine } from './dockerEngine.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Why there are no containers here; null when there are. */
    readonly noContainers: string | null;
  }
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const MINUTE = 60_000;
/** After this long the tests are given up, whatever they wait for. */
const LIMIT_MINUTES = Number(process.env.KRONOS_CONTAINERS_MINUTES ?? 35);

/** A Docker engine (the one that answers, else one of our own for the time of the tests), and the images. */
export async function setup(project: TestProject): Promise<(() => void) | undefined> {
  const skip = (why: string) => {
    console.warn(`skipped: no containers can be run here. ${why}`);
    project.provide('noContainers', why);
    return undefined;
  };
  const engine = startEngine();
  if ('none' in engine) return skip(engine.none);
  // Its helper container cannot be pulled everywhere; the tests remove what they started.
  process.env.TESTCONTAINERS_RYUK_DISABLED = 'true';
  const down = () => {
    clearTimeout(limit);
    // Testcontainers keeps the lock that it makes.
    rmSync(join(tmpdir(), 'testcontainers-node-0.lock'), { recursive: true, force: true });
    engine.end();
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
