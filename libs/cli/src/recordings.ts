import { statSync } from 'node:fs';
import { type Reconstruct, type Recording, readRecording } from '@kronos/replay';
import { UsageError } from './errors.ts';
import { progressBar } from './progress.ts';
import type { Shell } from './shell.ts';

/** @throws UsageError */
export function requireDirectory(directory: string, remedy: string): void {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new UsageError(`there is no directory ${directory}`, remedy);
}

/** Problems that are told; the JSON has all of them. */
const SHOWN = 10;

/** The snapshots of a backtest. */
const reconstruct: Reconstruct = async (directory) =>
  (await (await import('@kronos/backtest')).openSteps(directory)).entries();

/** A recorded directory, with its chain checked. @throws UsageError where there is none, RecordingInvalid, CooldownsInvalid */
export async function openRecording(shell: Shell, directory: string): Promise<Recording> {
  requireDirectory(directory, 'Name a directory that kronos record or kronos backtest wrote.');
  const progress = progressBar(shell.terminal, 'checking', shell.now);
  return await readRecording(directory, progress.share, reconstruct).finally(progress.end);
}

/** Names what was changed in a recording. The exit status is 1 then. */
export function tellProblems(shell: Shell, directory: string, problems: readonly string[]): void {
  if (problems.length === 0) return;
  process.exitCode = 1;
  const { err } = shell.terminal;
  const shown = problems.slice(0, SHOWN).map((problem) => `  ${problem}\n`);
  err(`kronos: ${directory} was changed after the recording:\n${shown.join('')}`);
  if (problems.length > SHOWN) err(`  and ${problems.length - SHOWN} more\n`);
}

/** Whether what a person named is an evidence file, by its name. */
export const isEvidence = (path: string): boolean => path.endsWith('.html');
