import { families } from '@kronos/contracts/names';
import { type Command, Option } from 'commander';
import type { ListOptions, TasksOptions, VmsOptions } from '../commands/lists/filters.ts';
import type { PlanOptions } from '../commands/plan.ts';
import type { PlansOptions } from '../commands/plans.ts';
import type { StatusOptions } from '../commands/status.ts';
import type { TapOptions } from '../commands/tap.ts';
import type { TopOptions } from '../commands/top.ts';
import { DEFAULT_FAMILIES } from '../families.ts';
import { examples } from '../grammar/help.ts';
import { names, repeated, wholeNumber, withAggregate, withConfig, withOutput } from '../grammar/shared.ts';
import type { Shell } from '../shell.ts';

/** Commands that show what is there and what happens. */
export function seeCommands(program: Command, shell: Shell): void {
  withOutput(withAggregate(withConfig(program.command('status'))))
    .description('Show health, current activity and pending work')
    .option('--wait <duration>', 'Wait until all is well, at most this long', '0')
    .addHelpText(
      'after',
      `${examples(
        ['kronos status', 'one screen'],
        ['FORCE_COLOR=1 watch -c kronos status', 'repeat every 2 seconds'],
        ['kronos status --wait 2m', 'after a start or an upgrade'],
        ['kronos status -o json | jq .alarms', 'for monitoring'],
      )}\n\nExit status: 0 all is well, 1 there is a problem.`,
    )
    .action(async (options: StatusOptions) => (await import('../commands/status.ts')).status(shell, options));

  withAggregate(withConfig(program.command('top')))
    .description('Watch hosts by value and moves in flight')
    .option('--interval <seconds>', 'Draw again after this many seconds', wholeNumber('--interval', 1), 5)
    .option('--once', 'Print one picture and end')
    .addHelpText('after', examples(['kronos top', 'until Ctrl-C'], ['kronos top -a gpu --once', 'one picture']))
    .action(async (options: TopOptions) => (await import('../commands/top.ts')).top(shell, options));

  listCommands(program, shell);

  withOutput(withAggregate(withConfig(program.command('plans'))))
    .description('List recent plans and their outcome')
    .option('-s, --since <time>', 'Start at this time: 1d, 2h, 12:30, all', '1d')
    .addHelpText('after', examples(['kronos plans', 'of the last day'], ['kronos plans --since all', 'all plans']))
    .action(async (options: PlansOptions) => (await import('../commands/plans.ts')).plans(shell, options));

  planCommands(program, shell);

  withOutput(withAggregate(withConfig(program.command('tap'))))
    .description('Follow snapshots, decisions, results and commands as they happen')
    .argument('[families...]', `Subjects: ${families.join(', ')} (default: ${DEFAULT_FAMILIES.join(', ')})`)
    .option('-t, --type <types...>', 'Only messages of these types; part of a name is enough')
    .option('--vm <text>', 'Only messages about this VM: uuid, name, or part of them')
    .option('-s, --since <time>', 'Begin in the past: 10m, 2h, 12:30, 2026-03-01T12:30Z, or all')
    .option('--end', 'End after the last stored message')
    .addHelpText(
      'after',
      examples(
        ['kronos tap', 'follow from now on, until Ctrl-C'],
        ['kronos tap --since 1h --end', 'the last hour'],
        ['kronos tap results --type failed --since 1d --end', 'failed migrations of a day'],
        ['kronos tap --vm db-7 --since all --end', 'all messages about a VM'],
        ['kronos tap plans -o json | jq .data.reason.text', 'for scripts: one message a line'],
      ),
    )
    .action(async (wanted: string[], options: TapOptions) =>
      (await import('../commands/tap.ts')).tap(shell, wanted, options),
    );
}

function listCommands(program: Command, shell: Shell): void {
  const list = (name: string, description: string): Command =>
    withOutput(withAggregate(withConfig(program.command(name)))).description(description);

  list('aggregates', 'List the aggregates in scope and their activity')
    .addHelpText('after', examples(['kronos aggregates', 'one line for each']))
    .action(async (options: ListOptions) =>
      (await import('../commands/lists/aggregates.ts')).listAggregates(shell, options),
    );

  list('hosts', 'List hosts with their value for each policy')
    .option('--host <name>', 'Only this host, or several: a,b', names)
    .option('--vm <vm>', 'Only the host of this VM: uuid or name')
    .addHelpText('after', examples(['kronos hosts -a gpu', 'one aggregate'], ['kronos hosts -o wide', 'with zones']))
    .action(async (options: VmsOptions) => (await import('../commands/lists/hosts.ts')).listHosts(shell, options));

  list('vms', 'List VMs, their hosts and why they may not move')
    .option('--host <name>', 'Only VMs of this host, or of several: a,b', names)
    .option('--vm <vm>', 'Only this VM: uuid or name')
    .addHelpText('after', examples(['kronos vms --host compute-07', 'the VMs of a host']))
    .action(async (options: VmsOptions) => (await import('../commands/lists/vms.ts')).listVms(shell, options));

  list('tasks', 'List the tasks in flight')
    .option('--host <name>', 'Only tasks from or to this host, or several: a,b', names)
    .option('--vm <vm>', 'Only tasks of this VM: uuid or name')
    .option('--ended', 'List recently ended tasks, too')
    .addHelpText('after', examples(['kronos tasks', 'moves in flight'], ['kronos tasks --ended', 'also recent moves']))
    .action(async (options: TasksOptions) => (await import('../commands/lists/tasks.ts')).listTasks(shell, options));
}

function planCommands(program: Command, shell: Shell): void {
  const plan = withOutput(program.command('plan'))
    .description('Plan offline from a file, or show a plan')
    .option('--cluster <file>', 'Cluster file: policies, hosts, VMs and groups as JSON (docs/cli.md)')
    .option('--snapshot <file>', 'Recorded snapshot')
    .option('-k, --max-migrations <n>', 'Budget; required with --cluster', wholeNumber('--max-migrations'))
    .addOption(
      new Option('--mode <mode>', 'Spread the load, or pack it on few hosts (--cluster)').choices(['spread', 'pack']),
    )
    .addOption(new Option('--planner <name>', 'Plan with this planner (default: search)').choices(['search', 'greedy']))
    .option('--set <option=value>', 'Set an option of kronos.conf that decisions read; repeatable', repeated)
    .option('--cooldowns <file>', 'Start from a cooldowns.json (--snapshot)')
    .addHelpText(
      'after',
      `${examples(
        ['kronos plan --cluster mine.json -k 20', 'show what Kronos would move'],
        ['kronos plan --cluster mine.json -k 20 --mode pack -o json', 'empty hosts instead'],
        ['kronos plan --snapshot case/snapshots/gpu/FILE.json', 'decide on one recorded snapshot'],
        ['kronos plan show', 'the newest plan'],
        ['kronos plan show gpu-29537', 'this plan'],
      )}\n\nIt reads only the file and moves nothing. It needs no configuration and no NATS.`,
    )
    .action(async (options: PlanOptions) => (await import('../commands/plan.ts')).planOffline(shell, options));

  withOutput(withAggregate(withConfig(plan.command('show'))))
    .description('Show a plan, its steps, their reasons and their outcome')
    .argument('[plan]', 'Plan id (default: the newest)')
    .addHelpText('after', examples(['kronos plan show', 'the newest plan'], ['kronos plan show gpu-29537', 'this one']))
    .action(async (id: string | undefined, options: PlansOptions) =>
      (await import('../commands/plans.ts')).planShow(shell, id, options),
    );
}
