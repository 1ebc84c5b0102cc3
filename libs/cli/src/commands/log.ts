import { control, eventsToSkip } from '@kronos/operator';
import { UsageError } from '../errors.ts';
import type { OperatorOptions } from '../grammar/shared.ts';
import { withSession } from '../open.ts';
import type { Shell } from '../shell.ts';
import { give, tell } from './give.ts';

export type SkipOptions = OperatorOptions & { readonly reason: string; readonly force?: boolean };

/** `12` or `12-40`. @throws UsageError */
function rangeOf(text: string): { readonly sequence: number; readonly through: number } {
  const match = /^([1-9]\d{0,14})(?:-([1-9]\d{0,14}))?$/.exec(text);
  const sequence = Number(match?.[1]);
  const through = Number(match?.[2] ?? match?.[1]);
  if (match === null || through < sequence)
    throw new UsageError(
      `${JSON.stringify(text)} is not the sequence of an event`,
      'Write kronos log skip 12, or 12-40.',
    );
  return { sequence, through };
}

/** kronos log skip. */
export async function skip(shell: Shell, text: string, options: SkipOptions): Promise<void> {
  const range = rangeOf(text);
  await withSession(shell, options, async (session) => {
    const said = { ...options, comment: options.reason };
    const told = await give(shell, session, said, (state, asking) =>
      control('event.skipped', eventsToSkip(state, range, { force: options.force === true }).aggregate, range, asking),
    );
    await tell(shell, options, [told]);
  });
}
