/** The anonymous form of each field of a snapshot. The compiler asks for every field. */
import type { KindOfName, Names } from './names.ts';

/** `true` where a value holds a text that may be anything, also as a key; `never` where it holds figures and words of a fixed list. */
type HoldsText<T> = T extends string
  ? string extends T
    ? true
    : never
  : T extends readonly (infer Inner)[]
    ? HoldsText<Inner>
    : T extends object
      ? string extends keyof T
        ? true
        : { [K in keyof T]-?: HoldsText<T[K]> }[keyof T]
      : never;

/** Returns what takes the place of a value. Null stays null. */
type Rewrite<T> = (names: Names, value: NonNullable<T>) => NonNullable<T>;

/**
 * `kept`: it holds words of a fixed list, or figures. `names nobody`: a text that is a word of Kronos or of OpenStack, the name of a policy or of a label of
 * metrics, a time, or an id of Kronos.
 */
type Rule<T> =
  | Rewrite<T>
  | ([HoldsText<NonNullable<T>>] extends [never] ? 'kept' : never)
  | (NonNullable<T> extends string | readonly string[] ? 'names nobody' : never);

type RuleOf<T, K extends keyof T> = Rule<T[K]> | (Partial<Pick<T, K>> extends Pick<T, K> ? 'left out' : never);

/** The fields that hold a figure, true or false: nothing has to be said of them. */
type Figures<T> = { [K in keyof T]-?: NonNullable<T[K]> extends number | boolean ? K : never }[keyof T];

type Rules<T> = { readonly [K in Exclude<keyof T, Figures<T>>]-?: RuleOf<T, K> } & {
  readonly [K in Figures<T>]?: RuleOf<T, K>;
};

const isFigure = (value: unknown): boolean => value === null || typeof value === 'number' || typeof value === 'boolean';

/**
 * Rewrites a part by the rules of its fields. Of the fields without a rule, as of a later version, figures are kept and all others left out.
 */
export function by<T extends object>(rules: Rules<T>): (names: Names, part: T) => T {
  const ruleOf = new Map(Object.entries<unknown>(rules));
  return (names, part) =>
    Object.fromEntries(
      Object.entries(part).flatMap(([key, value]) => {
        const rule = ruleOf.get(key) ?? (isFigure(value) ? 'kept' : 'left out');
        if (rule === 'left out') return [];
        const same = typeof rule !== 'function' || value === null || value === undefined;
        return [[key, same ? value : rule(names, value)]];
      }),
    ) as T;
}

/** Rewrites each of a list. */
export const each =
  <T>(rewrite: (names: Names, value: T) => T) =>
  (names: Names, list: readonly T[]): T[] =>
    list.map((value) => rewrite(names, value));

/** A name of this kind. */
export const named =
  (kind: KindOfName) =>
  (names: Names, name: string): string =>
    names.as(kind, name);

/** Names of this kind. */
export const allNamed =
  (kind: KindOfName) =>
  (names: Names, list: readonly string[]): string[] =>
    names.each(kind, list);

/** A record by names of this kind. */
export const keyed =
  (kind: KindOfName) =>
  <V>(names: Names, record: Readonly<Record<string, V>>): Record<string, V> =>
    names.keys(kind, record);

/** A trait or a resource class: those that begin with `CUSTOM_` are an operator's own. */
export const custom = (names: Names, name: string): string => names.custom(name);

/** A record by resource classes. */
export const byClass = <V>(names: Names, record: Readonly<Record<string, V>>): Record<string, V> =>
  names.customKeys(record);

/** Replaces texts that people and other systems wrote. */
export const leftOut = (): string => 'left out';
