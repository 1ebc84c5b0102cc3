/**
 * Kronos remembers refusals of Nova, because its scheduler knows rules that no API shows (NUMA cells, CPU models, filters of the operator's own). A
 * destination that Nova refused for a server is not proposed for servers of this shape again while nothing about it has changed.
 *
 * A failure of the host itself, whatever the server, is no such refusal: the breaker counts it. So a refusal says nothing of a host once its
 * server was deleted before a decision has seen its shape: it closes the host for no other server, and Nova judges the next one of that shape.
 */
import { canonicalJson, DAY_MS, type HostObservation, type ServerObservation } from '@kronos/contracts';

/** Time for which a refusal is remembered, whatever happens. */
export const REFUSAL_KEPT_MS = DAY_MS;

/** Servers that Nova judges alike: what they claim, and what their flavor and image ask for. A short text. */
export const shapeOf = ({
  resources,
  extraSpecs,
  vcpus,
  ramMb,
  diskGb,
  bootFromVolume,
  imageProperties,
}: Pick<
  ServerObservation,
  'resources' | 'extraSpecs' | 'vcpus' | 'ramMb' | 'diskGb' | 'bootFromVolume' | 'imageProperties'
>): string => hashOf(canonicalJson({ resources, extraSpecs, vcpus, ramMb, diskGb, bootFromVolume, imageProperties }));

/**
 * The part of a host that a refusal may rest on: its servers, its hypervisor's version and its traits. A short text. Null: its traits could
 * not be read. A server counts where Nova lists it: the other end of its move changes only when it arrives.
 */
export const markOf = (
  { name, hypervisorVersion, traits }: Pick<HostObservation, 'name' | 'hypervisorVersion' | 'traits'>,
  servers: readonly Pick<ServerObservation, 'id' | 'host' | 'listedOn'>[],
): string | null => {
  if (traits === null) return null;
  const here = servers.flatMap(({ id, host, listedOn = host }) => (listedOn === name ? [id] : [])).sort();
  return hashOf(canonicalJson([here, hypervisorVersion, [...traits].sort()]));
};

export interface RememberedRefusal {
  readonly atMs: number;
  /** Of the destination when a decision first saw the refusal; null: none has. */
  readonly mark: string | null;
}

/** Whether a refusal still counts. @param markNow null: the destination could not be read whole, so nothing shows that it has changed */
export const refusalHolds = ({ atMs, mark }: RememberedRefusal, markNow: string | null, nowMs: number): boolean =>
  nowMs < atMs + REFUSAL_KEPT_MS && (mark === null || markNow === null || mark === markNow);

/** cyrb53: 53 bits of a text, by bryc (public domain). The pure core has no digests. */
function hashOf(text: string): string {
  let h1 = 0xdeadbeef;
  let h2 = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    h1 = Math.imul(h1 ^ code, 2654435761);
    h2 = Math.imul(h2 ^ code, 1597334677);
  }
  h1 = Math.imul(h1 ^ (h1 >>> 16), 2246822507) ^ Math.imul(h2 ^ (h2 >>> 13), 3266489909);
  h2 = Math.imul(h2 ^ (h2 >>> 16), 2246822507) ^ Math.imul(h1 ^ (h1 >>> 13), 3266489909);
  return (4294967296 * (2097151 & h2) + (h1 >>> 0)).toString(36);
}
