/** The rules of server groups, around one member. Of an unknown policy nothing is known. */

interface Group {
  /** Nova's word. */
  readonly policy: string;
  /** The most members that the rule allows on one host. */
  readonly most: number;
}

/** Another member that is placed, by the hosts on which it counts: where it is, and where it is going. */
interface Placed {
  readonly hosts: readonly string[];
}

const on = (host: string, others: readonly Placed[]): number =>
  others.filter(({ hosts }) => hosts.includes(host)).length;

/** Whether the rule holds around a member on a host, so that nothing is to be repaired by moving it. */
export function groupIsWhole({ policy, most }: Group, host: string, others: readonly Placed[]): boolean {
  const beside = on(host, others);
  switch (policy) {
    case 'anti-affinity':
    case 'soft-anti-affinity':
      return beside < most;
    case 'affinity':
    case 'soft-affinity':
      return beside === others.length;
    default:
      return false;
  }
}

/**
 * Whether a member may move. `apart`: the destination holds as many members as it may. `together`: not all others are there.
 * `immovable`: all are on the source, and Nova finds no host for a member of such a group.
 *
 * @param others members besides the one that moves: those on the destination, all that are placed in the aggregate, and of these those
 *   on the source
 * @param gathers the move brings a member of an affinity group to some of the others, which is better than before
 */
export function groupVerdict(
  { policy, most }: Group,
  { there, placed, onSource }: { readonly there: number; readonly placed: number; readonly onSource: number },
  { gathers }: { readonly gathers: boolean },
): 'allowed' | 'apart' | 'together' | 'immovable' | 'unknown' {
  const together = gathers ? there > 0 : there === placed;
  switch (policy) {
    case 'anti-affinity':
    case 'soft-anti-affinity':
      return there < most ? 'allowed' : 'apart';
    case 'affinity':
      if (onSource === placed) return 'immovable';
      return together && there > 0 ? 'allowed' : 'together';
    case 'soft-affinity':
      return together ? 'allowed' : 'together';
    default:
      return 'unknown';
  }
}
