import { globSync, readdirSync, readFileSync } from 'node:fs';
import { messagesByFamily } from '../src/messages.ts';

/** Recorded events and changed ones, for the tests of this library. */

const types = new Set<string>(
  Object.values(messagesByFamily)
    .flat()
    .map((schema) => schema.shape.type.value),
);

/** Every event of the recorded histories. */
const histories = new URL('../../../test/histories/', import.meta.url);
export const recorded = readdirSync(histories, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .flatMap(({ name }) =>
    readFileSync(new URL(`${name}/log.jsonl`, histories), 'utf8')
      .trim()
      .split('\n'),
  )
  .map((line) => (JSON.parse(line) as { event: { type: string } }).event)
  .filter(({ type }) => types.has(type));

/** Every snapshot of the recorded histories. */
export const recordedSnapshots = globSync('*/snapshots/*/*.json', { cwd: histories }).map((file): unknown =>
  JSON.parse(readFileSync(new URL(file, histories), 'utf8')),
);

type Path = readonly (string | number)[];
function paths(value: unknown, at: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([key, inner]) => paths(inner, [...at, key]))];
}

/** The event with one place changed, left out, or with a field more. */
export function changed(event: object, place: number, change: 'set' | 'delete' | 'add', to: unknown): unknown {
  const copy: unknown = structuredClone(event);
  const all = paths(copy).slice(1);
  const path = all[place % all.length] ?? [];
  const parent = path.slice(0, -1).reduce((at, key) => (at as Record<string, unknown>)[key], copy) as object;
  const key = path.at(-1) ?? '';
  if (change === 'delete') Reflect.deleteProperty(parent, key);
  else Reflect.set(parent, change === 'add' ? 'unheardOf' : key, to);
  return JSON.parse(JSON.stringify(copy));
}
