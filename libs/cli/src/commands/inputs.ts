import { readFileSync } from 'node:fs';
import { engineOverrides, whyUnreadable } from '@kronos/config';
import { type CompleteEngineOptions, errorText } from '@kronos/contracts';
import { type Cooldowns, readCooldowns } from '@kronos/projections';
import { UsageError } from '../errors.ts';

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

/** @throws UsageError that names the option and the file @param where to find such a file */
export function readText(option: string, file: string, where?: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`${option} ${file} cannot be read: ${whyUnreadable(error)}`, where);
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
