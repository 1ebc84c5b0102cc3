import type { Message } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import { newestSnapshots } from '@kronos/replay';

/** Names of servers by uuid, from the newest snapshots of these aggregates. */
export async function serverNames(
  log: Pick<EventLog, 'lastSequenceOf' | 'tail' | 'getSnapshot'>,
  aggregates: readonly string[],
): Promise<Map<string, string>> {
  const snapshots = await newestSnapshots(log, aggregates);
  return new Map(snapshots.flatMap(({ servers }) => servers.map(({ id, name }) => [id, name] as const)));
}

/** A server as people read it: its name, and the uuid beside it. */
export const serverText = (names: ReadonlyMap<string, string>, id: string): string => {
  const name = names.get(id);
  return name === undefined ? id : `${name} (${id})`;
};

/** The author of a message for people: the person, or the service. */
export const authorText = ({ by }: Pick<Message, 'by'>): string =>
  by.service === 'operator' ? by.instance : by.service;
