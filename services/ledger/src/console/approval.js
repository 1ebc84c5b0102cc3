/** Whether a proposed plan waits for a person. Pure. */

/** It waits until `expiresAt`, inclusive: after that no answer counts, although the log may record the end later. */
export const stillWaits = ({ expiresAt }, nowMs) => expiresAt != null && nowMs <= Date.parse(expiresAt);

/** The same for a plan in any state; null: nothing is known of the plan. */
export const waitsForPerson = (plan, nowMs) => plan?.state === 'proposed' && stillWaits(plan, nowMs);
