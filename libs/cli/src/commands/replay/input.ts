/** The input of a replay, and the message that it was interrupted. */
import type { History, Range } from '@kronos/replay';
import type { AggregateOption, ConfigOption, OutputOption } from '../../grammar/shared.ts';
import { INTERRUPTED, type Shell } from '../../shell.ts';

export type ReplayOptions = ConfigOption &
  OutputOption &
  AggregateOption & {
    readonly since?: string;
    readonly until?: string;
    readonly strict?: boolean;
    readonly policies?: string;
    readonly set?: string[];
    readonly planner?: string;
    readonly cooldowns?: string;
    readonly whatIf?: boolean;
    readonly moves?: boolean;
    readonly chart?: string;
    readonly threads?: number;
  };

/** The recorded decisions to run again. */
export type ReplayInput = { readonly history: History; readonly range: Range; readonly problems: readonly string[] };

export const threadsOf = ({ threads }: ReplayOptions): { readonly threads?: number } =>
  threads === undefined ? {} : { threads };

/** Says that a replay was ended before its end; what was printed is of the part that was done. */
export function tellInterrupted(shell: Shell, stop: AbortSignal): void {
  if (!stop.aborted) return;
  shell.terminal.err('kronos: interrupted: the output covers only the part that was done.\n');
  process.exitCode = INTERRUPTED;
}
