/** What the log knows of a VM or a host, whatever the aggregate: both may have changed it. Pure. */
import type { AggregateState, Elsewhere } from './state.ts';

/** One aggregate's part of it, and that of the others. */
export type KnownOf<T extends Exclude<keyof Elsewhere, 'aggregate'>> = Pick<AggregateState, T | 'elsewhere'>;

type ValueOf<M> = M extends ReadonlyMap<string, infer V> ? V : never;

function entriesOf<T extends Exclude<keyof Elsewhere, 'aggregate'>>(
  state: KnownOf<T>,
  table: T,
  key: string,
): ValueOf<Elsewhere[T]>[] {
  const found: ValueOf<Elsewhere[T]>[] = [];
  for (const one of [state, ...state.elsewhere]) {
    const value = (one[table] as ReadonlyMap<string, ValueOf<Elsewhere[T]>>).get(key);
    if (value !== undefined) found.push(value);
  }
  return found;
}

/** When a VM was released to be moved, or a host failed: ms since the epoch, oldest first. */
export function timesOf<T extends 'vmReleases' | 'hostFailures'>(
  state: KnownOf<T>,
  table: T,
  key: string,
): readonly number[] {
  const [first = [], ...others]: (readonly number[])[] = entriesOf(state, table, key);
  return others.length === 0 ? first : [first, ...others].flat().sort((a, b) => a - b);
}

/** The last fact of its kind about a VM; undefined: there is none. */
export function newestOf<T extends 'vmFailures' | 'operatorQuarantines' | 'ownMoves'>(
  state: KnownOf<T>,
  table: T,
  key: string,
): ValueOf<Elsewhere[T]> | undefined {
  return entriesOf(state, table, key).reduce<ValueOf<Elsewhere[T]> | undefined>(
    (newest, one) => (newest === undefined || newest.sequence < one.sequence ? one : newest),
    undefined,
  );
}
