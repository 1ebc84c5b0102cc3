/** The decisions of a backtest that were made already: an interrupted run, however it ended, does not search them again. */
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { canonicalJson, type Decision, type EngineOptions } from '@kronos/contracts';
import { plannerVersion } from '@kronos/placement';
import type { Parameters } from './sources.ts';

/** Beside the recording, which is whole without it. */
const fileOf = (directory: string): string => `${directory}.planned.jsonl`;

export type Planned = {
  /** The decision on a snapshot; undefined: it was not made yet. */
  readonly decision: (snapshotId: string) => Decision | undefined;
  readonly add: (snapshotId: string, decision: Decision) => void;
  /** Drops them all: the backtest has ended. */
  readonly forget: () => void;
  /** How many there were at the start. */
  readonly count: number;
};

/** Identifies the input of the decisions, apart from the sources. Decisions of another input are not used again. */
const keyOf = (parameters: Parameters, defaults: EngineOptions): string =>
  createHash('sha256').update(canonicalJson({ parameters, defaults, plannerVersion })).digest('hex');

/** The decisions of the backtest in a directory. A line that was not written to its end is dropped. */
export function openPlanned(directory: string, parameters: Parameters, defaults: EngineOptions): Planned {
  const path = fileOf(directory);
  const head = JSON.stringify({ key: keyOf(parameters, defaults) });
  const known = new Map<string, string>();
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const [first, ...lines] = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
  if (first === head) {
    truncateSync(path, Buffer.byteLength(text.slice(0, text.lastIndexOf('\n') + 1)));
    for (const line of lines) {
      if (line === '') continue;
      const { id, decision } = JSON.parse(line) as { readonly id: string; readonly decision: string };
      known.set(id, decision);
    }
  } else writeFileSync(path, `${head}\n`);
  return {
    count: known.size,
    forget: () => rmSync(path),
    decision(id) {
      const packed = known.get(id);
      return packed === undefined
        ? undefined
        : (JSON.parse(inflateRawSync(Buffer.from(packed, 'base64')).toString('utf8')) as Decision);
    },
    add(id, decision) {
      if (known.has(id)) return;
      const packed = deflateRawSync(JSON.stringify(decision)).toString('base64');
      known.set(id, packed);
      appendFileSync(path, `${JSON.stringify({ id, decision: packed })}\n`);
    },
  };
}
