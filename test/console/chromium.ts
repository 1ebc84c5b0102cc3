import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir, onPath, unpackDebian, withLibraries } from '@kronos/eventlog/testing';
import { type Browser, chromium } from 'playwright-core';

const PACKAGE = 'chromium-headless-shell';
const CACHED = 'chromium-debian';
/** Letters look the same whatever the system's settings of fonts are. */
const ARGS = ['--font-render-hinting=none'];
const BINARY = 'usr/lib/chromium/chromium-headless-shell';

/** There is no browser, and none can be fetched. */
export class NoChromium extends Error {
  constructor(cause: unknown) {
    const why = cause instanceof Error ? cause.message.split('\n').at(-1) : String(cause);
    super(`no Chromium: install Debian's package ${PACKAGE}, or set KRONOS_CHROMIUM to a browser (${why})`, { cause });
  }
}

/** A browser to run: `KRONOS_CHROMIUM`, the PATH, the cache, or Debian's package, unpacked without installing it. @throws NoChromium */
export async function launchChromium(env: NodeJS.ProcessEnv = process.env): Promise<Browser> {
  const installed = env.KRONOS_CHROMIUM ?? onPath(PACKAGE, env) ?? onPath('chromium', env);
  if (installed !== null) return await chromium.launch({ executablePath: installed, args: ARGS });
  const cached = join(cacheDir(env), CACHED);
  const root = existsSync(join(cached, BINARY)) ? cached : await unpack(env);
  return await chromium.launch({
    executablePath: join(root, BINARY),
    args: ARGS,
    env: withLibraries(env, root) as Record<string, string>,
  });
}

const unpack = (env: NodeJS.ProcessEnv): Promise<string> =>
  unpackDebian(env, CACHED, { packages: [PACKAGE], dependencies: true }).catch((cause: unknown) => {
    throw new NoChromium(cause);
  });
