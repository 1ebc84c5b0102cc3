import { ALL } from '@kronos/contracts';
import {
  type AggregateFacts,
  type AllFacts,
  type ControlFacts,
  type Elsewhere,
  initialAggregateFacts,
  type LogState,
} from './state.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };
export type WritableFacts = Writable<AggregateFacts>;
export type Controls = Writable<ControlFacts>;

/**
 * A state that is being written: copy on write. Records and tables made since the last snapshot are written in place,
 * because nobody else has seen them; all others are copied first. So an event costs what it touches, and a snapshot never
 * changes.
 */
export class StateDraft {
  /** Stream sequence of the event that is folded. */
  sequence: number;
  /** When it happened, ms since the epoch, see `eventTimeMs`. */
  atMs = 0;
  /** The server's timestamp of it, ms since the epoch. */
  storedAtMs = 0;
  #all: AllFacts;
  #aggregates: ReadonlyMap<string, AggregateFacts>;
  #last: LogState;
  #owned = new WeakSet<object>();

  constructor(from: LogState) {
    this.sequence = from.sequence;
    this.#all = from.all;
    this.#aggregates = from.aggregates;
    this.#last = from;
  }

  /** The state now. It never changes afterwards. */
  snapshot(): LogState {
    if (this.#last.sequence !== this.sequence) {
      this.#last = { sequence: this.sequence, all: this.#all, aggregates: this.#aggregates };
      this.#owned = new WeakSet();
    }
    return this.#last;
  }

  /** The facts about all aggregates, to be read. */
  get all(): AllFacts {
    return this.#all;
  }

  /** The facts of an aggregate, to be read. */
  of(aggregate: string): AggregateFacts | undefined {
    return this.#aggregates.get(aggregate);
  }

  /** The aggregates that a command about a plan, a task or a VM concerns: it may be sent to all, and the id decides. */
  addressed(aggregate: string): readonly string[] {
    return aggregate === ALL ? [...this.#aggregates.keys()] : [aggregate];
  }

  /** The aggregates that know something of a VM or a host: it may have been in another one. */
  holders(table: Exclude<keyof Elsewhere, 'aggregate'>, key: string): readonly string[] {
    return [...this.#aggregates].flatMap(([aggregate, facts]) => (facts[table].has(key) ? [aggregate] : []));
  }

  /** The facts of an aggregate, to be written. */
  facts(aggregate: string): WritableFacts {
    const current = this.#aggregates.get(aggregate);
    if (current !== undefined && this.#owned.has(current)) return current;
    const copy: WritableFacts = { ...(current ?? initialAggregateFacts) };
    this.#owned.add(copy);
    const aggregates = this.#writable(this.#aggregates);
    aggregates.set(aggregate, copy);
    this.#aggregates = aggregates;
    return copy;
  }

  /** The facts about all aggregates, to be written. */
  allFacts(): Writable<AllFacts> {
    if (!this.#owned.has(this.#all)) {
      this.#all = { ...this.#all };
      this.#owned.add(this.#all);
    }
    return this.#all;
  }

  /** The facts that a command about one aggregate, or about all of them, sets. To be written. */
  controls(aggregate: string): Controls {
    return aggregate === ALL ? this.allFacts() : this.facts(aggregate);
  }

  /** The table with one more entry, to be put in the place of the given one. */
  put<K, V>(current: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> {
    const table = this.#writable(current);
    table.set(key, value);
    return table;
  }

  /**
   * The table with one more entry, and without its oldest one when there are more than the limit. The sequence says which one is the oldest: the
   * order of a table is not kept in a checkpoint.
   */
  putNewest<K, V extends { readonly sequence: number }>(
    current: ReadonlyMap<K, V>,
    key: K,
    value: V,
    limit: number,
  ): ReadonlyMap<K, V> {
    const table = this.#writable(current);
    table.set(key, value);
    if (table.size <= limit) return table;
    let oldest: readonly [K, V] | null = null;
    for (const entry of table) if (oldest === null || entry[1].sequence < oldest[1].sequence) oldest = entry;
    if (oldest !== null) table.delete(oldest[0]);
    return table;
  }

  /** The table without these entries. */
  remove<K, V>(current: ReadonlyMap<K, V>, keys: readonly K[]): ReadonlyMap<K, V> {
    const gone = keys.filter((key) => current.has(key));
    if (gone.length === 0) return current;
    const table = this.#writable(current);
    for (const key of gone) table.delete(key);
    return table;
  }

  /** The table without the entries that are to be dropped. */
  drop<K, V>(current: ReadonlyMap<K, V>, drop: (value: V) => boolean): ReadonlyMap<K, V> {
    const gone: K[] = [];
    for (const [key, value] of current) if (drop(value)) gone.push(key);
    return this.remove(current, gone);
  }

  /** The set with one more element, and without its oldest one when there are more than the limit. */
  add<T>(current: ReadonlySet<T>, element: T, limit: number): ReadonlySet<T> {
    const set = this.#owned.has(current) && current instanceof Set ? current : new Set(current);
    this.#owned.add(set);
    set.add(element);
    if (set.size > limit) {
      const [oldest] = set;
      set.delete(oldest);
    }
    return set;
  }

  #writable<K, V>(current: ReadonlyMap<K, V>): Map<K, V> {
    if (this.#owned.has(current) && current instanceof Map) return current;
    const copy = new Map(current);
    this.#owned.add(copy);
    return copy;
  }
}

/** The numbers with one more, the latest `limit` of them. */
export const appended = (numbers: readonly number[] | undefined, last: number, limit: number): readonly number[] =>
  numbers === undefined ? [last] : [...numbers.slice(-(limit - 1)), last];
