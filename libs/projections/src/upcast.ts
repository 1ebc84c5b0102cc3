import type { LogEvent } from '@kronos/contracts';

/**
 * Brings an event of an older version to the next one. Keyed `type/version`. The fold only knows the newest version of
 * every type; what older versions of Kronos wrote reaches it through these.
 */
export type Upcasters = ReadonlyMap<string, (event: LogEvent) => LogEvent>;

/** The upcasters of this version of Kronos. */
export const upcasters: Upcasters = new Map();

/** The event in its newest version. */
export function upcast(event: LogEvent, registry: Upcasters = upcasters): LogEvent {
  if (registry.size === 0) return event;
  let current = event;
  for (;;) {
    const next = registry.get(`${current.type}/${current.version}`);
    if (next === undefined) return current;
    current = next(current);
  }
}
