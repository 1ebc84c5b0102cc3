/** The checks of a server in VERIFY_RESIZE. Pure. */
import type { Reason, ServerBefore } from '@kronos/contracts';
import { reason } from '../failure.ts';
import type { CellLook, CellServer, Task } from '../taskFacts.ts';
import type { CellRun } from '../taskStages.ts';

export const UNREAD = reason('target-unread', 'the hosts of the target aggregate could not be read');

/** Why the server is not where it was to go; null where it is. No check later can make this good. */
export function wrongHost(
  task: Task,
  { start }: CellRun,
  server: CellServer,
  target: readonly string[] | null,
): Reason | null {
  const host = server.host ?? 'no host';
  if (start.method === 'migrate' && server.host !== task.destination)
    return reason('wrong-host', `the server is on ${host} and not on ${task.destination}`, { host });
  if (target === null || (server.host !== null && target.includes(server.host))) return null;
  return reason('wrong-host', `the server is on ${host}, which is not in aggregate ${task.cell?.target}`, { host });
}

/** The first check that fails; null: all pass. */
export function failedCheck(
  before: ServerBefore,
  flavor: string | null,
  server: CellServer,
  { probe }: Pick<CellLook, 'probe'>,
): Reason | null {
  const { powerState, addresses, volumes } = server;
  if (before.powerState !== null && powerState !== before.powerState)
    return reason('power-state', `the power state is ${powerState} and was ${before.powerState}`);
  if (!same(before.addresses, addresses))
    return reason('addresses', `the addresses are ${listed(addresses)} and were ${listed(before.addresses)}`);
  if (!same(before.volumes, volumes))
    return reason('volumes', `the volumes are ${listed(volumes)} and were ${listed(before.volumes)}`);
  if (flavor !== null && server.flavor !== null && server.flavor !== flavor)
    return reason('flavor', `the flavor is ${server.flavor} and should be ${flavor}`);
  return probe === null || probe.ok ? null : reason('probe', probe.text);
}

const same = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((each) => b.includes(each));

const listed = (names: readonly string[]): string => (names.length === 0 ? 'none' : names.join(', '));
