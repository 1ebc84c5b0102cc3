import { ALL } from '@kronos/contracts';
import { control } from '@kronos/operator';
import { type LogState, remedyOf, type UnreadableFact } from '@kronos/projections';
import { UsageError } from '../errors.ts';
import type { OperatorOptions } from '../grammar/shared.ts';
import { withSession } from '../open.ts';
import type { Shell } from '../shell.ts';
import { give, tell } from './operator.ts';

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

/** Every unreadable event that nobody skipped, with the aggregate that it addresses. */
const unreadables = (state: LogState): readonly UnreadableFact[] =>
  [...state.all.unreadables, ...[...state.aggregates.values()].flatMap((facts) => facts.unreadables)].sort(
    (a, b) => a.sequence - b.sequence,
  );

/**
 * The aggregate whose unreadable events these are.
 *
 * @throws UsageError when there is none, when they are of several, or when a newer version may read one
 */
function addressOf(state: LogState, range: ReturnType<typeof rangeOf>, force: boolean): string {
  const all = unreadables(state);
  const meant = all.filter(({ sequence, through }) => sequence >= range.sequence && through <= range.through);
  const [first] = meant;
  const list =
    all.length === 0
      ? 'Every event of the log can be read.'
      : `Unreadable: ${all.map((fact) => `${fact.sequence}${fact.through === fact.sequence ? '' : `-${fact.through}`} (${fact.aggregate === ALL ? 'all aggregates' : fact.aggregate}: ${fact.problem})`).join('; ')}`;
  if (first === undefined) throw new UsageError('there is no unreadable event to skip at this sequence', list);
  if (meant.some(({ aggregate }) => aggregate !== first.aggregate))
    throw new UsageError('these events belong to several aggregates', `Skip them one by one. ${list}`);
  const newer = meant.find(({ remedy }) => remedy === 'upgrade');
  if (newer !== undefined && !force)
    throw new UsageError(
      `a newer version of Kronos may read event ${newer.sequence}: ${newer.problem}`,
      `${remedyOf(newer)}. If you know that no version wrote it, add --force.`,
    );
  return first.aggregate;
}

/** kronos log skip. */
export async function skip(shell: Shell, text: string, options: SkipOptions): Promise<void> {
  const range = rangeOf(text);
  await withSession(shell, options, async (session) => {
    const said = { ...options, comment: options.reason };
    const told = await give(shell, session, said, (state, asking) =>
      control('event.skipped', addressOf(state, range, options.force === true), range, asking),
    );
    await tell(shell, options, [told]);
  });
}
