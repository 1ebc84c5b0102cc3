/** Placement: who holds what of which host. */
import type { Host, Resources, Server } from './model.ts';
import type { CloudState } from './state.ts';

export function allocate(s: CloudState, consumer: string, host: Host, resources: Resources): void {
  release(s, consumer);
  s.allocations.set(consumer, { host: host.name, resources });
  host.consumers.set(consumer, resources);
  host.used = plus(host.used, resources, 1);
  host.generation++;
}

export function release(s: CloudState, consumer: string): void {
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
  release(s, consumer);
  return held;
}

/** Whether the host's resource provider could take this much more. */
export function fits(host: Host, wanted: Resources): boolean {
  return (['vcpus', 'memoryMb', 'diskGb'] as const).every(
    (key) =>
      wanted[key] === 0 || (wanted[key] <= host.total[key] && host.used[key] + wanted[key] <= capacity(host, key)),
  );
}

export function resourcesOf(server: Server, flavor: Resources = server.flavor): Resources {
  const disk = server.imageId === null ? 0 : flavor.diskGb;
  return { vcpus: flavor.vcpus, memoryMb: flavor.memoryMb, diskGb: disk };
}

/** (total - reserved) x allocation_ratio, as Placement computes it. */
export function capacity(host: Host, key: keyof Resources): number {
  return Math.floor((host.total[key] - host.reserved[key]) * host.ratio[key]);
}

function plus(a: Resources, b: Resources, sign: 1 | -1): Resources {
  return {
    vcpus: a.vcpus + sign * b.vcpus,
    memoryMb: a.memoryMb + sign * b.memoryMb,
    diskGb: a.diskGb + sign * b.diskGb,
  };
}
