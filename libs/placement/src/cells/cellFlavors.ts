import type { CellFlavor, CellsAsked, HostObservation, ServerObservation } from '@kronos/contracts';
import { traitsFit, traitsOf } from '@kronos/facts';
import { type Ground, own } from '../snapshot/unmovable.ts';

/** A host and the metadata of the Nova aggregates that it is in. */
export type FlavorHost = {
  readonly host: HostObservation;
  readonly metadata: Readonly<Record<string, string>>;
};

const AGGREGATE = 'aggregate_instance_extra_specs:';

/** The claim of a server after a resize, by resource class. */
export function claimOf(
  flavor: CellFlavor,
  { bootFromVolume }: Pick<ServerObservation, 'bootFromVolume'>,
): Readonly<Record<string, number>> {
  const dedicated = flavor.extraSpecs['hw:cpu_policy'] === 'dedicated';
  const claim: Record<string, number> = { [dedicated ? 'PCPU' : 'VCPU']: flavor.vcpus, MEMORY_MB: flavor.ramMb };
  if (!bootFromVolume && flavor.diskGb > 0) claim.DISK_GB = flavor.diskGb;
  for (const [key, value] of Object.entries(flavor.extraSpecs)) {
    const name = /^resources\d*:(.+)$/.exec(key)?.[1];
    if (name === undefined) continue;
    if (Number(value) > 0) claim[name] = Number(value);
    else delete claim[name];
  }
  return claim;
}

/**
 * The flavor that the map gives a server: null when it keeps its own, a reason when it cannot have that flavor. `others`: hosts
 * outside the target. A resize names no host, so none of these may take the flavor.
 */
export function newFlavorOf(
  server: ServerObservation,
  map: CellsAsked['flavorMap'],
  flavors: Readonly<Record<string, CellFlavor>>,
  others: readonly FlavorHost[],
): CellFlavor | Ground | null {
  const wanted = server.flavor === null ? undefined : own(map, server.flavor);
  if (wanted === undefined) return null;
  if (wanted === server.flavor) return { code: 'flavor-same', detail: { flavor: wanted } };
  const flavor = own(flavors, wanted);
  if (flavor === undefined) return { code: 'flavor-unknown', detail: { flavor: wanted } };
  if (!server.bootFromVolume && flavor.diskGb < server.diskGb)
    return { code: 'flavor-disk', detail: { flavor: wanted, diskGb: flavor.diskGb, hasGb: server.diskGb } };
  const other = others.find((each) => mayTake(flavor, each));
  if (other !== undefined) return { code: 'flavor-not-confined', detail: { flavor: wanted, host: other.host.name } };
  return flavor;
}

/** Whether Nova's scheduler may place the flavor there once there is room. Unknown traits exclude nothing. */
export function mayTake(flavor: CellFlavor, { host, metadata }: FlavorHost): boolean {
  const asked = { requiredTraits: traitsOf(flavor, 'required'), forbiddenTraits: traitsOf(flavor, 'forbidden') };
  if (traitsFit(host.traits, asked) === false) return false;
  return Object.entries(flavor.extraSpecs).every(([key, value]) => {
    if (!key.startsWith(AGGREGATE)) return true;
    const has = own(metadata, key.slice(AGGREGATE.length))?.split(',') ?? [];
    return has.some((each) => each.trim() === value);
  });
}
