import type { Sketch } from '@kronos/placement/testing';
import { random as seeded } from '@kronos/projections/testing';

/** A disabled host whose VMs just fit on the others, or just do not: in some of the draws one of them breaks a soft rule. */
export function drawnEvacuation(seed: number): Sketch {
  const random = seeded(seed * 7919 + 1);
  const below = (n: number): number => Math.floor(random() * n);
  const hostCount = 3 + below(2);
  const vmCount = 3 + below(3);
  const isSoft = below(2) === 0;
  const vms: Record<string, Sketch['vms'][string]> = {};
  for (let v = 0; v < vmCount; v++)
    vms[`v${v}`] = {
      host: 'h0',
      w: { p: 0.01 * (1 + below(4)) },
      ramMb: 1024 * (1 + below(6)),
      vcpus: 1 + below(4),
    };
  if (isSoft) vms.o = { host: 'h1', w: { p: 0.01 }, ramMb: 1024, vcpus: 1 };
  const hosts: Record<string, Sketch['hosts'][string]> = { h0: { disabled: true } };
  for (let h = 1; h < hostCount; h++)
    hosts[`h${h}`] = { free: { MEMORY_MB: 1024 * (1 + below(8)), VCPU: 1 + below(8) } };
  return {
    policies: { p: { threshold: 0.9 } },
    hosts,
    vms,
    ...(isSoft ? { groups: { g: { policy: 'soft-anti-affinity', members: ['o', 'v0'] } } } : {}),
    options: { evacuateDisabledHosts: true, softRules: 'penalty' },
  };
}
