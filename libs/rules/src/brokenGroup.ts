import { groupIsWhole } from '@kronos/facts';

/**
 * The placed members of a hard server group around which its rule does not hold; of a soft group none.
 *
 * @param most the most members that an anti-affinity group allows on one host
 */
export function membersAgainstRule<P extends { readonly host: string }>(
  { policy, most }: { readonly policy: string; readonly most: number },
  placed: readonly P[],
): P[] {
  if (policy !== 'affinity' && policy !== 'anti-affinity') return [];
  return placed.filter((one) => {
    const others = placed.filter((other) => other !== one).map(({ host }) => ({ hosts: [host] }));
    return !groupIsWhole({ policy, most }, one.host, others);
  });
}
