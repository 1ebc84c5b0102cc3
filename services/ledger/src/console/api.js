/** The ledger's JSON interface: only calls that /api/v1/openapi.json describes. */
import { againMs } from './again.js';

/** An answer that is no data: 404, 410 (no longer kept), 503, or none at all (status 0). */
export class Refused extends Error {
  /** @param afterMs when to ask again; 0: it would not help */
  constructor(status, message, afterMs = 0) {
    super(message);
    this.status = status;
    this.afterMs = afterMs;
  }

  /** Whether the same question may be answered later: the ledger did not answer, or could not now. */
  get passes() {
    return this.status === 0 || this.status >= 500;
  }
}

/** The ledger's clock less this machine's, in ms: ages go by the ledger's. */
let ahead = 0;
export const nowMs = () => Date.now() + ahead;

/** @returns the body of an answer; the browser asks with the entity tag that it has */
export const read = (path, limitMs) => call(path, {}, limitMs);

/** Sends a request that changes something. `csrf`: of the session, where somebody is logged in. */
export const write = (method, path, body, csrf) =>
  call(path, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(csrf == null ? {} : { 'x-kronos-csrf': csrf }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });

/** A ledger that is well answers within this time; what it computes takes longer. */
const ANSWER_MS = 10_000;
const COMPUTED_MS = 40_000;

async function call(path, init, limitMs = ANSWER_MS) {
  const answer = await fetch(`/api/v1${path}`, { ...init, signal: AbortSignal.timeout(limitMs) }).catch((error) => {
    throw new Refused(0, `the ledger does not answer (${error.message})`);
  });
  const date = Date.parse(answer.headers.get('date') ?? '');
  if (!Number.isNaN(date) && Math.abs(date - nowMs()) > 2000) ahead = date - Date.now();
  const body = await answer.json().catch(() => ({ error: `the answer is no JSON (${answer.status})` }));
  if (!answer.ok) {
    const afterMs = 1000 * Number(answer.headers.get('retry-after') ?? 0);
    throw new Refused(answer.status, body.error ?? String(answer.status), afterMs);
  }
  return body;
}

/** The answer, or what was refused: for a part of a view that may be missing. */
export const tryRead = (path) =>
  read(path).catch((error) => {
    if (error instanceof Refused && (error.status === 404 || error.status === 410)) return { refused: error };
    throw error;
  });

/** A part of a view waits for its turn this often, where the ledger computes other ones. */
const MOST_TURNS = 20;

/** The answer, or why there is none: for a part that is read after the rest and must not take it away. */
export async function readOrRefused(path) {
  for (let turn = 1; ; turn++) {
    try {
      return await read(path, COMPUTED_MS);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.status !== 503 || error.afterMs === 0 || turn === MOST_TURNS) return { refused: error };
      await new Promise((resolve) => setTimeout(resolve, error.afterMs));
    }
  }
}

const FOLLOW_AGAIN_MS = 5000;
/** Tries in a row that were no stream. */
let unfollowed = 0;

/**
 * Calls `changed` with each event that the ledger folds, and with null when everything must be read again; `connected` with whether
 * events come.
 */
export function follow(changed, connected) {
  const source = new EventSource('/api/v1/changes');
  source.addEventListener('change', (event) => changed(JSON.parse(event.data)));
  source.addEventListener('reset', () => changed(null));
  source.addEventListener('open', () => {
    unfollowed = 0;
    connected(true);
  });
  source.addEventListener('error', () => {
    connected(false);
    // A browser that got another answer than events does not ask again by itself.
    if (source.readyState !== EventSource.CLOSED) return;
    unfollowed++;
    setTimeout(
      () => {
        changed(null);
        follow(changed, connected);
      },
      againMs(unfollowed, FOLLOW_AGAIN_MS),
    );
  });
}
