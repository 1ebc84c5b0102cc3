import { some } from '@kronos/contracts';
import { groupIsWhole } from '@kronos/facts';

/**
 * The placed members of a hard server group around which its rule does not hold; of a soft group none.
 *
 * @param most the most members that an anti-affinity group allows on one host
 */
function membersAgainstRule<P extends { readonly host: string }>(
  { policy, most }: { readonly policy: string; readonly most: number },
  placed: readonly P[],
): P[] {
  if (policy !== 'affinity' && policy !== 'anti-affinity') return [];
  return placed.filter((one) => {
    const others = placed.filter((other) => other !== one).map(({ host }) => ({ hosts: [host] }));
    return !groupIsWhole({ policy, most }, one.host, others);
  });
}

/** A hard group whose rule does not hold, with the names of the members around which it does not, by host. */
export type BrokenGroup = {
  readonly policy: string;
  readonly name: string;
  readonly members: ReadonlyMap<string, readonly string[]>;
};

/** @returns null where the rule holds */
export function brokenGroupOf(
  { policy, name, most }: { readonly policy: string; readonly name: string; readonly most: number },
  placed: readonly { readonly host: string; readonly name: string }[],
): BrokenGroup | null {
  const byHost = Map.groupBy(membersAgainstRule({ policy, most }, placed), ({ host }) => host);
  if (byHost.size === 0) return null;
  return { policy, name, members: new Map([...byHost].map(([host, on]) => [host, on.map((one) => one.name)])) };
}

/** The groups, their members and where these are, as a clause. */
export function brokenGroupsText(broken: readonly BrokenGroup[]): string {
  const texts = broken.map(({ policy, name, members }) => {
    const where = [...members].map(([host, names]) => `${some(names)} on ${host}`);
    return `${policy} group ${name} (${some(where)})`;
  });
  const what =
    broken.length === 1 ? 'the rule of a server group is' : `the rules of ${broken.length} server groups are`;
  return `${what} broken: ${some(texts)}`;
}
