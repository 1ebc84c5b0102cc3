/** The names by which Prometheus may know hosts and servers. Pure. */
import type { HostNames, VmNames } from '@kronos/prometheus';
import type { CloudLists } from './cloud.ts';
import type { ServerIndex } from './servers.ts';

/** Every host of the cloud under both of its names, for the labels of Prometheus. */
export function hostNamesOf(lists: Pick<CloudLists, 'hypervisors' | 'services'>): HostNames[] {
  const names: HostNames[] = [];
  const seen = new Set<string>();
  for (const { service, hypervisorHostname } of lists.hypervisors.ok ? lists.hypervisors.value : []) {
    names.push({ serviceHost: service.host, hypervisorHostname });
    seen.add(service.host);
  }
  for (const { host } of lists.services.ok ? lists.services.value : [])
    if (!seen.has(host)) names.push({ serviceHost: host, hypervisorHostname: host });
  return names;
}

/** Every server of the cloud under its three names. */
export const vmNamesOf = (index: ServerIndex): VmNames[] =>
  [...index.placed.values()].map(({ server }) => ({
    uuid: server.id,
    internalName: server.internalName,
    displayName: server.name,
  }));
