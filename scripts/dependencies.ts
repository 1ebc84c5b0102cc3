/** The parts and the production dependencies, which the Debian package and the images have in common. */
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';

/** The input of a release's files for one architecture. */
export type ReleaseInput = {
  readonly root: string;
  /** Paths of production dependencies below the root, and whether each may be missing. */
  readonly dependencies: readonly { readonly path: string; readonly optional: boolean }[];
  /** The files of the npm package. */
  readonly stage: string;
  /** A directory for files that are not kept. */
  readonly work: string;
  readonly out: string;
  readonly version: string;
  /** Debian's name. */
  readonly architecture: string;
  /** Directory of the npm package with the Node of that architecture. */
  readonly nodePackage: string;
};

/** Options of tar for an archive whose bytes depend on the files alone. */
export const SAME_BYTES = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', '--mtime=2000-01-01 00:00Z'];

/** Files of dependencies that no service loads. */
const UNUSED =
  /\.(map|md|d\.ts|d\.cts|d\.mts|flow|html?)$|\/(\.github|\.git[a-z]+|\.npmignore|\.?eslint[^/]*|tests?|__tests__|examples?|benchmarks?)$/;

/** Copies them below `home`, without the Node that npm brought and without what no service loads. */
export function copyDependencies(
  { root, dependencies }: Pick<ReleaseInput, 'root' | 'dependencies'>,
  home: string,
): void {
  for (const { path, optional } of dependencies) {
    if (/^node_modules\/node-(bin-)?(linux|darwin)-/.test(path)) continue;
    const from = join(root, path);
    if (!existsSync(from)) {
      if (optional) continue;
      throw new Error(`${path} is not installed: run npm ci`);
    }
    // A dependency's own dependencies are entries of their own.
    const filter = (source: string): boolean =>
      source === from || !/\/node_modules(\/|$)/.test(source.slice(from.length));
    cpSync(from, join(home, path), { recursive: true, filter: (source) => filter(source) && !UNUSED.test(source) });
  }
}
