/** Pre-flight of ports: one that stays with the host may have been attached since the snapshot. The judgement is pure. */

import { type Clock, limit } from '@kronos/clock';
import type { MovableDevice } from '@kronos/contracts';
import { deviceOfPort } from '@kronos/facts';
import { BadAnswer, EndpointNotFound, Forbidden, type Neutron, Unauthorized } from '@kronos/openstack';

/**
 * The reason for which a server with ports of these kinds stays where it is; null: none.
 *
 * @param kinds null: they were not read, so the plan's reading of them counts
 */
export function portRefusal(
  kinds: readonly string[] | null,
  { movableDevices }: { readonly movableDevices: readonly MovableDevice[] },
): Refusal<'vm-sriov-port' | 'vm-accelerator'> | null {
  return refusalBy(kinds, (device) => {
    if (device === 'accelerator') return 'vm-accelerator';
    return movableDevices.includes(device) ? null : 'vm-sriov-port';
  });
}

/** The same for a move to another cell, for which Nova stops the server first. */
export const cellPortRefusal = (
  kinds: readonly string[] | null,
): Refusal<'cell-pci-device' | 'cell-accelerator'> | null =>
  refusalBy(kinds, (device) => (device === 'accelerator' ? 'cell-accelerator' : 'cell-pci-device'));

type Refusal<Code> = { readonly code: Code; readonly text: string };

function refusalBy<Code extends string>(
  kinds: readonly string[] | null,
  codeOf: (device: NonNullable<ReturnType<typeof deviceOfPort>>) => Code | null,
): Refusal<Code> | null {
  for (const kind of kinds ?? []) {
    const device = deviceOfPort(kind);
    const code = device === null ? null : codeOf(device);
    if (code !== null) return { code, text: `the server has a port of the kind ${kind}` };
  }
  return null;
}

/** After a refusal, Neutron is not asked again for this time: each refusal costs a token and counts as a failed call. */
const HIDDEN_MS = 3_600_000;
/** With `auto`, Neutron has this time to answer: a pre-flight that takes a minute starts nothing. */
const ANSWER_MS = 10_000;
/** With `auto`, a Neutron that has not answered is not asked again for this time. */
const SILENT_MS = 60_000;

/** Whether this user may not see ports. A call that the access rules of an application credential do not allow gets a 401. */
const isHidden = (error: unknown): boolean =>
  error instanceof EndpointNotFound ||
  error instanceof Forbidden ||
  error instanceof Unauthorized ||
  error instanceof BadAnswer;

/**
 * The kinds of the ports of a server, as far as Neutron shows them; null where this user may not see them. With `auto`, nothing depends on
 * Neutron: null as well where it does not answer in time.
 *
 * @throws the errors of the client, with `read`
 */
export type PortKindsOf = (serverId: string, signal: AbortSignal) => Promise<readonly string[] | null>;

/** @param mode `[nova] sriov_ports` */
export function portKinds(
  neutron: Pick<Neutron, 'listPortKinds'>,
  mode: 'auto' | 'read' | 'ignore',
  clock: Pick<Clock, 'read' | 'after'>,
): PortKindsOf {
  let quietUntil = Number.NEGATIVE_INFINITY;
  const quietFor = (ms: number): void => {
    quietUntil = clock.read().mono + ms;
  };

  async function read(serverId: string, signal: AbortSignal): Promise<readonly string[]> {
    const ports = await neutron.listPortKinds({ serverId, signal });
    return ports.map(({ vnicType }) => vnicType);
  }

  async function readInTime(serverId: string, signal: AbortSignal): Promise<readonly string[]> {
    const late = limit(clock, ANSWER_MS);
    try {
      return await read(serverId, AbortSignal.any([signal, late.signal]));
    } finally {
      late.clear();
    }
  }

  return async (serverId, signal) => {
    if (mode === 'ignore' || clock.read().mono < quietUntil) return null;
    try {
      return await (mode === 'read' ? read(serverId, signal) : readInTime(serverId, signal));
    } catch (error) {
      signal.throwIfAborted();
      if (isHidden(error)) quietFor(HIDDEN_MS);
      else if (mode === 'read') throw error;
      else quietFor(SILENT_MS);
      return null;
    }
  };
}
