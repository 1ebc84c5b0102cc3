/** JSON as its difference to another JSON: the snapshots of an aggregate differ in little. Pure. */
import { isRecord } from '@kronos/contracts';

/**
 * `=`: whole. `o`: an object with the same keys in the same order, changed fields alone. `a`: a list of the same length, likewise.
 * `v`: an object of numbers with the same keys in the same order; its numbers. `n`: the same, as differences of decimal places: how many
 * places, and a text with the difference of each number.
 */
export type Patch =
  | readonly ['=', unknown]
  | readonly ['o', Readonly<Record<string, Patch>>]
  | readonly ['a', Readonly<Record<number, Patch>>]
  | readonly ['v', readonly number[]]
  | readonly ['n', number, string];

type Numbers = Readonly<Record<string, number>>;
/** Objects with fewer numbers are patched field by field. */
const FEW = 4;
const areNumbers = (value: Record<string, unknown>): value is Record<string, number> => {
  const all = Object.values(value);
  return all.length >= FEW && all.every((one) => typeof one === 'number');
};

/** Letters of a JSON text that need no escape. A pure compressor packs one letter for each number best. */
const LETTERS = Array.from({ length: 92 }, (_, i) => String.fromCharCode(i + 0x23))
  .filter((letter) => letter !== '\\')
  .join('');
/** Differences of one letter; each letter after them begins a longer one. */
const BASE = 88;
/** Letters of the longest difference. */
const LONGEST = LETTERS.length - BASE + 1;
/** More decimal places are no rounded number. */
const MOST_PLACES = 6;

/** The decimal places of numbers; null: too many. */
function placesOf(numbers: readonly number[]): number | null {
  let most = 0;
  for (const number of numbers) {
    const text = String(number);
    if (!/^-?\d+(?:\.\d+)?$/.test(text)) return null;
    const point = text.indexOf('.');
    if (point >= 0) most = Math.max(most, text.length - point - 1);
    if (most > MOST_PLACES) return null;
  }
  return most;
}

/** A difference as letters; null: it is too large. Small ones of either sign take one letter. */
function lettersOf(difference: number): string | null {
  let left = difference < 0 ? -2 * difference - 1 : 2 * difference;
  if (left < BASE) return LETTERS.charAt(left);
  const digits: string[] = [];
  for (; left > 0; left = Math.floor(left / BASE)) digits.push(LETTERS.charAt(left % BASE));
  return digits.length > LONGEST ? null : `${LETTERS.charAt(BASE + digits.length - 2)}${digits.join('')}`;
}

function* differencesIn(text: string): Generator<number> {
  for (let at = 0; at < text.length; at++) {
    const first = LETTERS.indexOf(text.charAt(at));
    let coded = first;
    if (first >= BASE) {
      const digits = first - BASE + 2;
      coded = 0;
      for (let i = digits; i > 0; i--) coded = coded * BASE + LETTERS.indexOf(text.charAt(at + i));
      at += digits;
    }
    yield coded % 2 === 0 ? coded / 2 : -(coded + 1) / 2;
  }
}

/** The quotient of two whole numbers is the number that has these decimal places. */
const plus = (before: number, difference: number, places: number): number =>
  (Math.round(before * 10 ** places) + difference) / 10 ** places;

function numbersPatch(before: Numbers, after: Numbers): Patch {
  const numbers = Object.values(after);
  const former = Object.values(before);
  const places = placesOf([...numbers, ...former]);
  if (places === null) return ['v', numbers];
  let text = '';
  for (const [i, number] of numbers.entries()) {
    const was = former[i] ?? 0;
    const difference = Math.round(number * 10 ** places) - Math.round(was * 10 ** places);
    const letters = lettersOf(difference);
    if (letters === null || !Object.is(plus(was, difference, places), number)) return ['v', numbers];
    text += letters;
  }
  return ['n', places, text];
}

/** Null: they are the same, the order of the keys included. */
export function patchOf(before: unknown, after: unknown): Patch | null {
  if (Object.is(before, after)) return null;
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    const changed = changedIn(after.map((one, i) => [i, patchOf(before[i], one)]));
    return changed === null ? null : ['a', changed];
  }
  if (!isRecord(before) || !isRecord(after)) return ['=', after];
  const keys = Object.keys(after);
  const former = Object.keys(before);
  if (keys.length !== former.length || keys.some((key, i) => key !== former[i])) return ['=', after];
  const changed = changedIn(keys.map((key) => [key, patchOf(before[key], after[key])]));
  if (changed === null) return null;
  return areNumbers(before) && areNumbers(after) ? numbersPatch(before, after) : ['o', changed];
}

/** The patches that change something; null: none does. */
function changedIn(patches: readonly (readonly [string | number, Patch | null])[]): Record<string, Patch> | null {
  const changed = patches.filter((one): one is [string | number, Patch] => one[1] !== null);
  return changed.length === 0 ? null : Object.fromEntries(changed);
}

/** The change of a field. A host may be named as what every object has, such as `constructor`. */
const changeOf = (changed: Readonly<Record<string, Patch>>, key: string): Patch | null =>
  Object.hasOwn(changed, key) ? (changed[key] ?? null) : null;

/** The value that a patch was made of. What did not change is shared with the value before. */
export function patched(before: unknown, patch: Patch | null): unknown {
  if (patch === null) return before;
  const [kind, value] = patch;
  if (kind === '=') return value;
  if (kind === 'a') {
    const list = [...(before as unknown[])];
    for (const [i, one] of Object.entries(value)) list[Number(i)] = patched(list[Number(i)], one);
    return list;
  }
  const fields = Object.entries(before as Record<string, unknown>);
  if (kind === 'o') return Object.fromEntries(fields.map(([key, one]) => [key, patched(one, changeOf(value, key))]));
  if (kind === 'v') return Object.fromEntries(fields.map(([key], i) => [key, value[i]]));
  const differences = [...differencesIn(patch[2])];
  return Object.fromEntries(fields.map(([key, one], i) => [key, plus(one as number, differences[i] ?? 0, value)]));
}
