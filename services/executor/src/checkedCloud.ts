import type { Clock } from '@kronos/clock';
import type { Neutron } from '@kronos/openstack';
import type { CheckedCloud } from './preflight.ts';
import { portKinds } from './preflightPorts.ts';
import { providers } from './providers.ts';

/**
 * The cloud as pre-flights read it. It keeps the list of resource providers, and for how long Neutron is not asked, from one pre-flight
 * to the next: an executor has one.
 *
 * @param sriovPorts `[nova] sriov_ports`
 */
export const checkedCloud = (
  { nova, placement, neutron }: Pick<CheckedCloud, 'nova' | 'placement'> & { readonly neutron: Neutron },
  sriovPorts: Parameters<typeof portKinds>[1],
  clock: Clock,
): CheckedCloud => ({
  nova,
  placement,
  portKindsOf: portKinds(neutron, sriovPorts, clock),
  providerOf: providers(nova, clock),
});
