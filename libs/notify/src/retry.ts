/** The outcome of one attempt to send. `retryAfterMs`: the delay that the receiver asked for. */
export type DeliveryAttempt =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly retryAfterMs: number | undefined;
      readonly body?: string;
    }
  | { readonly kind: 'failed'; readonly reason: string };

export type DeliveryVerdict =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'later'; readonly delayMs: number; readonly reason: string }
  /** The receiver refuses this notice: every further attempt would fail, too. */
  | { readonly kind: 'dropped'; readonly reason: string };

const FIRST_MS = 1000;
export const LONGEST_MS = 5 * 60_000;
/** A receiver cannot silence a sink for longer. */
const LONGEST_ASKED_MS = 3_600_000;

/** Statuses that are about the notice and not about the receiver: malformed, too large, not understood. */
const ABOUT_THE_NOTICE: ReadonlySet<number> = new Set([400, 413, 422]);
/** So often is tried even then: a proxy may say it, too. */
const TRIES = 6;

/**
 * Decides whether and when a notice is tried again after an attempt.
 *
 * @param deliveries how often it was tried; 1 after the first time
 */
export function judgeAttempt(attempt: DeliveryAttempt, deliveries: number): DeliveryVerdict {
  const backoffMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(deliveries - 1, 20));
  if (attempt.kind === 'failed') return { kind: 'later', delayMs: backoffMs, reason: attempt.reason };
  const { status, retryAfterMs = 0 } = attempt;
  if (status >= 200 && status < 300) return { kind: 'delivered' };
  const reason = `the receiver answers ${status}${wordsOf(attempt.body)}`;
  if (ABOUT_THE_NOTICE.has(status) && deliveries >= TRIES) return { kind: 'dropped', reason };
  return { kind: 'later', delayMs: Math.max(backoffMs, Math.min(retryAfterMs, LONGEST_ASKED_MS)), reason };
}

/** Characters of an answer that a reason quotes. */
const QUOTED = 200;

/** `: invalid payload`, what the answer says without markup. */
function wordsOf(body = ''): string {
  const text = body
    .slice(0, 20 * QUOTED)
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, QUOTED);
  return text === '' ? '' : `: ${text}`;
}

/** The remedy for an attempt that was not delivered. `sink` is the section `[notify:NAME]`. */
export function remedyFor(attempt: DeliveryAttempt, sink: { readonly name: string; readonly format: string }): string {
  const section = `[notify:${sink.name}]`;
  if (attempt.kind === 'failed')
    return `Check url and ca_cert of ${section}, and that this machine and the machine of the ledger reach the receiver.`;
  const { status } = attempt;
  if (status >= 300 && status < 400)
    return `Kronos follows no redirect. Set url of ${section} to the address that the receiver redirects to.`;
  switch (status) {
    case 401:
    case 403:
      return `Check authorization and secret of ${section}, and that the receiver still accepts its url.`;
    case 404:
    case 405:
    case 410:
      return `Check url of ${section}. The receiver may have deleted the webhook: create another one there.`;
    case 400:
    case 413:
    case 415:
    case 422:
      return `Check that format = ${sink.format} of ${section} is the format that the receiver expects.`;
    default:
      return 'Read the log of the receiver. The ledger sends each notification again until the receiver accepts it.';
  }
}

/** The failures of a sink since its last success, as one ledger has seen them. */
export type DeliveryTrouble = { readonly sinceMs: number; readonly lastMs: number; readonly reason: string };

/** The failures of a sink with one more. Failures that are long past do not count. @param nowMs of the failure, ms since the epoch */
export const troubled = (before: DeliveryTrouble | null, reason: string, nowMs: number): DeliveryTrouble => ({
  sinceMs: before === null || nowMs - before.lastMs > FORGOTTEN_MS ? nowMs : before.sinceMs,
  lastMs: nowMs,
  reason,
});

/** Failures over this time mean that a sink is dead. */
const DEAD_MS = 2 * 60_000;
/** Without a failure for this time, another ledger has delivered what failed here. */
const FORGOTTEN_MS = 2 * LONGEST_MS + 60_000;

/** Whether a sink takes nothing: it has failed for a while, and its last attempts failed. */
export const isDead = ({ sinceMs, lastMs }: DeliveryTrouble, nowMs: number): boolean =>
  lastMs - sinceMs >= DEAD_MS && nowMs - lastMs <= FORGOTTEN_MS;
