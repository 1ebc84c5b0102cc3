import { ALL, defaultEngineOptions } from '@kronos/contracts';
import { aggregateState, type Quarantine, quarantineTable } from '@kronos/projections';
import { findServers } from '@kronos/replay';
import type { Command } from 'commander';
import { UsageError } from '../errors.ts';
import { type ConfigOption, currentState, type Session, withConfig, withSession } from '../open.ts';
import { optionsInForce } from '../operator/ask.ts';
import { control } from '../operator/control.ts';
import { chooseAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { table } from '../terminal.ts';
import { parseDuration, when } from '../times.ts';
import { examples, printJson } from './help.ts';
import { give, type OperatorOptions, operatorCommand, tell } from './operator.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

type Scoped = { readonly aggregate?: string; readonly all?: boolean };

/** quarantine list | add | release. */
export function quarantineCommands(program: Command, shell: Shell): void {
  const quarantine = program.command('quarantine').description('List, set and release quarantines of VMs');

  withConfig(quarantine.command('list'))
    .description('List the VMs in quarantine, with reason and end')
    .argument('[aggregate]', 'Only this aggregate (default: all in scope)')
    .option('--json', 'Print the table as JSON')
    .addHelpText('after', examples(['kronos quarantine list', 'all of them']))
    .action(async (aggregate: string | undefined, options: ConfigOption & { json?: boolean }) => {
      await withSession(shell, options, async ({ log, scope }) => {
        const wanted = aggregate === undefined ? scope : chooseAggregates(scope, aggregate, false, 'quarantine list');
        const state = await currentState(shell, log);
        const rows = wanted.flatMap((name) => {
          const inForce = optionsInForce(state, name) ?? defaultEngineOptions;
          return quarantineTable(aggregateState(state, name), shell.now(), inForce).map((q) => ({
            aggregate: name,
            ...q,
          }));
        });
        if (options.json === true) printJson(shell.terminal, rows);
        else print(shell, rows);
      });
    });

  operatorCommand(quarantine.command('add'))
    .description('Quarantine a VM for a time, or until it is released')
    .argument('<vm>', 'Uuid or name of the server')
    .option('-a, --aggregate <name>', 'Aggregate of the VM (default: found in the newest snapshots)')
    .option('--for <duration>', 'Duration: 3600, 90m, 2d (default: until released)')
    .addHelpText(
      'after',
      examples(
        ['kronos quarantine add db-7 --for 8h -m "backup window"', 'by name, for a while'],
        ['kronos quarantine add 6d1f0d5e-8a34-4a4c-8d3b-0a4a3d2a7b11', 'by uuid, until released'],
      ),
    )
    .action(async (vm: string, options: OperatorOptions & Scoped & { for?: string }) => {
      const seconds = options.for === undefined ? -1 : parseDuration('--for', options.for);
      await withSession(shell, options, async (session) => {
        const { aggregate, serverId } = await locate(session, vm, options.aggregate);
        const told = await give(shell, session, options, (_, asking) =>
          control('instance.quarantined', aggregate, { serverId, seconds }, asking),
        );
        tell(shell, options, [told]);
      });
    });

  operatorCommand(quarantine.command('release'))
    .description('Release VMs from quarantine')
    .argument('<vm...>', 'Uuids or names of servers')
    .addHelpText('after', examples(['kronos quarantine release db-7', 'it may be moved again']))
    .action(async (vms: string[], options: OperatorOptions) => {
      await withSession(shell, options, async (session) => {
        const told = [];
        for (const vm of vms) {
          const serverId = UUID.test(vm) ? vm.toLowerCase() : (await locate(session, vm, undefined)).serverId;
          // A release reaches the quarantine wherever it was set: nobody has to know the aggregate.
          told.push(
            await give(shell, session, options, (_, asking) =>
              control('instance.unquarantined', ALL, { serverId }, asking),
            ),
          );
        }
        tell(shell, options, told);
      });
    });
}

/** The uuid of a server and the aggregate that it is in. @throws UsageError */
async function locate(
  { log, scope }: Session,
  vm: string,
  named: string | undefined,
): Promise<{ readonly aggregate: string; readonly serverId: string }> {
  const among = named === undefined ? scope : chooseAggregates(scope, named, false, 'quarantine add VM -a');
  const [only] = among;
  const uuid = UUID.test(vm);
  if (uuid && only !== undefined && among.length === 1) return { aggregate: only, serverId: vm.toLowerCase() };
  const found = await findServers(log, among, uuid ? vm.toLowerCase() : vm);
  const [server, ...others] = found;
  if (server === undefined)
    throw new UsageError(
      `no newest snapshot in scope has a server ${JSON.stringify(vm)}`,
      'Give its uuid and, where several aggregates are in scope, --aggregate NAME.',
    );
  if (others.length > 0)
    throw new UsageError(
      `${found.length} servers are called ${JSON.stringify(vm)}`,
      `Give the uuid: ${found.map(({ id, aggregate, host }) => `${id} (${aggregate}, on ${host})`).join('; ')}`,
    );
  return { aggregate: server.aggregate, serverId: server.id };
}

type Row = Quarantine & { readonly aggregate: string };

function print({ terminal, now }: Shell, rows: readonly Row[]): void {
  if (rows.length === 0) {
    terminal.out('No VM is in quarantine.\n');
    return;
  }
  terminal.out(
    table(
      terminal,
      [
        { head: 'vm' },
        { head: 'aggregate' },
        { head: 'since' },
        { head: 'until' },
        { head: 'by' },
        { head: 'why', flex: true },
      ],
      rows.map((row) => [
        row.serverId,
        row.aggregate,
        when(row.sinceMs, now()),
        row.untilMs === null ? 'released' : when(row.untilMs, now()),
        row.by,
        row.text,
      ]),
    ),
  );
}
