/** Which aggregates of a cloud can be balanced together. Pure. */
import { byText, count } from '@kronos/contracts';

export type AggregateHosts = { readonly name: string; readonly hosts: readonly string[] };

export type ProposedScope = {
  readonly aggregates: readonly string[];
  /** Whether at least two hosts belong to no aggregate. */
  readonly includeUnassigned: boolean;
  /** Aggregates that are left out, and why. */
  readonly left: readonly { readonly name: string; readonly why: string }[];
};

/**
 * A host may be in one configured aggregate only, so of aggregates that share a host the largest is taken. Aggregates with fewer
 * than two hosts have nothing to even out.
 *
 * @param hosts service hosts that count (hypervisor type)
 */
export function proposeScope(aggregates: readonly AggregateHosts[], hosts: ReadonlySet<string>): ProposedScope {
  const counted = aggregates
    .map(({ name, hosts: members }) => ({ name, hosts: members.filter((host) => hosts.has(host)) }))
    .sort((a, b) => b.hosts.length - a.hosts.length || byText(a.name, b.name));
  const owner = new Map<string, string>();
  const taken: string[] = [];
  const left: { name: string; why: string }[] = [];
  for (const { name, hosts: members } of counted) {
    const shared = members.find((host) => owner.has(host));
    if (members.length < 2) left.push({ name, why: `${count(members.length, 'host')}: a move needs two` });
    else if (shared !== undefined) left.push({ name, why: `shares ${shared} with ${owner.get(shared)}` });
    else {
      taken.push(name);
      for (const host of members) owner.set(host, name);
    }
  }
  const assigned = new Set(aggregates.flatMap((aggregate) => aggregate.hosts));
  const unassigned = [...hosts].filter((host) => !assigned.has(host));
  return { aggregates: taken.sort(), includeUnassigned: unassigned.length >= 2, left };
}
