import type { Snapshot } from '@kronos/contracts';
import { type HostPreview, previewDrain } from '@kronos/placement';
import type { AggregateState } from '@kronos/projections';
import { hostActBlocked } from '@kronos/rules';
import { decideInput } from './memory.ts';

/** What a preview says about one host, with the aggregate that it is in. */
export type HostDrain = HostPreview & {
  readonly aggregate: string;
  readonly snapshotTime: string;
  /** Why nothing would be done if a drain was asked for; null: nothing blocks it. */
  readonly blockedBy: string | null;
};

export type DrainInput = {
  readonly snapshot: Snapshot;
  readonly state: AggregateState;
  readonly hosts: readonly string[];
};

/** What would happen if these hosts were drained now, by a snapshot. Hosts that the snapshot does not have are left out. */
export function hostDrains({ snapshot, state, hosts: wanted }: DrainInput): HostDrain[] {
  const here = wanted.filter((name) => snapshot.hosts.some((host) => host.name === name));
  if (here.length === 0) return [];
  const { hosts } = previewDrain(decideInput(state, snapshot), here);
  // Without access to the executor's own dry_run, which its log states.
  const blockedBy = hostActBlocked(state, 'disable', false);
  return hosts.map((host) => ({ aggregate: snapshot.aggregate, snapshotTime: snapshot.time, ...host, blockedBy }));
}
