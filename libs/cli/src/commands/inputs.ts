import { readFileSync } from 'node:fs';
import { type Cooldowns, readCooldowns } from '@kronos/projections';
import { UsageError } from '../errors.ts';

/** @throws UsageError that names the option and the file */
export function readText(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason';
    throw new UsageError(`${option} ${file} cannot be read (${why})`);
  }
}

/** @throws UsageError, CooldownsInvalid */
export function readCooldownsFile(file: string): Cooldowns {
  const text = readText('--cooldowns', file);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new UsageError(`--cooldowns ${file} is not JSON`);
  }
  return readCooldowns(json);
}
