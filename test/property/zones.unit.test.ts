import { type ClusterFile, planCluster } from '@kronos/placement';
import { describe, expect, it } from 'vitest';
import { largeCluster } from '../bench/clusters.ts';

/** The cluster in one zone, with other names of hosts and VMs and with this share of the load. */
function zone(az: string, seed: number, load: number): ClusterFile {
  const file = largeCluster(12, 100, seed);
  const name = (id: string): string => `${az}-${id}`;
  return {
    ...file,
    hosts: file.hosts.map((host) => ({ ...host, id: name(host.id), az })),
    vms: file.vms.map((vm) => ({ ...vm, id: name(vm.id), host: name(vm.host), w: vm.w.map((w) => w * load) })),
    groups: (file.groups ?? []).map((group) => ({ ...group, id: name(group.id), vms: group.vms.map(name) })),
  };
}

/** The combined imbalance of a cluster file. */
const combinedOf = (file: ClusterFile): number => planCluster(file, { maxMigrations: 0 }).before.combined;

describe('zones of unlike load that no VM leaves', () => {
  for (const seed of [1, 2, 3])
    it(`one plan is as good as a plan for each zone (seed ${seed})`, () => {
      const [hot, cold] = [zone('hot', seed, 1), zone('cold', seed + 10, 0.4)];
      const whole: ClusterFile = {
        ...hot,
        hosts: [...hot.hosts, ...cold.hosts],
        vms: [...hot.vms, ...cold.vms],
        groups: [...(hot.groups ?? []), ...(cold.groups ?? [])],
      };
      const searchWorkLimit = 2_000_000;
      const at = new Map(
        [hot, cold].flatMap((file) =>
          planCluster(file, { maxMigrations: 10, searchWorkLimit }).moves.map((move) => [move.vm, move.to] as const),
        ),
      );
      const apart = combinedOf({ ...whole, vms: whole.vms.map((vm) => ({ ...vm, host: at.get(vm.id) ?? vm.host })) });
      const together = planCluster(whole, {
        maxMigrations: 20,
        searchWorkLimit: 3 * searchWorkLimit,
        restrictToAz: true,
      });
      expect(apart).toBeLessThan(combinedOf(whole));
      expect(together.after.combined).toBeLessThanOrEqual(apart + 1e-9);
      expect(together.moves.every((move) => move.from.split('-')[0] === move.to.split('-')[0])).toBe(true);
    });
});
