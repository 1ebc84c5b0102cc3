import type { StoredEvent } from '@kronos/contracts';

/** The name of a VM by its uuid; null: it is not known. */
export type NameOf = (serverId: string) => string | null;

/** The names of VMs, as the plans among these events have them. The events are read when the first name is asked for. */
export function namesIn(events: () => Iterable<StoredEvent>): NameOf {
  let found: ReadonlyMap<string, string> | null = null;
  return (serverId) => {
    found ??= new Map(Iterator.from(events()).flatMap(namedBy));
    return found.get(serverId) ?? null;
  };
}

/** The VMs that an event names: uuid and name. */
export function namedBy({ event }: StoredEvent): [string, string][] {
  const planned =
    event.type === 'cycle.decided' ? event.data.plan?.steps : event.type === 'plan.proposed' ? event.data.steps : [];
  return (planned ?? []).map(({ serverId, serverName }) => [serverId, serverName]);
}
