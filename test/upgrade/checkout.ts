import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cacheDir, intoCache } from '@kronos/eventlog/testing';

const run = promisify(execFile);
const here = fileURLToPath(new URL('../../', import.meta.url));

type Packages = Readonly<
  Record<string, { readonly version?: string; readonly resolved?: string; readonly link?: true; readonly dev?: true }>
>;
const packagesOf = (root: string): Packages =>
  (JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as { packages: Packages }).packages;

/** A package of a clone itself, not one within another package. */
const OWN = /^node_modules\/(@[^/]+\/)?[^/]+$/;

/**
 * Links the packages of others to those of this clone: they have the same versions, and a class of theirs, such as an error of
 * the NATS client, is the same one in both.
 *
 * @throws where a package that a service needs has another version here
 */
function linkPackages(root: string, final: string): void {
  const [its, ours] = [packagesOf(root), packagesOf(here)];
  for (const [place, { version, resolved, link, dev }] of Object.entries(its)) {
    if (link !== true && dev !== true && place.startsWith('node_modules/') && ours[place]?.version !== version)
      throw new Error(`it needs version ${version} of ${place}, and this clone has ${ours[place]?.version ?? 'none'}`);
    if (!OWN.test(place) || (link !== true && ours[place] === undefined)) continue;
    mkdirSync(dirname(join(root, place)), { recursive: true });
    symlinkSync(link === true ? join(final, resolved ?? '') : join(here, place), join(root, place));
  }
}

/**
 * The files of a commit, in the cache, with the packages of this clone.
 *
 * @throws where the clone has no such commit, as a shallow one, or its packages do not fit
 */
export async function checkOut(commit: string): Promise<string> {
  // Its packages are those of this clone: another clone has a checkout of its own.
  const name = `release-${commit}-${createHash('sha256').update(here).digest('hex').slice(0, 8)}`;
  const kept = join(cacheDir(), name);
  if (existsSync(kept)) return kept;
  return await intoCache(process.env, name, async (root) => {
    await run('sh', ['-c', `git -C "$1" archive "$2" | tar -x -C "$3"`, 'sh', here, commit, root]);
    if (!existsSync(join(root, 'package-lock.json'))) throw new Error(`this clone has no commit ${commit}`);
    linkPackages(root, kept);
  });
}
