import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type Bug, bugs, type Edit } from './bugs.ts';

const root = join(import.meta.dirname, '../..');

/** The source with the edit in it. Throws when the place is not there any more, or not the only one. */
function edited(name: string, { file, find, replace }: Edit, source: string): string {
  const places = source.split(find).length - 1;
  if (places !== 1)
    throw new Error(`the bug "${name}" fits ${places} places of ${file}: bring test/simulation/bugs.ts up to date`);
  return source.replace(find, () => replace);
}

/** The files with the bug in them. @throws when an edit fits no place or several */
export function withBug({ name, also, ...edit }: Bug): Map<string, string> {
  const sources = new Map<string, string>();
  for (const each of also === undefined ? [edit] : [edit, also]) {
    const source = sources.get(each.file) ?? readFileSync(join(root, each.file), 'utf8');
    sources.set(each.file, edited(name, each, source));
  }
  return sources;
}

/**
 * Modules that are loaded from now on have the bug.
 *
 * @returns names the files of the bug that were not loaded since, so that the run does not have it
 * @throws when there is no such bug, or its edit does not fit
 */
export function plant(name: string): () => readonly string[] {
  const bug = bugs.find((each) => each.name === name);
  if (bug === undefined)
    throw new Error(`there is no bug "${name}"; there are: ${bugs.map((each) => each.name).join('; ')}`);
  const planted = new Map([...withBug(bug)].map(([file, source]) => [pathToFileURL(join(root, file)).href, source]));
  const missing = new Set(planted.keys());
  registerHooks({
    load(wanted, context, next) {
      const source = planted.get(wanted);
      missing.delete(wanted);
      return source === undefined ? next(wanted, context) : { format: 'module-typescript', shortCircuit: true, source };
    },
  });
  return () => [...missing].map((url) => relative(root, fileURLToPath(url)));
}
