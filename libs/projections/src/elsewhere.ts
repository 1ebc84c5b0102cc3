/** The facts of the log about a VM or a host, whatever the aggregate: both may have changed it. Pure. */
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
  const find = (one: Pick<Elsewhere, T>): void => {
    const value = (one[table] as ReadonlyMap<string, ValueOf<Elsewhere[T]>>).get(key);
    if (value !== undefined) found.push(value);
  };
  find(state);
  for (const other of state.elsewhere) find(other);
  return found;
}

/**
 * The state with only those of the other aggregates that know one of these VMs or hosts: in most cases none. To be used before many
 * lookups, as each of them goes through every aggregate that is left.
 */
export function withRelated<S extends Pick<AggregateState, 'elsewhere'>>(
  state: S,
  servers: ReadonlySet<string>,
  hosts: ReadonlySet<string>,
): S {
  const knows = (other: Elsewhere): boolean =>
    [other.vmReleases, other.vmFailures, other.operatorQuarantines, other.ownMoves].some((of) => hasAny(of, servers)) ||
    [other.hostFailures, other.drains].some((of) => hasAny(of, hosts)) ||
    other.refusals.values().some(({ host }) => hosts.has(host)) ||
    other.tasks
      .values()
      .some(({ step, destination }) => servers.has(step.serverId) || hosts.has(step.from) || hosts.has(destination));
  return { ...state, elsewhere: state.elsewhere.filter(knows) };
}

const hasAny = (of: ReadonlyMap<string, unknown>, keys: ReadonlySet<string>): boolean =>
  of.keys().some((key) => keys.has(key));

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
