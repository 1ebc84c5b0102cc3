import { fileURLToPath } from 'node:url';
import { bundle } from './bundle.ts';

export { bundle, CannotBundle } from './bundle.ts';
export { type PackedSnapshot, type SnapshotBody, snapshotPacker, unpackSnapshots } from './snapshots.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
let core: string | null = null;
let times: string | null = null;

/**
 * The decision core as one ES module for a browser: what `core.ts` exports, and nothing that it imports from elsewhere. The same code
 * gives the same text. Made once in a process.
 */
export function coreScript(): string {
  core ??= bundle(fileURLToPath(new URL('core.ts', import.meta.url)), ROOT);
  return core;
}

/** Likewise the times that people type, and those of moves: what `times.ts` exports. */
export function timesScript(): string {
  times ??= bundle(fileURLToPath(new URL('times.ts', import.meta.url)), ROOT);
  return times;
}
