import type { AggregateState } from './state.ts';

/**
 * Which VMs with a failed move are no longer among these servers, and which are again. What the log knows already is left
 * out.
 *
 * @returns null when there is nothing to say
 */
export function absence(
  state: Pick<AggregateState, 'vmFailures'>,
  servers: readonly { readonly id: string }[],
): { gone: string[]; back: string[] } | null {
  if (state.vmFailures.size === 0) return null;
  const there = new Set(servers.map(({ id }) => id));
  const gone: string[] = [];
  const back: string[] = [];
  for (const [id, { absentSinceMs }] of state.vmFailures) {
    if (there.has(id) === (absentSinceMs === null)) continue;
    (absentSinceMs === null ? gone : back).push(id);
  }
  return gone.length + back.length === 0 ? null : { gone: gone.sort(), back: back.sort() };
}
