/** Further attempts after the first, and the upper bound of the wait before the first of them, which doubles each time. */
interface RetryBudget {
  readonly retries: number;
  readonly backoffMs: number;
}

/** Number of attempts of an idempotent call, and the waits between them. */
export interface RetryPolicy {
  /** After a connection that failed or broke, or a time limit. */
  readonly connection: RetryBudget;
  /** After one of `RETRIED_STATUSES`. */
  readonly status: RetryBudget;
  /** No computed wait is longer than this. */
  readonly backoffMaxMs: number;
  /** A `Retry-After` longer than this is cut to it. */
  readonly retryAfterMaxMs: number;
}

/** A policy whose gaps the defaults fill. */
export interface RetryOptions {
  readonly connection?: Partial<RetryBudget>;
  readonly status?: Partial<RetryBudget>;
  readonly backoffMaxMs?: number;
  readonly retryAfterMaxMs?: number;
}

export const DEFAULT_RETRY: RetryPolicy = {
  connection: { retries: 3, backoffMs: 500 },
  status: { retries: 3, backoffMs: 1_000 },
  backoffMaxMs: 10_000,
  retryAfterMaxMs: 30_000,
};

/** The retry policy with the defaults for the fields that are not given. */
export function retryPolicy(options: RetryOptions | undefined): RetryPolicy {
  return {
    ...DEFAULT_RETRY,
    ...options,
    connection: { ...DEFAULT_RETRY.connection, ...options?.connection },
    status: { ...DEFAULT_RETRY.status, ...options?.status },
  };
}

/** Statuses that another attempt may cure. */
export const RETRIED_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

interface NextRetry {
  readonly backoffMs: number;
  readonly retry: number;
  readonly retryAfterMs?: number | undefined;
}

/**
 * Wait in milliseconds before retry number `retry` (1 is the first), exponential with full jitter: uniform in [0, min(backoffMaxMs,
 * backoffMs * 2^(retry-1))). A `Retry-After` (milliseconds) is a lower bound of the result, itself cut to `retryAfterMaxMs`.
 */
export function retryDelayMs(
  policy: Pick<RetryPolicy, 'backoffMaxMs' | 'retryAfterMaxMs'>,
  { backoffMs, retry, retryAfterMs }: NextRetry,
  random: number,
): number {
  const ceiling = Math.min(policy.backoffMaxMs, backoffMs * 2 ** (retry - 1));
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
