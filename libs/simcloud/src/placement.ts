/** Placement: who holds what of which host. */
import type { Flavor, Host, Resources, Server } from './model.ts';
import { pinnedCpus } from './numa.ts';
import type { CloudState } from './state.ts';

export function allocate(s: CloudState, consumer: string, host: Host, resources: Resources): void {
  deallocate(s, consumer);
  s.allocations.set(consumer, { host: host.name, resources });
  host.consumers.set(consumer, resources);
  host.used = plus(host.used, resources, 1);
  host.generation++;
}

export function deallocate(s: CloudState, consumer: string): void {
  const allocation = s.allocations.get(consumer);
  if (allocation === undefined) return;
  s.allocations.delete(consumer);
  const host = s.hosts.get(allocation.host);
  if (host === undefined) return;
  host.consumers.delete(consumer);
  host.used = plus(host.used, allocation.resources, -1);
  host.generation++;
}

/** DELETE /allocations/{consumer}: false when it holds nothing. */
export function dropAllocation(s: CloudState, consumer: string): boolean {
  const held = s.allocations.has(consumer);
  deallocate(s, consumer);
  return held;
}

/** Whether the host's resource provider could take this much more. */
export function hostHasRoom(host: Host, wanted: Resources): boolean {
  // PCPU is never overcommitted.
  const { pcpus = 0 } = wanted;
  if (pcpus > 0 && (host.used.pcpus ?? 0) + pcpus > (host.total.pcpus ?? 0)) return false;
  return (['vcpus', 'memoryMb', 'diskGb'] as const).every(
    (key) =>
      wanted[key] === 0 || (wanted[key] <= host.total[key] && host.used[key] + wanted[key] <= capacity(host, key)),
  );
}

export const serverClaim = (server: Server, wanted: Flavor = server.flavor): Resources => flavorClaim(wanted, server);

/** The claim of a server of this flavor; one without an image boots from a volume. */
export function flavorClaim(flavor: Flavor, { imageId }: Pick<Server, 'imageId'>): Resources {
  const pcpus = pinnedCpus(flavor);
  return {
    vcpus: pcpus > 0 ? 0 : flavor.vcpus,
    memoryMb: flavor.memoryMb,
    diskGb: imageId === null ? 0 : flavor.diskGb,
    ...(pcpus > 0 ? { pcpus } : {}),
  };
}

/** Amounts that may be overcommitted. */
export type Amount = 'vcpus' | 'memoryMb' | 'diskGb';

/** (total - reserved) x allocation_ratio, as Placement computes it. */
export function capacity(host: Host, key: Amount): number {
  return Math.floor((host.total[key] - host.reserved[key]) * host.ratio[key]);
}

/** Nova's RAM weigher: most free memory first. */
export const byFreeMemory = (a: Host, b: Host): number =>
  capacity(b, 'memoryMb') - b.used.memoryMb - (capacity(a, 'memoryMb') - a.used.memoryMb);

function plus(a: Resources, b: Resources, sign: 1 | -1): Resources {
  return {
    vcpus: a.vcpus + sign * b.vcpus,
    memoryMb: a.memoryMb + sign * b.memoryMb,
    diskGb: a.diskGb + sign * b.diskGb,
    pcpus: (a.pcpus ?? 0) + sign * (b.pcpus ?? 0),
  };
}
