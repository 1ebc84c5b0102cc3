/** Other options for a recorded moment: what can be changed, the decision's input with it, and what is different then. Pure. */

/** Fields of each policy: name, label, step, least, most. */
export const POLICY_FIELDS = [
  ['threshold', 'Threshold', 0.01, 0, null],
  ['weight', 'Weight', 0.05, 0, 1],
  ['maxMigrationsPerCycle', 'Moves of a plan, at most', 1, 0, null],
];
/** Numbers among the planner's options. */
export const NUMBERS = [
  ['minGain', 'Least gain of a move', 0.001, 0, null],
  ['targetRatio', 'Target ÷ threshold', 0.05, 0.05, 1],
  ['instanceCooldownSeconds', 'A moved VM rests, in s', 60, 0, null],
];
export const SWITCHES = [
  ['evacuateDisabledHosts', 'Empty disabled hosts'],
  ['allowParking', 'Let a VM wait on a third host'],
  ['enforceHardAffinity', 'Repair broken group rules'],
  ['enforceSoftAffinity', 'Repair broken soft group rules'],
  ['restrictToAz', 'Stay in the availability zone'],
];

const numberIn = (text, [, , , least, most]) => {
  const value = text === null || text.trim() === '' ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= least && (most === null || value <= most) ? value : undefined;
};

/**
 * The changes in an address: only values that are possible and differ from the input.
 *
 * @param gated the recorded decision was blocked: then a plan is asked for in spite of it
 */
export function changesIn(query, { snapshot, options }, gated) {
  const policies = {};
  for (const policy of snapshot.policies) {
    const own = {};
    for (const field of POLICY_FIELDS) {
      const value = numberIn(query.get(`policy.${policy.name}.${field[0]}`), field);
      if (value !== undefined && value !== policy[field[0]]) own[field[0]] = value;
    }
    if (Object.keys(own).length > 0) policies[policy.name] = own;
  }
  const changed = {};
  for (const field of NUMBERS) {
    const value = numberIn(query.get(`option.${field[0]}`), field);
    if (value !== undefined && value !== options[field[0]]) changed[field[0]] = value;
  }
  for (const [name] of SWITCHES) {
    const given = query.get(`option.${name}`);
    if (given !== null && (given === 'true') !== options[name]) changed[name] = given === 'true';
  }
  return { policies, options: changed, anyway: (query.get('anyway') ?? String(gated)) === 'true' };
}

export const changesNothing = ({ policies, options }) =>
  Object.keys(policies).length === 0 && Object.keys(options).length === 0;

/**
 * The input of the decision with the changes. A changed threshold counts as if it had been so for long enough. `anyway`: without what holds
 * every plan back (a pause, cooldowns of the aggregate, a plan that waits). Without a change it is the input itself.
 */
export function changedInput({ snapshot, memory, options }, { policies, options: changed, anyway }, score) {
  const others = { ...options, ...changed };
  const free = {
    paused: null,
    lastRelease: null,
    lastRefusal: null,
    waitingPlan: null,
    lastMoveEndMs: null,
  };
  const judged = snapshot.policies.map((policy) => {
    const merged = { ...policy, ...policies[policy.name] };
    return merged.target > merged.threshold ? { ...merged, target: merged.threshold } : merged;
  });
  const sustained = Object.fromEntries(
    judged
      .filter(({ name }) => policies[name]?.threshold !== undefined || anyway)
      .map(({ name, minSustainedCycles }) => [name, Math.max(memory.sustained[name] ?? 0, minSustainedCycles)]),
  );
  const laid = Object.keys(policies).length === 0 ? snapshot : { ...snapshot, policies: judged };
  return {
    snapshot: laid === snapshot ? snapshot : { ...laid, scores: score({ ...laid, options: others }) },
    memory: { ...memory, ...(anyway ? free : {}), sustained: { ...memory.sustained, ...sustained } },
    options: others,
  };
}

const gibOf = (steps) => Math.round(steps.reduce((sum, { ramMb }) => sum + ramMb, 0) / 1024);
const moves = (n) => `${n} move${n === 1 ? '' : 's'}`;
const times = (ratio) => (ratio === null ? 'unknown' : `${ratio.toFixed(2)}×`);

/**
 * One sentence: what the changed options do that those in force do not.
 *
 * @param is,would the steps, and the ratio after them by the thresholds in force; `reason`: why there is no plan
 */
export function verdict(is, would) {
  if (would.steps.length === 0)
    return is.steps.length === 0
      ? `No plan, as now: ${would.reason}.`
      : `No plan in place of ${moves(is.steps.length)}: ${would.reason}. ${times(would.ratio)} of the threshold stays.`;
  const size = `${moves(would.steps.length)}, ${gibOf(would.steps)} GiB`;
  if (is.steps.length === 0)
    return `${size}, where there is no plan now: ${times(is.ratio)} of the threshold becomes ${times(would.ratio)}.`;
  const alike = is.steps.length === would.steps.length && gibOf(is.steps) === gibOf(would.steps);
  if (alike && times(is.ratio) === times(would.ratio))
    return `${size} and ${times(would.ratio)} of the threshold at the end, as with the options in force.`;
  if (alike)
    return `${size}, as with the options in force; ${times(would.ratio)} of the threshold at the end in place of ${times(is.ratio)}.`;
  const work = `${size} in place of ${moves(is.steps.length)}, ${gibOf(is.steps)} GiB`;
  if (is.ratio === null || would.ratio === null) return `${work}.`;
  const [less, better] = [gibOf(would.steps) - gibOf(is.steps), would.ratio - is.ratio];
  if (Math.abs(better) < 0.005) return `${work}; the balance is the same, ${times(would.ratio)} of the threshold.`;
  const trade = less === 0 || less > 0 === better > 0 ? 'and' : 'but';
  return `${work}, ${trade} ${times(would.ratio)} of the threshold at the end in place of ${times(is.ratio)}: ${better < 0 ? 'better' : 'worse'} balanced.`;
}
