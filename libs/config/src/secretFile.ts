import type { Problem } from './errors.ts';
import { whyUnreadable } from './unreadable.ts';

/** The content of a file that holds the value of another option, without white space around it; or what is wrong with the file. */
export type SecretFile =
  | { readonly ok: true; readonly content: string }
  | { readonly ok: false; readonly wrong: Pick<Problem, 'problem' | 'remedy'> };

/** @param fills the option whose value the file holds */
export function readSecretFile(path: string, fills: string, readFile: (path: string) => string): SecretFile {
  const failed = (why: string, remedy: string): SecretFile => ({
    ok: false,
    wrong: { problem: `names the file ${path}, ${why}`, remedy },
  });
  try {
    const content = readFile(path).trim();
    return content === '' ? failed('which is empty', `Write ${fills} into it.`) : { ok: true, content };
  } catch (error) {
    return failed(`which cannot be read: ${whyUnreadable(error)}`, 'Create it, or let this service read it.');
  }
}
