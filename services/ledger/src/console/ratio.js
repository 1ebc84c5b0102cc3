/** Values of hosts after moves, and imbalances as multiples of their thresholds: the one place where the console computes them. Pure. */

/** Whether a host counts in an imbalance: only hosts that can be a destination do. */
export const counts = ({ service }) => service.status === 'enabled' && service.state === 'up' && !service.forcedDown;

/** Values of every host after these steps, by name. `policy`: its index in the picture. */
export function valuesAfter(picture, steps, policy) {
  const name = picture.policies[policy].policy;
  const values = new Map(picture.hosts.map(({ name: host, values: of }) => [host, of[policy]]));
  const add = (host, by) => {
    const value = values.get(host);
    if (value !== null && value !== undefined) values.set(host, value + by);
  };
  for (const { from, to, weights } of steps) {
    add(from, -(weights[name]?.source ?? 0));
    add(to, weights[name]?.destination ?? 0);
  }
  return values;
}

/** Values of the hosts that count, the highest first; without those that are unknown. */
export const countedValues = (picture, values) =>
  picture.hosts
    .filter(counts)
    .flatMap(({ name }) => values.get(name) ?? [])
    .toSorted((a, b) => b - a);

/**
 * The imbalance of a policy as a multiple of its threshold; null: it takes no part, or has no threshold to be a multiple of. A policy that
 * sees an imbalance above its threshold and does not act on it is at most at the line: no move is wanted.
 *
 * @param imbalance another one than it sees, such as that after a plan
 */
export function ratioOf({ participates, threshold, detected, imbalance: seen }, imbalance = seen) {
  if (!participates || threshold <= 0 || imbalance === null || imbalance === undefined) return null;
  const ratio = imbalance / threshold;
  const rests = !detected && seen !== null && seen > threshold;
  return rests ? Math.min(1, ratio) : ratio;
}

/** The same of a policy at a cycle of a series; null: one of both is not known, or there is no threshold to be a multiple of. */
export function ratioAt({ imbalance, threshold }, cycle) {
  const value = imbalance[cycle] ?? null;
  return value === null || !(threshold[cycle] > 0) ? null : value / threshold[cycle];
}

/**
 * The imbalances after these steps: the worst ratio, the policies above their thresholds, and each policy's ratio.
 * The policies are judged as they are in the picture, whatever options made the steps.
 */
export function ratioAfter(picture, steps) {
  const ratios = picture.policies.map((policy, i) => {
    if (steps.length === 0) return ratioOf(policy);
    const values = countedValues(picture, valuesAfter(picture, steps, i));
    return ratioOf(policy, values.length === 0 ? null : values[0] - values.at(-1));
  });
  const known = ratios.filter((ratio) => ratio !== null);
  return {
    ratio: known.length === 0 ? null : Math.max(...known),
    ratios,
    above: picture.policies.flatMap(({ policy }, i) => (ratios[i] !== null && ratios[i] > 1 + 1e-9 ? [policy] : [])),
  };
}

/** The index of the policy with the highest ratio; 0 where none has one. `ratios`: other ones than those that the policies have. */
export const worstPolicy = (policies, ratios = policies.map((policy) => ratioOf(policy))) =>
  ratios.reduce((best, ratio, i) => ((ratio ?? -1) > (ratios[best] ?? -1) ? i : best), 0);

/** The policy with the highest ratio, and that ratio; null where none has one. `ratios` as for {@link worstPolicy}. */
export function worstOf(policies, ratios = policies.map((policy) => ratioOf(policy))) {
  const worst = worstPolicy(policies, ratios);
  return ratios[worst] == null ? null : { policy: policies[worst].policy, ratio: ratios[worst] };
}

/** The same as a text: `cpu 2.30×`. */
export function worstText(policies, ratios) {
  const worst = worstOf(policies, ratios);
  return worst === null ? '' : `${worst.policy} ${worst.ratio.toFixed(2)}×`;
}
