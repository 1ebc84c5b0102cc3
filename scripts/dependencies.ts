/** The production dependencies, as the Debian package and the images have them. */
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';

export type Dependencies = {
  readonly root: string;
  /** Paths of production dependencies below the root, and whether each may be missing. */
  readonly dependencies: readonly { readonly path: string; readonly optional: boolean }[];
};

/** Of dependencies: what no service loads. */
const UNUSED =
  /\.(map|md|d\.ts|d\.cts|d\.mts|flow|html?)$|\/(\.github|\.git[a-z]+|\.npmignore|\.?eslint[^/]*|tests?|__tests__|examples?|benchmarks?)$/;

/** Copies them below `home`, without the Node that npm brought and without what no service loads. */
export function copyDependencies({ root, dependencies }: Dependencies, home: string): void {
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
