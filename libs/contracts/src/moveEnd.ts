import type { Reason } from './envelope.ts';

/** Code of the reason of a move whose server is in ERROR afterwards. */
export const SERVER_IN_ERROR = 'server-in-error';

/** Code of the reason of a move whose server was running, and is powered off afterwards. */
export const GUEST_OFF = 'guest-off';

/**
 * How well a move ended. `plain`: nothing is to be said beyond its outcome. `warned`: it was done, and something is not as it
 * should be. `damaged`: its server is in ERROR or was left powered off, wherever it is. Whatever shows the end of a move distinguishes them.
 */
export type MoveEnd = 'plain' | 'warned' | 'damaged';

export function moveEnd(
  event:
    | { readonly type: 'migration.completed'; readonly data: { readonly warnings: readonly Reason[] } }
    | { readonly type: 'migration.failed'; readonly data: { readonly reason: Reason } },
): MoveEnd {
  const reasons = event.type === 'migration.completed' ? event.data.warnings : [event.data.reason];
  // Events of versions up to 0.1 say `server-not-up` of a server in ERROR, too.
  const damaged = reasons.some(
    ({ code, detail }) =>
      code === SERVER_IN_ERROR || code === GUEST_OFF || (code === 'server-not-up' && detail?.status === 'ERROR'),
  );
  if (damaged) return 'damaged';
  return event.type === 'migration.completed' && reasons.length > 0 ? 'warned' : 'plain';
}
