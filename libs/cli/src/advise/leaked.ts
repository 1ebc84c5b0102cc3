/** Allocations that a server left behind on hosts where it is no more. */
import type { Snapshot } from '@kronos/contracts';
import type { LeakedAllocation } from '@kronos/placement';

/** The allocations on one host. */
export type HostAllocations = {
  readonly host: string;
  readonly providerId: string;
  /** Amounts by resource class, by the uuid of the server or the migration that claims them. */
  readonly allocations: Readonly<Record<string, Readonly<Record<string, number>>>>;
};

/** The server as Nova has it now. */
type ServerNow = { readonly host: string | null; readonly taskState: string | null; readonly vmState: string | null };

/**
 * Claims of servers on hosts where the snapshot does not see them. A running migration or a resize claims the source under its own uuid, and
 * the destination under that of the server: servers in either are left out. Pure.
 */
export function suspects(
  { servers, migrations }: Pick<Snapshot, 'servers' | 'migrations'>,
  claims: readonly HostAllocations[],
): LeakedAllocation[] {
  const moving = new Set(migrations.map(({ serverId }) => serverId));
  const known = new Map(servers.map((server) => [server.id, server]));
  return claims.flatMap(({ host: of, providerId, allocations }) =>
    Object.entries(allocations).flatMap(([serverId, resources]): LeakedAllocation[] => {
      const server = known.get(serverId);
      if (server === undefined || server.host === of || server.alsoOn.includes(of) || moving.has(serverId)) return [];
      return [{ serverId, serverName: server.name, host: server.host, of, providerId, resources }];
    }),
  );
}

/** Those that Nova still has at rest on the host of the snapshot: a server that moves meanwhile leaks nothing. */
export async function confirmed(
  found: readonly LeakedAllocation[],
  serverNow: (serverId: string) => Promise<ServerNow>,
): Promise<LeakedAllocation[]> {
  const leaked: LeakedAllocation[] = [];
  for (const one of found) {
    const { host, taskState, vmState } = await serverNow(one.serverId);
    if (host === one.host && taskState === null && vmState !== 'resized') leaked.push(one);
  }
  return leaked;
}
