import type { Clock } from '@kronos/clock';
import type { Nova } from '@kronos/openstack';

/** A table of hypervisors is valid for this time. Their uuids are those of their resource providers, and do not change. */
const KEEP_MS = 600_000;

/**
 * Finds the resource provider of a service host in one list of all hypervisors, which is read again after ten minutes, and when
 * a host is not in it.
 */
export function providers(
  nova: Pick<Nova, 'listHypervisors'>,
  clock: Pick<Clock, 'read'>,
): (host: string, signal: AbortSignal) => Promise<string | null> {
  let table: Map<string, readonly string[]> | null = null;
  let readAt = 0;
  let reading: Promise<Map<string, readonly string[]>> | null = null;

  async function read(): Promise<Map<string, readonly string[]>> {
    const byHost = Map.groupBy(await nova.listHypervisors(), (hypervisor) => hypervisor.service.host);
    table = new Map([...byHost].map(([host, found]) => [host, found.map((hypervisor) => hypervisor.id)]));
    readAt = clock.read().mono;
    return table;
  }

  return async (host) => {
    const stale = table === null || !table.has(host) || clock.read().mono - readAt > KEEP_MS;
    if (stale)
      reading ??= read().finally(() => {
        reading = null;
      });
    const known = stale ? await reading : table;
    const ids = known?.get(host) ?? [];
    return ids.length === 1 ? (ids[0] ?? null) : null;
  };
}
