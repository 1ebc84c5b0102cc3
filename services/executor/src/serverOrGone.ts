import { NotFound, type Nova, type Server } from '@kronos/openstack';

/** A server as Nova shows it now; `gone`: Nova does not know it, or keeps it only for a restore. @throws the other errors of the client */
export async function serverOrGone(
  nova: Pick<Nova, 'getServer'>,
  serverId: string,
  signal: AbortSignal,
): Promise<Server | 'gone'> {
  try {
    const server = await nova.getServer(serverId, { signal });
    return server.status === 'DELETED' || server.status === 'SOFT_DELETED' ? 'gone' : server;
  } catch (error) {
    if (error instanceof NotFound) return 'gone';
    throw error;
  }
}
