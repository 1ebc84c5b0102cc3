import { readFileSync } from 'node:fs';
import { type Cooldowns, readCooldowns } from '@kronos/projections';
import { UsageError } from '../errors.ts';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'you have no right to read it',
  EISDIR: 'it is a directory',
};

/** Why a file cannot be read, in words where they are known. */
export function whyUnreadable(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason';
  return REASONS[code] ?? code;
}

/** @throws UsageError that names the option and the file */
export function readText(option: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`${option} ${file} cannot be read: ${whyUnreadable(error)}`);
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
