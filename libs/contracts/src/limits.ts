/**
 * Constants of every reader and of the fold. No option exceeds them, so that the state is the same on every machine and
 * what it forgets can never matter again.
 */

/** Arrays and objects inside one another in a message or a stored body. */
export const MAX_DEPTH = 64;
/** Values (elements and fields, nested ones included) of one message: bounds the time that its validation takes. */
export const MAX_MESSAGE_VALUES = 150_000;

/** The time in a body counts only as far as it is within this of the server's timestamp. */
export const MAX_TIME_DIFFERENCE_MS = 60_000;

/** Time that a snapshot or a decision may take beyond its interval. */
export const INTERVAL_GRACE_MS = 2000;

/** The longest cooldown, of an aggregate and of a VM. */
export const MAX_COOLDOWN_SECONDS = 7 * 86_400;
/** An instance cooldown that grows by `adaptive_cooldown_factor` grows no further than this; moves within it make it grow. */
export const MAX_GROWN_COOLDOWN_SECONDS = 86_400;
/** The longest quarantine after a failure that ends by itself. */
export const MAX_QUARANTINE_SECONDS = 7 * 86_400;
/** The longest window and the longest duration of the host breaker. */
export const MAX_BREAKER_SECONDS = 7 * 86_400;

/** Longest delay of the next attempt after a failed one. */
export const MAX_RETRY_WAIT_SECONDS = 3_600;

/** The longest time for which the checks of a move between cells must pass. */
export const MAX_VERIFY_SECONDS = 86_400;
/** Steps of one plan that an operator asked for: the event holds them all. */
export const MAX_PROPOSED_STEPS = 200;
/** The longest time for which a plan that an operator asked for waits for approval, and for which its released tasks may start. */
export const MAX_PROPOSAL_SECONDS = 7 * 86_400;

/** Points of a day in the history of a snapshot. */
export const MAX_FORECAST_POINTS = 13;
/** Values in the history of a snapshot: older days are left out of a larger one. About 7 bytes each. */
export const MAX_FORECAST_VALUES = 200_000;
