/** Pre-flight of ports: one that stays with the host may have been attached since the snapshot. The judgement is pure. */
import type { MovableDevice } from '@kronos/contracts';
import { deviceOfPort } from '@kronos/facts';
import { BadAnswer, EndpointNotFound, Forbidden, type Neutron, Unauthorized } from '@kronos/openstack';

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

/** After a refusal, Neutron is not asked again for this time: each refusal costs a token and counts as a failed call. */
const AGAIN_MS = 3_600_000;
/** By client: when Neutron last showed nothing to its user, in ms since the epoch. */
const hiddenAt = new WeakMap<object, number>();

/** Access rules of an application credential that do not grant the call make it 401. */
const isHidden = (error: unknown): boolean =>
  error instanceof EndpointNotFound ||
  error instanceof Forbidden ||
  error instanceof Unauthorized ||
  error instanceof BadAnswer;

/**
 * The kinds of the ports of a server, as far as Neutron shows them; null where this user may not see them. With `auto`, nothing depends on
 * Neutron: null as well where it does not answer.
 *
 * @throws the errors of the client, with `read`
 */
export async function readPorts(
  serverId: string,
  neutron: Pick<Neutron, 'listPortKinds'>,
  { sriovPorts, nowMs }: Pick<PortOptions, 'sriovPorts'> & { readonly nowMs: number },
  signal: AbortSignal,
): Promise<readonly string[] | null> {
  const hidden = hiddenAt.get(neutron);
  if (sriovPorts === 'ignore' || (hidden !== undefined && nowMs - hidden < AGAIN_MS)) return null;
  try {
    const ports = await neutron.listPortKinds({ serverId, signal });
    return ports.map(({ vnicType }) => vnicType);
  } catch (error) {
    signal.throwIfAborted();
    if (isHidden(error)) hiddenAt.set(neutron, nowMs);
    else if (sriovPorts === 'read') throw error;
    return null;
  }
}
