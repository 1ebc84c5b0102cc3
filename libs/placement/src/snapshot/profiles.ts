import { type ServerObservation, type VmReading, vmQueryOf, vmReadingOf } from '@kronos/contracts';
import type { JudgedPolicy } from './scoring.ts';

/**
 * The contribution of each server to its host's value under one policy, as a share of that host, in the order of `servers`. Null when
 * nothing is known and the policy's fallback is `skip`. A failed query counts as no samples. A sample below 0 or above 1 is not a share
 * and counts as missing.
 */
export function profile(
  judged: JudgedPolicy,
  servers: readonly ServerObservation[],
  readings: readonly VmReading[],
): (number | null)[] {
  const { policy, values } = judged;
  const reading = vmReadingOf(readings, vmQueryOf(policy, 'vm_profile'));
  const usable = reading !== undefined && reading.health !== 'UNREACHABLE' && reading.health !== 'ERROR';
  const samples = usable ? reading.values : {};
  const vcpus = new Map<string, number>();
  const count = new Map<string, number>();
  for (const server of servers) {
    vcpus.set(server.host, (vcpus.get(server.host) ?? 0) + server.vcpus);
    count.set(server.host, (count.get(server.host) ?? 0) + 1);
  }
  return servers.map((server) => {
    const sample = Object.hasOwn(samples, server.id) ? samples[server.id] : undefined;
    if (sample !== undefined && sample >= 0 && sample <= 1) return sample;
    const host = values.get(server.host);
    if (policy.vmProfileFallback === 'skip' || host === undefined) return null;
    const all = vcpus.get(server.host) ?? 0;
    if (policy.vmProfileFallback === 'flavor_vcpu_ratio' && all > 0) return (host * server.vcpus) / all;
    return host / (count.get(server.host) ?? 1);
  });
}
