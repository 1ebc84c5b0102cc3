import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheDir, intoCache, onPath, privately } from '@kronos/eventlog/testing';
import { type Browser, chromium } from 'playwright-core';

const run = promisify(execFile);
const PACKAGE = 'chromium-headless-shell';
const CACHED = 'chromium-debian';
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
  if (installed !== null) return await chromium.launch({ executablePath: installed });
  const cached = join(cacheDir(env), CACHED);
  const root = existsSync(join(cached, BINARY)) ? cached : await intoCache(env, CACHED, unpack);
  return await chromium.launch({
    executablePath: join(root, BINARY),
    env: { ...(env as Record<string, string>), LD_LIBRARY_PATH: libraries(root).join(':') },
  });
}

/** Where the package and what it depends on keep their libraries. */
function libraries(root: string): string[] {
  const triplets = ['usr/lib', 'lib'].flatMap((base) =>
    existsSync(join(root, base)) ? readdirSync(join(root, base)).map((name) => join(root, base, name)) : [],
  );
  return triplets
    .filter((path) => path.endsWith('-linux-gnu'))
    .flatMap((path) => [path, join(path, 'pulseaudio'), join(path, 'nss')]);
}

/** Fetches the package and those of its dependencies that this machine does not have. apt-get checks their digests. */
async function unpack(draft: string): Promise<void> {
  const state = mkdtempSync(join(tmpdir(), 'kronos-apt-'));
  const archives = join(state, 'archives');
  try {
    mkdirSync(join(archives, 'partial'), { recursive: true });
    const download = (options: readonly string[]) =>
      run(
        'apt-get',
        [
          ...[
            ...options,
            '-o',
            `Dir::Cache::archives=${archives}`,
            '-o',
            'Debug::NoLocking=1',
            '-o',
            'APT::Sandbox::User=',
          ],
          ...['--yes', '--no-install-recommends', '--download-only', 'install', PACKAGE],
        ],
        { timeout: 180_000 },
      );
    await download([]).catch(async () => {
      // A fresh machine knows no packages yet.
      await run('apt-get', [...privately(state), 'update'], { timeout: 90_000 });
      await download(privately(state));
    });
    for (const deb of readdirSync(archives).filter((name) => name.endsWith('.deb')))
      await run('dpkg-deb', ['-x', join(archives, deb), draft], { timeout: 120_000 });
  } catch (cause) {
    throw new NoChromium(cause);
  } finally {
    rmSync(state, { recursive: true, force: true });
  }
}
