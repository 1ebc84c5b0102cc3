/** Whether a proposed plan waits for a person. Pure. */

/** Until its time is over, the last moment included: then no answer counts, although the log may say so only later. */
export const stillWaits = ({ expiresAt }, nowMs) => expiresAt != null && nowMs <= Date.parse(expiresAt);

/** The same of a plan that may be released or over, or of which nothing is known (null). */
export const waitsForPerson = (plan, nowMs) => plan?.state === 'proposed' && stillWaits(plan, nowMs);
