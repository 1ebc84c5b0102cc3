import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { errorText } from '@kronos/contracts';
import { atLeast, parseVersion } from '../wire/capabilities.ts';
import { ServerNotFound } from '../wire/errors.ts';
import { cacheDir, intoCache } from './cache.ts';
import { unpackDebian, unpackNewerDebian } from './debian.ts';

const run = promisify(execFile);

/** `any`: the first that is found, 2.9 or newer. `newest`: of the current series, fetched if need be. */
export type WantedVersion = 'any' | 'newest';
export type FoundBinary = { readonly path: string; readonly version: string; readonly from: string };

/** The oldest series of nats-server that still gets fixes. */
const CURRENT = '2.12.0';
const OLDEST = '2.9.0';
const HINT =
  'install nats-server (Debian and Ubuntu: apt-get install nats-server; macOS: brew install nats-server; with Go: go install github.com/nats-io/nats-server/v2@latest), or set KRONOS_NATS_SERVER to its path';

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/** The version that `nats-server --version` prints; null when it does not run. */
async function serverVersion(path: string): Promise<string | null> {
  try {
    const { stdout } = await run(path, ['--version'], { timeout: 10_000 });
    const version = /v?(\d+\.\d+\.\d+\S*)/.exec(stdout)?.[1];
    return version !== undefined && parseVersion(version) !== null ? version : null;
  } catch {
    return null;
  }
}

async function known(path: string, from: string): Promise<FoundBinary | null> {
  if (!isExecutable(path)) return null;
  const version = await serverVersion(path);
  return version === null ? null : { path, version, from };
}

/** The path of a program: on the PATH, or in one of `more`. */
export const onPath = (name: string, env: NodeJS.ProcessEnv, more: readonly string[] = []): string | null =>
  [...(env.PATH ?? '').split(delimiter), ...more].map((dir) => join(dir, name)).find((path) => isExecutable(path)) ??
  null;

/** Servers in the cache, as `<cache>/nats-server-<how>/.../nats-server`. */
function cached(env: NodeJS.ProcessEnv): string[] {
  const dir = cacheDir(env);
  if (!existsSync(dir)) return [];
  return readdirSync(dir)
    .filter((entry) => entry.startsWith('nats-server-'))
    .flatMap((entry) => ['nats-server', 'usr/sbin/nats-server', 'usr/bin/nats-server'].map((p) => join(dir, entry, p)))
    .filter((path) => isExecutable(path));
}

async function fromPackage(dir: string, from: string): Promise<FoundBinary | null> {
  return (
    (await known(join(dir, 'usr/sbin/nats-server'), from)) ?? (await known(join(dir, 'usr/bin/nats-server'), from))
  );
}

const hasApt = (env: NodeJS.ProcessEnv) => onPath('apt-get', env) !== null && onPath('dpkg-deb', env) !== null;

async function fromDebian(env: NodeJS.ProcessEnv): Promise<FoundBinary | null> {
  if (!hasApt(env)) return null;
  const dir = await unpackDebian(env, 'nats-server-debian', { packages: ['nats-server'] });
  return await fromPackage(dir, "the distribution's package");
}

async function fromNewerDebian(env: NodeJS.ProcessEnv): Promise<FoundBinary | null> {
  if (!hasApt(env)) return null;
  const dir = await unpackNewerDebian(env, 'nats-server-newer-debian', ['nats-server']);
  return dir === null ? null : await fromPackage(dir, 'the package of a newer distribution');
}

async function fromGo(env: NodeJS.ProcessEnv): Promise<FoundBinary | null> {
  const go = onPath('go', env, ['/usr/local/go/bin']);
  if (go === null) return null;
  const dir = await intoCache(env, 'nats-server-go', async (draft) => {
    await run(go, ['install', 'github.com/nats-io/nats-server/v2@latest'], {
      cwd: draft,
      timeout: 600_000,
      env: { ...env, GOBIN: draft, GOFLAGS: '-modcacherw' },
    });
  });
  return await known(join(dir, 'nats-server'), 'go install');
}

