import type { GroupPolicy, Snapshot } from '@kronos/contracts';

/** Number of times that a placement breaks the rules of server groups. */
export type RuleBreaks = Readonly<Record<GroupPolicy, number>>;

/**
 * Counts broken rules of server groups, over the members that are in the aggregate: for the two anti-affinity policies
 * every member beyond the group's maximum on a host, for the two affinity policies every host beyond the first.
 */
export function ruleBreaks(snapshot: Pick<Snapshot, 'servers' | 'serverGroups'>): RuleBreaks {
  const hostOf = new Map(snapshot.servers.map((server) => [server.id, server.host]));
  const breaks = { affinity: 0, 'anti-affinity': 0, 'soft-affinity': 0, 'soft-anti-affinity': 0 };
  for (const { policy, maxServerPerHost, members } of snapshot.serverGroups) {
    const onHost = new Map<string, number>();
    for (const id of new Set(members)) {
      const host = hostOf.get(id);
      if (host !== undefined) onHost.set(host, (onHost.get(host) ?? 0) + 1);
    }
    if (policy === 'affinity' || policy === 'soft-affinity') breaks[policy] += Math.max(0, onHost.size - 1);
    else for (const here of onHost.values()) breaks[policy] += Math.max(0, here - maxServerPerHost);
  }
  return breaks;
}

/** Both hard and soft rules. */
export const allBreaks = (breaks: RuleBreaks): number => Object.values(breaks).reduce((sum, n) => sum + n, 0);
