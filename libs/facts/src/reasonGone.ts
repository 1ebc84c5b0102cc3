/** Whether the reason of a step of a plan is gone. The planner withdraws such a plan while it waits; the executor does not start such a step. */

/** An evacuation empties a host that is disabled: once the host is enabled, its servers stay. */
export const evacuationIsOver = (source: { readonly status: string }): boolean => source.status === 'enabled';

/**
 * Whether the rule of a group holds around one of its members, so that nothing is to be repaired by moving it. Of an unknown policy nothing is known.
 *
 * @param group with the most members that its rule allows on one host
 * @param others the placed members besides it, by the hosts on which each counts
 */
export function groupIsWhole(
  group: { readonly policy: string; readonly most: number },
  host: string,
  others: readonly { readonly hosts: readonly string[] }[],
): boolean {
  const beside = others.filter(({ hosts }) => hosts.includes(host)).length;
  switch (group.policy) {
    case 'anti-affinity':
    case 'soft-anti-affinity':
      return beside < group.most;
    case 'affinity':
    case 'soft-affinity':
      return beside === others.length;
    default:
      return false;
  }
}
