import { isRecord } from '@kronos/contracts';

/** One place where two JSON values differ. `undefined` where the value is only in the other. */
export type Difference = { readonly path: string; readonly recorded: unknown; readonly replayed: unknown };

/** Where two JSON values differ, in the order of the first's fields; at most `limit` places. */
export function differences(recorded: unknown, replayed: unknown, limit = 20): Difference[] {
  const found: Difference[] = [];
  const visit = (a: unknown, b: unknown, path: string): void => {
    if (found.length >= limit || a === b) return;
    if (Array.isArray(a) && Array.isArray(b)) {
      for (let i = 0; i < Math.max(a.length, b.length); i++) visit(a[i], b[i], `${path}[${i}]`);
      return;
    }
    if (isRecord(a) && isRecord(b)) {
      for (const key of new Set([...Object.keys(a), ...Object.keys(b)]))
        visit(a[key], b[key], path === '' ? key : `${path}.${key}`);
      return;
    }
    found.push({ path, recorded: a, replayed: b });
  };
  visit(recorded, replayed, '');
  return found;
}
