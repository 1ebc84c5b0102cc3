import { didYouMean } from '@kronos/config/nearest';
import { ALL } from '@kronos/contracts';
import { control, type Told } from '@kronos/operator';
import { aggregateState, optionsOf, quarantineTable, type VmQuarantine } from '@kronos/projections';
import { findServers } from '@kronos/replay';
import { UsageError } from '../errors.ts';
import type { AggregateOption, ConfigOption, OperatorOptions, OutputOption } from '../grammar/shared.ts';
import { serverNames } from '../names.ts';
import { currentState, type OpenLog, withSession } from '../open.ts';
import { answer } from '../output.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { table } from '../table.ts';
import type { Terminal } from '../terminal.ts';
import { parseDuration, when } from '../times.ts';
import { give, tell } from './give.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export type QuarantineListOptions = ConfigOption & OutputOption & AggregateOption;
export type QuarantineAddOptions = OperatorOptions & AggregateOption & { readonly for?: string };

/** kronos quarantine list. */
export async function quarantineList(shell: Shell, options: QuarantineListOptions): Promise<void> {
  await withSession(shell, options, async ({ log, scope }) => {
    const wanted = filterAggregates(scope, options.aggregate);
    const state = await currentState(shell, log);
    const rows = wanted.flatMap((name) => {
      const facts = aggregateState(state, name);
      return quarantineTable(facts, shell.now(), optionsOf(facts)).map((q) => ({ aggregate: name, ...q }));
    });
    const names = await serverNames(log, wanted);
    const named = rows.map((row) => ({ serverName: names.get(row.serverId) ?? null, ...row }));
    await answer(shell, options, named, (terminal) => render(terminal, named, shell.now()));
  });
}

/** kronos quarantine add. */
export async function quarantineAdd(shell: Shell, vm: string, options: QuarantineAddOptions): Promise<void> {
  const seconds = options.for === undefined ? -1 : parseDuration('--for', options.for) / 1000;
  await withSession(shell, options, async (session) => {
    const { aggregate, serverId, serverName } = await locate(session, vm, options.aggregate);
    const told = await give(shell, session, { ...options, nameOf: () => serverName }, (_, asking) =>
      control('instance.quarantined', aggregate, { serverId, seconds }, asking),
    );
    const answers: (Told & Located)[] = [{ ...told, serverId, serverName }];
    await tell(shell, options, answers);
  });
}

/** kronos quarantine release. */
export async function quarantineRelease(shell: Shell, vms: readonly string[], options: OperatorOptions): Promise<void> {
  await withSession(shell, options, async (session) => {
    const told: (Told & Located)[] = [];
    for (const vm of vms) {
      const { serverId, serverName } = await locateToRelease(session, vm);
      // A release reaches the quarantine wherever it was set: nobody has to know the aggregate.
      const one = await give(shell, session, { ...options, nameOf: () => serverName }, (_, asking) =>
        control('instance.unquarantined', ALL, { serverId }, asking),
      );
      told.push({ ...one, serverId, serverName });
    }
    await tell(shell, options, told);
  });
}

type Located = { readonly serverId: string; readonly serverName: string | null };

/** A uuid is released also where no snapshot has the server any more. @throws UsageError */
async function locateToRelease(session: OpenLog, vm: string): Promise<Located> {
  if (!UUID.test(vm))
    return await locate(session, vm, undefined, 'kronos quarantine list shows the VMs in quarantine.');
  const serverId = vm.toLowerCase();
  return { serverId, serverName: (await serverNames(session.log, session.scope)).get(serverId) ?? null };
}

/** The uuid and the name of a server, and the aggregate that it is in. @throws UsageError */
async function locate(
  { log, scope }: OpenLog,
  vm: string,
  named: readonly string[] | undefined,
  remedy = 'Give its uuid, and --aggregate NAME if several aggregates are in scope.',
): Promise<Located & { readonly aggregate: string }> {
  const among = filterAggregates(scope, named);
  const [only] = among;
  const uuid = UUID.test(vm);
  if (uuid && only !== undefined && among.length === 1) {
    const serverId = vm.toLowerCase();
    return { aggregate: only, serverId, serverName: (await serverNames(log, among)).get(serverId) ?? null };
  }
  const found = await findServers(log, among, uuid ? vm.toLowerCase() : vm);
  const [server, ...others] = found;
  if (server === undefined)
    throw new UsageError(
      `no VM ${JSON.stringify(vm)} in the newest snapshots`,
      `${didYouMean(vm, [...(await serverNames(log, among)).values()])}${remedy}`,
    );
  if (others.length > 0)
    throw new UsageError(
      `${found.length} VMs have the name ${JSON.stringify(vm)}`,
      `Give the uuid: ${found.map(({ id, aggregate, host }) => `${id} (${aggregate}, on ${host})`).join('; ')}`,
    );
  return { aggregate: server.aggregate, serverId: server.id, serverName: server.name };
}

type Row = VmQuarantine & { readonly aggregate: string; readonly serverName: string | null };

function render(terminal: Terminal, rows: readonly Row[], nowMs: number): string {
  if (rows.length === 0) return 'No VM is in quarantine.\n';
  return table(
    terminal,
    [
      { head: 'vm', flex: true },
      { head: 'uuid', short: 8 },
      { head: 'aggregate', flex: true, minor: true },
      { head: 'since', minor: true },
      { head: 'until' },
      { head: 'by', minor: true },
      { head: 'why', flex: true, below: true },
    ],
    rows.map((row) => [
      row.serverName ?? '',
      row.serverId,
      row.aggregate,
      when(row.sinceMs, nowMs),
      row.untilMs === null ? 'released' : when(row.untilMs, nowMs),
      row.by,
      row.text,
    ]),
  );
}
