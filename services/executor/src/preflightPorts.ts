/** Pre-flight of ports: one that stays with the host may have been attached since the snapshot. The judgement is pure. */
import type { MovableDevice } from '@kronos/contracts';
import { deviceOfPort } from '@kronos/facts';
import { BadAnswer, EndpointNotFound, Forbidden, type Neutron } from '@kronos/openstack';

export interface PortOptions {
  /** `[nova] sriov_ports`. */
  readonly sriovPorts: 'auto' | 'read' | 'ignore';
  readonly movableDevices: readonly MovableDevice[];
}

/**
 * The reason for which a server with ports of these kinds stays where it is; null: none.
 *
 * @param kinds null: they were not read, so the plan's reading of them counts
 */
export function portRefusal(
  kinds: readonly string[] | null,
  { movableDevices }: Pick<PortOptions, 'movableDevices'>,
): { readonly code: 'vm-sriov-port' | 'vm-accelerator'; readonly text: string } | null {
  for (const kind of kinds ?? []) {
    const device = deviceOfPort(kind);
    if (device === 'accelerator') return { code: 'vm-accelerator', text: `the server has a port of the kind ${kind}` };
    if (device !== null && !movableDevices.includes(device))
      return { code: 'vm-sriov-port', text: `the server has a port of the kind ${kind}` };
  }
  return null;
}

/**
 * The kinds of the ports of a server, as far as Neutron shows them; null where this user may not see them. With `auto`, nothing depends on
 * Neutron: null as well where it does not answer.
 *
 * @throws the errors of the client, with `read`
 */
export async function readPorts(
  serverId: string,
  neutron: Pick<Neutron, 'listPortKinds'>,
  { sriovPorts }: Pick<PortOptions, 'sriovPorts'>,
  signal: AbortSignal,
): Promise<readonly string[] | null> {
  if (sriovPorts === 'ignore') return null;
  try {
    const ports = await neutron.listPortKinds({ serverId, signal });
    return ports.map(({ vnicType }) => vnicType);
  } catch (error) {
    signal.throwIfAborted();
    const isHidden = error instanceof EndpointNotFound || error instanceof Forbidden || error instanceof BadAnswer;
    if (sriovPorts === 'auto' || isHidden) return null;
    throw error;
  }
}
