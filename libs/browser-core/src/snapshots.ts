/** The snapshots of a file of evidence: each as its difference to the one before of its aggregate. Pure. */
import type { Snapshot } from '@kronos/contracts';
import { score } from '@kronos/placement';
import { type Patch, patched, patchOf } from './patch.ts';

export type PackedSnapshot = {
  readonly id: string;
  readonly aggregate: string;
  readonly patch: Patch | null;
  /** Its scores follow from the rest, with this `balance`, and are left out. Absent: they are in the patch. */
  readonly balance?: boolean;
};

/** A snapshot as its file holds it: parsed, in the form of the version that wrote it. */
export type SnapshotBody = { readonly id: string; readonly aggregate: string; readonly body: unknown };

const scoresOf = (body: Snapshot, balance: boolean): unknown => score({ ...body, options: { balance } });

/** The `balance` with which the scores of a snapshot are what it says; undefined: with none. */
function balanceOf(body: Snapshot): boolean | undefined {
  const told = JSON.stringify(body.scores);
  try {
    return [true, false].find((balance) => JSON.stringify(scoresOf(body, balance)) === told);
  } catch {
    // The form of an older version.
    return undefined;
  }
}

/** Packs one snapshot after the other, in the order in which they are to be read. It holds the last one of each aggregate. */
export function snapshotPacker(): (snapshot: SnapshotBody) => PackedSnapshot {
  const before = new Map<string, unknown>();
  return ({ id, aggregate, body }) => {
    const balance = balanceOf(body as Snapshot);
    const kept = balance === undefined ? body : { ...(body as Snapshot), scores: null };
    const patch = patchOf(before.get(aggregate), kept);
    before.set(aggregate, kept);
    return { id, aggregate, patch, ...(balance === undefined ? {} : { balance }) };
  };
}

/** The snapshots that {@link snapshotPacker} packed, in their order. */
export function unpackSnapshots(packed: readonly PackedSnapshot[]): SnapshotBody[] {
  const before = new Map<string, unknown>();
  return packed.map(({ id, aggregate, patch, balance }) => {
    const kept = patched(before.get(aggregate), patch);
    before.set(aggregate, kept);
    const body = balance === undefined ? kept : { ...(kept as Snapshot), scores: scoresOf(kept as Snapshot, balance) };
    return { id, aggregate, body };
  });
}
