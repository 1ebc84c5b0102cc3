// Takes the repository apart for the Dockerfile: run in the build stages, left behind by them.
//   node parts.mjs manifests    leaves of libs/ and services/ only what npm needs to install
//   node parts.mjs trim         leaves out of everything what no service loads
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const remove = (directory, unwanted) => {
  for (const entry of readdirSync(directory, { withFileTypes: true, recursive: true })) {
    if (entry.isFile() && unwanted.test(entry.name)) rmSync(join(entry.parentPath, entry.name));
  }
};

const [task] = process.argv.slice(2);
if (task === 'manifests') {
  for (const directory of ['libs', 'services']) remove(directory, /^(?!package\.json$)/);
} else if (task === 'trim') {
  for (const directory of ['libs', 'services']) {
    remove(directory, /\.test\.ts$/);
    for (const name of readdirSync(directory))
      for (const unloaded of ['testing', 'test'])
        rmSync(join(directory, name, unloaded), { recursive: true, force: true });
  }
  remove('node_modules', /\.(map|md|d\.ts|d\.cts|d\.mts)$/);
  rmSync('node_modules/.bin', { recursive: true, force: true });
} else throw new Error(`parts.mjs: no task ${task}`);
