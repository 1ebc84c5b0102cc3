import type { StoredEvent } from '@kronos/contracts';

/** The name of a VM by its uuid; null: it is not known. */
export type ServerNameOf = (serverId: string) => string | null;

/** The names of VMs, as the plans among these events have them. The events are read when the first name is asked for. */
export function namesIn(events: () => Iterable<StoredEvent>): ServerNameOf {
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

/** The names of these VMs: a person can name a VM that is in no plan, which the newest snapshot names. */
export async function namesFromLog(
  serverIds: readonly string[],
  planned: ServerNameOf,
  { named }: { readonly named: (serverIds: readonly string[]) => Promise<ReadonlyMap<string, string>> },
): Promise<ServerNameOf> {
  const seen = await named(serverIds.filter((id) => planned(id) === null));
  return (id) => planned(id) ?? seen.get(id) ?? null;
}
