import { type Snapshot, some } from '@kronos/contracts';
import { cpuFits, cpuTraits } from '@kronos/facts';

/** Hosts whose CPUs are alike, and their VMs. */
export type Generation = {
  /** Traits that not every host has, sorted; null: unknown. */
  readonly traits: readonly string[] | null;
  readonly hosts: readonly string[];
  readonly servers: number;
  /** Other hosts to which these VMs may not move because of the CPUs. */
  readonly closed: number;
};

/** The generations of CPUs in an aggregate; empty where there is but one. Those that other hosts can replace least come first. */
export function generationsOf({ hosts, servers }: Pick<Snapshot, 'hosts' | 'servers'>): Generation[] {
  const kinds = Map.groupBy(hosts, ({ traits }) => (traits === null ? '' : cpuTraits(traits).join()));
  if (kinds.size <= 1) return [];
  const known = hosts.flatMap(({ traits }) => (traits === null ? [] : [cpuTraits(traits)]));
  return [...kinds.values()]
    .map((of): Generation => {
      const traits = of[0]?.traits ?? null;
      const names = of.map(({ name }) => name).sort();
      return {
        traits: traits === null ? null : cpuTraits(traits).filter((one) => !known.every((all) => all.includes(one))),
        hosts: names,
        servers: servers.filter(({ host }) => names.includes(host)).length,
        closed: hosts.filter((other) => !names.includes(other.name) && !cpuFits(traits, other.traits)).length,
      };
    })
    .sort((a, b) => b.closed - a.closed || b.servers - a.servers);
}

/** Which VMs are caught on a generation, in words. */
export function generationText({ traits, hosts, servers, closed }: Generation): string {
  const what = traits === null ? 'unknown CPU traits' : `CPU traits that others lack (${some(traits)})`;
  return `${some(hosts)}: ${what}; ${servers} VMs on them may not move to ${closed} other hosts (cpu-traits)`;
}
