/** How often and how long to wait between the attempts of an idempotent call. */
export interface RetryPolicy {
  /** Further attempts after the first; 0 means none. */
  readonly maxRetries: number;
  /** Upper bound of the first wait; doubles with each further one. */
  readonly backoffMs: number;
  /** No computed wait is longer than this. */
  readonly backoffMaxMs: number;
  /** A `Retry-After` longer than this is cut to it. */
  readonly retryAfterMaxMs: number;
}

export const DEFAULT_RETRY: RetryPolicy = {
  maxRetries: 3,
  backoffMs: 500,
  backoffMaxMs: 10_000,
  retryAfterMaxMs: 30_000,
};

/** Statuses that another attempt may cure. 500 is among them: Nova and Placement answer it for a lost database or message bus connection. */
export const RETRIED_STATUSES: ReadonlySet<number> = new Set([429, 500, 502, 503, 504]);

/**
 * Wait before retry number `retry` (1 is the first), exponential with full jitter: uniform in [0, min(backoffMaxMs,
 * backoffMs * 2^(retry-1))). A `Retry-After` (milliseconds) is a lower bound of the result, itself cut to `retryAfterMaxMs`.
 */
export function retryDelayMs(policy: RetryPolicy, retry: number, random: number, retryAfterMs?: number): number {
  const ceiling = Math.min(policy.backoffMaxMs, policy.backoffMs * 2 ** (retry - 1));
  const jittered = Math.floor(random * ceiling);
  return retryAfterMs === undefined ? jittered : Math.max(jittered, Math.min(retryAfterMs, policy.retryAfterMaxMs));
}

/** `Retry-After` in milliseconds from now: seconds or an HTTP date (RFC 9110, 10.2.3); undefined when absent or unreadable. */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  if (!/[a-z]/i.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}
