/** The files that name the version of Kronos, and the change of each for a new version. Pure. */
import { errorText } from '@kronos/contracts/words';
import { sectionOf } from './releaseNotes.ts';

export type NewVersion = {
  readonly from: string;
  readonly to: string;
  /** Day of the release, YYYY-MM-DD. */
  readonly day: string;
};

type Rule = { readonly files: RegExp; readonly change: (text: string, version: NewVersion, file: string) => string };

const VERSION = /^\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$/;

const inManifest = (text: string, { from, to }: NewVersion): string =>
  replaced(text, `\n  "version": "${from}",`, `\n  "version": "${to}",`);

/** The entries of Kronos's own packages: the whole, and those below libs/ and services/. */
function inLock(text: string, { from, to }: NewVersion): string {
  type Lock = { version: string; packages: Record<string, { version?: string }> };
  const lock = JSON.parse(text) as Lock;
  lock.version = to;
  for (const [path, entry] of Object.entries(lock.packages))
    if ((path === '' || /^(libs|services)\/[^/]+$/.test(path)) && entry.version === from) entry.version = to;
  return `${JSON.stringify(lock, null, 2)}\n`;
}

const inChart = (text: string, { from, to }: NewVersion): string =>
  replaced(
    replaced(text, `\nversion: ${from}\n`, `\nversion: ${to}\n`),
    `appVersion: "${from}"`,
    `appVersion: "${to}"`,
  );

function inChangelog(text: string, { to, day }: NewVersion): string {
  if (sectionOf(text, to) !== null) throw new Error(`has a section [${to}] already`);
  if ((sectionOf(text, 'Unreleased') ?? '') === '')
    throw new Error('has nothing below [Unreleased]: there is no change to release');
  return replaced(text, '## [Unreleased]\n', `## [Unreleased]\n\n## [${to}] - ${day}\n`);
}

function replaced(text: string, old: string, next: string): string {
  if (!text.includes(old)) throw new Error(`does not have ${JSON.stringify(old.trim())}`);
  return text.replaceAll(old, next);
}

const RULES: readonly Rule[] = [
  { files: /^((libs|services)\/[^/]+\/)?package\.json$/, change: inManifest },
  { files: /^package-lock\.json$/, change: inLock },
  { files: /^deploy\/helm\/kronos\/Chart\.yaml$/, change: inChart },
  {
    files: /^deploy\/compose\/compose\.yaml$/,
    change: (text, { from, to }) => replaced(text, `KRONOS_VERSION:-${from}}`, `KRONOS_VERSION:-${to}}`),
  },
  {
    files: /^deploy\/kolla\/globals\.yml$/,
    change: (text, { from, to }) => replaced(text, `kronos_tag: "${from}"`, `kronos_tag: "${to}"`),
  },
  { files: /^CHANGELOG\.md$/, change: inChangelog },
];

/** Whether a file names the version of Kronos. */
export const namesVersion = (file: string): boolean => RULES.some(({ files }) => files.test(file));

/**
 * The text of a file for the new version.
 *
 * @throws Error what is wrong with the file, or with the version
 */
export function withVersion(file: string, text: string, version: NewVersion): string {
  const rule = RULES.find(({ files }) => files.test(file));
  if (rule === undefined) throw new Error(`${file} names no version`);
  try {
    return rule.change(text, version, file);
  } catch (error) {
    throw new Error(`${file} ${errorText(error)}`, { cause: error });
  }
}

/** The problem of a new version; null: none. */
export function versionProblem(from: string, to: string): string | null {
  if (!VERSION.test(to)) return `${to} is no version: write MAJOR.MINOR.PATCH`;
  const numbers = (version: string) => version.split(/[.-]/).slice(0, 3).map(Number);
  const [before, after] = [numbers(from), numbers(to)];
  const at = after.findIndex((part, i) => part !== before[i]);
  const isLater = at >= 0 && (after[at] ?? 0) > (before[at] ?? 0);
  return isLater ? null : `${to} does not come after ${from}`;
}
