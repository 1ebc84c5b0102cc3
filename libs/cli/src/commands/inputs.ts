import { readFileSync } from 'node:fs';
import { engineOverrides } from '@kronos/config';
import { type CompleteEngineOptions, errorText } from '@kronos/contracts';
import { type Cooldowns, readCooldowns } from '@kronos/projections';
import { UsageError } from '../errors.ts';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'you have no right to read it',
  EISDIR: 'it is a directory',
};

/** Why a file cannot be read, in words where they are known. */
function whyUnreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason';
  return REASONS[code] ?? code;
}

/** The settings of `--set` and `--planner`, each as `OPTION=VALUE`. */
export const settingsOf = ({ set = [], planner }: { readonly set?: readonly string[]; readonly planner?: string }) => [
  ...set,
  ...(planner === undefined ? [] : [`engine.planner=${planner}`]),
];

/** @throws UsageError */
export function overridesOf(sets: readonly string[]): Partial<CompleteEngineOptions> {
  const read = engineOverrides(sets);
  if (!read.ok) throw new UsageError(read.problem, read.remedy);
  return read.options;
}

/** @throws UsageError that names the option and the file */
export function readText(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`${option} ${file} cannot be read: ${whyUnreadable(error)}`);
  }
}

/** @throws UsageError that names the option and the file */
export function jsonIn(option: string, file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${option} ${file} is not JSON: ${errorText(error)}`);
  }
}

/** @throws UsageError, CooldownsInvalid */
export const readCooldownsFile = (file: string): Cooldowns =>
  readCooldowns(jsonIn('--cooldowns', file, readText('--cooldowns', file)));