const FETCHES: Readonly<Record<WantedVersion, readonly ((env: NodeJS.ProcessEnv) => Promise<FoundBinary | null>)[]>> = {
  any: [fromDebian, fromGo],
  newest: [fromGo, fromNewerDebian],
};

const attempts = new Map<WantedVersion, Promise<FoundBinary>>();

/**
 * A nats-server to run: `KRONOS_NATS_SERVER`, the PATH and /usr/sbin, the cache, the package manager, `go install`, in
 * this order; for `newest` the first of them that has a current one, with `go install` before the package of a newer Debian.
 *
 * @throws ServerNotFound
 */
export function findNatsServer(version: WantedVersion, env: NodeJS.ProcessEnv = process.env): Promise<FoundBinary> {
  if (env !== process.env) return find(version, env);
  let attempt = attempts.get(version);
  if (attempt === undefined) {
    attempt = find(version, env);
    attempts.set(version, attempt);
  }
  return attempt;
}

async function find(version: WantedVersion, env: NodeJS.ProcessEnv): Promise<FoundBinary> {
  const minimum = version === 'any' ? OLDEST : CURRENT;
  const seen: string[] = [];
  const fits = (found: FoundBinary): boolean => {
    seen.push(`${found.path} (${found.version})`);
    return atLeast(found.version, minimum);
  };

  const named = await namedServer(version, env);
  if (named !== null && fits(named)) return named;
  const installed = onPath('nats-server', env, ['/usr/sbin', '/usr/local/sbin', '/usr/local/bin', '/opt/homebrew/bin']);
  const candidates = [...(installed === null ? [] : [installed]), ...cached(env)];
  for (const path of candidates) {
    const found = await known(path, path === installed ? 'the PATH' : 'the cache');
    if (found !== null && fits(found)) return found;
  }
  const problems: string[] = [];
  for (const fetch of FETCHES[version])
    try {
      const found = await fetch(env);
      if (found !== null && fits(found)) return found;
    } catch (error) {
      problems.push(error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error));
    }
  throw notFound(version, seen, problems);
}

/** The server that KRONOS_NATS_SERVER names; null: it names none. @throws ServerNotFound */
async function namedServer(version: WantedVersion, env: NodeJS.ProcessEnv): Promise<FoundBinary | null> {
  const path = env.KRONOS_NATS_SERVER ?? '';
  if (path === '') return null;
  const found = await known(path, 'KRONOS_NATS_SERVER');
  if (found === null) throw new ServerNotFound(`KRONOS_NATS_SERVER is ${path}, which is no nats-server that runs`);
  if (version === 'any' && !atLeast(found.version, OLDEST))
    throw new ServerNotFound(`KRONOS_NATS_SERVER is nats-server ${found.version}; ${OLDEST} is needed`);
  return found;
}

function notFound(version: WantedVersion, seen: readonly string[], problems: readonly string[]): ServerNotFound {
  const what =
    version === 'any' ? `no nats-server of ${OLDEST} or newer` : `no current nats-server (${CURRENT} or newer)`;
  const had = seen.length === 0 ? '' : `; seen: ${[...new Set(seen)].join(', ')}`;
  const failed = problems.length === 0 ? '' : `; fetching failed: ${problems.join('; ')}`;
  return new ServerNotFound(`${what} could be found${had}${failed}: ${HINT}`);
}

/** The servers that tests run on: any, and a current one when it is another and can be had. */
export async function availableServers(): Promise<{ servers: FoundBinary[]; missing: string | null }> {
  const any = await findNatsServer('any');
  try {
    const newest = await findNatsServer('newest');
    return { servers: newest.version === any.version ? [any] : [any, newest], missing: null };
  } catch (error) {
    return { servers: [any], missing: errorText(error) };
  }
}
