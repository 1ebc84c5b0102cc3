/** Destinations that Nova refused, as far as the refusals still count. */
import type { Snapshot } from '@kronos/contracts';
import { markOf, refusalHolds, shapeOf } from '@kronos/facts';
import type { Memory } from './memory.ts';

/** Host -> shape of servers that Nova refuses there -> Nova's words. */
type RefusedShapes = ReadonlyMap<string, ReadonlyMap<string, string>>;

function refusedShapes(
  { hosts, servers }: Pick<Snapshot, 'hosts' | 'servers'>,
  { refusals }: Pick<Memory, 'refusals'>,
  now: number,
): RefusedShapes {
  const found = new Map<string, Map<string, string>>();
  for (const { serverId, host: name, atMs, text, mark, ...known } of refusals ?? []) {
    const host = hosts.find((one) => one.name === name);
    const server = known.shape === null ? servers.find(({ id }) => id === serverId) : undefined;
    const shape = known.shape ?? (server === undefined ? null : shapeOf(server));
    if (host === undefined || shape === null) continue;
    if (!refusalHolds({ atMs, mark }, markOf(host, servers), now)) continue;
    const ofHost = found.get(name) ?? new Map<string, string>();
    found.set(name, ofHost.set(shape, text));
  }
  return found;
}

/** Server uuid -> host that Nova refuses for servers of its shape -> Nova's words. */
export type NovaWords = ReadonlyMap<string, ReadonlyMap<string, string>>;

/** The servers for which a refusal counts. Most clouds have none: then no shape is computed. */
export function refusedServers(snapshot: Snapshot, memory: Memory, now: number): NovaWords {
  const refused = refusedShapes(snapshot, memory, now);
  const words = new Map<string, ReadonlyMap<string, string>>();
  if (refused.size === 0) return words;
  for (const server of snapshot.servers) {
    const shape = shapeOf(server);
    const hosts = [...refused].flatMap(([host, shapes]) => {
      const text = shapes.get(shape);
      return text === undefined ? [] : [[host, text] as const];
    });
    if (hosts.length > 0) words.set(server.id, new Map(hosts));
  }
  return words;
}
