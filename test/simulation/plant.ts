import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Bug, bugs } from './bugs.ts';

const root = join(import.meta.dirname, '../..');

/** The source with the bug in it. Throws when the place is not there any more, or not the only one. */
export function withBug({ name, file, find, replace }: Bug, source: string): string {
  const places = source.split(find).length - 1;
  if (places !== 1)
    throw new Error(`the bug "${name}" fits ${places} places of ${file}: bring test/simulation/bugs.ts up to date`);
  return source.replace(find, () => replace);
}

export const sourceOf = (bug: Bug): string => readFileSync(join(root, bug.file), 'utf8');

/** Modules that are loaded from now on have the bug. */
export function plant(name: string): void {
  const bug = bugs.find((each) => each.name === name);
  if (bug === undefined)
    throw new Error(`there is no bug "${name}"; there are: ${bugs.map((each) => each.name).join('; ')}`);
  const source = withBug(bug, sourceOf(bug));
  const url = pathToFileURL(join(root, bug.file)).href;
  registerHooks({
    load(wanted, context, next) {
      return wanted === url ? { format: 'module-typescript', shortCircuit: true, source } : next(wanted, context);
    },
  });
}
