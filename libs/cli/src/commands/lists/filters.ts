/** The filters that every list takes. */
import { didYouMean } from '@kronos/config/nearest';
import type { Snapshot } from '@kronos/contracts';
import { CommandRefused } from '@kronos/operator/errors';
import { someOf } from '@kronos/operator/scope';
import { newestSnapshots } from '@kronos/replay';
import type { AggregateOption, ConfigOption, OutputOption } from '../../grammar/shared.ts';
import type { OpenLog } from '../../open.ts';
import { filterAggregates } from '../../scope.ts';

export type ListOptions = ConfigOption & OutputOption & AggregateOption;
export type VmsOptions = ListOptions & { readonly host?: readonly string[]; readonly vm?: string };
export type TasksOptions = VmsOptions & { readonly ended?: boolean };

/** Whether `--vm` names a server, or is not given. */
export const isVm = ({ vm }: VmsOptions, { id, name }: { readonly id: string; readonly name: string }): boolean =>
  vm === undefined || vm === name || vm.toLowerCase() === id;

export const isHost = ({ host }: VmsOptions, ...names: readonly string[]): boolean =>
  host === undefined || names.some((name) => host.includes(name));

/** The newest snapshots of the aggregates. @throws CommandRefused for a host or a VM that none of them has */
export async function listedSnapshots({ log, scope }: OpenLog, options: VmsOptions): Promise<Snapshot[]> {
  const snapshots = await newestSnapshots(log, filterAggregates(scope, options.aggregate));
  requireHosts(options, snapshots);
  requireVm(options, snapshots);
  return snapshots;
}

/** @throws CommandRefused for a host that no snapshot has */
function requireHosts({ host }: VmsOptions, snapshots: readonly Snapshot[]): void {
  const known = snapshots.flatMap(({ hosts }) => hosts.map(({ name }) => name));
  if (known.length === 0) return;
  for (const name of host ?? [])
    if (!known.includes(name))
      throw new CommandRefused(
        `no host ${JSON.stringify(name)}`,
        `${didYouMean(name, known)}The hosts are ${someOf(known.toSorted(), 'kronos hosts')}.`,
      );
}

/** @throws CommandRefused for a VM that no snapshot has */
function requireVm(options: VmsOptions, snapshots: readonly Snapshot[]): void {
  const known = snapshots.flatMap(({ servers }) => servers);
  if (options.vm === undefined || known.length === 0 || known.some((server) => isVm(options, server))) return;
  const near = didYouMean(
    options.vm,
    known.map(({ name }) => name),
  );
  throw new CommandRefused(
    `no VM ${JSON.stringify(options.vm)} in the newest snapshots`,
    `${near}kronos vms lists them.`,
  );
}
