/** JSON as its difference to another JSON: the snapshots of an aggregate differ in little. Pure. */

/** `=`: whole. `o`: an object with the same keys in the same order, changed fields alone. `a`: a list of the same length, likewise. */
export type Patch =
  | readonly ['=', unknown]
  | readonly ['o', Readonly<Record<string, Patch>>]
  | readonly ['a', Readonly<Record<number, Patch>>];

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Null: they are the same, the order of the keys included. */
export function patchOf(before: unknown, after: unknown): Patch | null {
  if (Object.is(before, after)) return null;
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    const changed: Record<number, Patch> = {};
    let any = false;
    for (let i = 0; i < after.length; i++) {
      const patch = patchOf(before[i], after[i]);
      if (patch === null) continue;
      changed[i] = patch;
      any = true;
    }
    return any ? ['a', changed] : null;
  }
  if (isObject(before) && isObject(after)) {
    const keys = Object.keys(after);
    const former = Object.keys(before);
    if (keys.length !== former.length || keys.some((key, i) => key !== former[i])) return ['=', after];
    const changed: Record<string, Patch> = {};
    let any = false;
    for (const key of keys) {
      const patch = patchOf(before[key], after[key]);
      if (patch === null) continue;
      changed[key] = patch;
      any = true;
    }
    return any ? ['o', changed] : null;
  }
  return ['=', after];
}

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
  const object = before as Record<string, unknown>;
  return Object.fromEntries(Object.entries(object).map(([key, one]) => [key, patched(one, value[key] ?? null)]));
}
