/** The changes of the folded log, for a thread that has an earlier one. */
import type { AggregateFacts, LogState } from '@kronos/projections';

/** By aggregate the facts that are not the same object as before: all of an aggregate that is new. The folds never change a value in place. */
export type LogChanges = Pick<LogState, 'sequence' | 'all'> & {
  readonly aggregates: ReadonlyMap<string, Partial<AggregateFacts>>;
};

export function changesOf(from: LogState, { sequence, all, aggregates }: LogState): LogChanges {
  const changed = new Map<string, Partial<AggregateFacts>>();
  for (const [aggregate, to] of aggregates) {
    const before = from.aggregates.get(aggregate);
    const names = Object.keys(to) as (keyof AggregateFacts)[];
    const facts = names.filter((name) => to[name] !== before?.[name]).map((name) => [name, to[name]]);
    changed.set(aggregate, Object.fromEntries(facts));
  }
  return { sequence, all, aggregates: changed };
}

export function withChanges({ aggregates: before }: LogState, { sequence, all, aggregates }: LogChanges): LogState {
  const merged = [...aggregates].map(
    ([aggregate, facts]) => [aggregate, { ...before.get(aggregate), ...facts } as AggregateFacts] as const,
  );
  return { sequence, all, aggregates: new Map(merged) };
}
