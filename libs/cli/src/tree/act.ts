import type { Command } from 'commander';
import type { CellsPlanOptions, CellsStatusOptions } from '../commands/cells.ts';
import type { DrainOptions, UndrainOptions } from '../commands/drain.ts';
import type { EvaluateOptions } from '../commands/evaluate.ts';
import type { SkipOptions } from '../commands/log.ts';
import type { AnswerOptions, CloseOptions, TargetOptions } from '../commands/operator.ts';
import type { QuarantineAddOptions, QuarantineListOptions } from '../commands/quarantine.ts';
import { examples } from '../grammar/help.ts';
import {
  type OperatorOptions,
  operatorCommand,
  stepNumbers,
  wholeNumber,
  withAggregate,
  withConfig,
  withOutput,
} from '../grammar/shared.ts';
import type { Shell } from '../shell.ts';

const addressed = (command: Command): Command =>
  withAggregate(operatorCommand(command), 'Aggregate, or several: a,b (optional when only one is in scope)');

/** Commands of people: each is an event on the log. */
export function actCommands(program: Command, shell: Shell): void {
  pauseCommands(program, shell);
  answerCommands(program, shell);
  stopCommands(program, shell);
  closeCommand(program, shell);
  evaluateCommand(program, shell);
  drainCommands(program, shell);
  cellsCommands(program, shell);
  quarantineCommands(program, shell);
  hostCommands(program, shell);
  logCommands(program, shell);
}

function pauseCommands(program: Command, shell: Shell): void {
  const pauses = [
    ['pause', 'Stop planning and starting moves; those that run continue'],
    ['resume', 'End a pause'],
  ] as const;
  for (const [name, description] of pauses)
    addressed(program.command(name))
      .description(description)
      .option('--all', 'All aggregates, also future ones')
      .addHelpText(
        'after',
        examples(
          [`kronos ${name}`, 'the only aggregate in scope'],
          [`kronos ${name} -a gpu -m "change 4711"`, 'one aggregate, and why'],
          [`kronos ${name} --all`, 'every aggregate; resume --all ends a pause --all'],
        ),
      )
      .action(async (options: TargetOptions) => (await import('../commands/operator.ts')).pause(shell, name, options));
}

function answerCommands(program: Command, shell: Shell): void {
  const answers = [
    ['approve', 'Release a proposed plan, whole or in part', 'steps that they depend on are approved too'],
    ['reject', 'Reject a proposed plan, whole or in part', 'steps that depend on them are rejected too'],
  ] as const;
  for (const [name, description, also] of answers)
    operatorCommand(program.command(name))
      .description(description)
      .argument('[plan]', 'Plan id (optional when only one plan waits)')
      .option('--step <numbers>', `Only these steps, e.g. 1,3; ${also}`, stepNumbers)
      .addHelpText(
        'after',
        `${examples(
          ['kronos plans', 'which plans wait'],
          [`kronos ${name}`, 'show the only plan that waits, and ask'],
          [`kronos ${name} gpu-29537 --step 1,3`, 'two steps of it'],
        )}\n\nThe first answer on the log counts. Exit status 1: too late, or no step waits for approval.`,
      )
      .action(async (planId: string | undefined, options: AnswerOptions) =>
        (await import('../commands/operator.ts')).answerPlan(shell, name, planId, options),
      );
}

function stopCommands(program: Command, shell: Shell): void {
  const stops = [
    ['cancel', 'Cancel released moves; running migrations are aborted'],
    ['abort', 'Abort running migrations; cancel moves not yet started'],
  ] as const;
  for (const [name, description] of stops)
    operatorCommand(program.command(name))
      .description(description)
      .argument('<task...>', 'Task ids, as in kronos status')
      .addHelpText(
        'after',
        `${examples(
          ['kronos status', 'list the tasks in flight'],
          [`kronos ${name} gpu-29537-s2`, 'one move'],
        )}\n\nExit status 1: too late, the move has ended.`,
      )
      .action(async (tasks: string[], options: OperatorOptions) =>
        (await import('../commands/operator.ts')).commandTasks(shell, name, tasks, options),
      );
}

function closeCommand(program: Command, shell: Shell): void {
  operatorCommand(program.command('close'))
    .description('End a started task that nothing else can end, and free its slots')
    .argument('<task...>', 'Task ids, as in kronos status')
    .option('--force', 'Without an abort, and whatever Nova shows: a migration that runs on counts towards no limit')
    .addHelpText(
      'after',
      `${examples(
        ['kronos abort gpu-29537-s2', 'first: ask Nova to abort it'],
        ['kronos close gpu-29537-s2 -m "row lost with the database"', 'if Nova cannot, end the task in Kronos'],
        ['kronos close gpu-29537-s2 --force -m "cell lost"', 'the source host is off for good'],
      )}\n\nWhile Nova works on a live migration, Kronos asks it to abort first. The task ends when Nova shows that it no longer works on the VM; until then, and while Nova or the VM's cell does not answer, the move counts towards the concurrency limits. With --force the task ends within a minute all the same.\nExit status 1: too late, the move has ended.`,
    )
    .action(async (tasks: string[], options: CloseOptions) =>
      (await import('../commands/operator.ts')).commandTasks(shell, 'close', tasks, options),
    );
}

function evaluateCommand(program: Command, shell: Shell): void {
  addressed(program.command('evaluate'))
    .description('Take a snapshot and decide now, without waiting for the next cycle')
    .option('--all', 'All aggregates in scope')
    .option('--wait <duration>', 'Wait this long for the decision; 0: do not wait', '60s')
    .addHelpText(
      'after',
      `${examples(
        ['kronos evaluate', 'decide on the cloud as it is now'],
        ['kronos evaluate -a gpu --wait 0', 'request it, and do not wait'],
      )}\n\nPauses and cooldowns block it as they block any cycle. Exit status 1: no decision in time.`,
    )
    .action(async (options: EvaluateOptions) =>
      (await import('../commands/evaluate.ts')).requestEvaluation(shell, options),
    );
}

function logCommands(program: Command, shell: Shell): void {
  const log = program.command('log').description('Repair the event log');
  withOutput(withConfig(log.command('skip')))
    .description('Skip an event that cannot be read, so that its aggregate is planned again')
    .argument('<sequence>', 'Sequence of the event on the log, or a range: 12-40')
    .requiredOption('-r, --reason <text>', 'Reason, recorded on the log')
    .option('--force', 'Skip an event that a newer version of Kronos may read')
    .addHelpText(
      'after',
      examples([
        'OS_NATS__USER=custodian kronos log skip 4711 --reason "garbage, change 42"',
        'kronos status names the event',
      ]),
    )
    .action(async (text: string, options: SkipOptions) =>
      (await import('../commands/log.ts')).skip(shell, text, options),
    );
}

function drainCommands(program: Command, shell: Shell): void {
  withAggregate(operatorCommand(program.command('drain')))
    .description('Show what a drain would do, and empty hosts: disable the service, then move the VMs away')
    .argument('[host...]', 'Service hosts, as in kronos hosts')
    .option('-r, --reason <text>', 'Reason, shown in Nova and recorded on the log; the same as --comment')
    .option('-y, --yes', 'Drain the hosts; without it, show what would happen and ask')
    .option('--watch', 'Show the progress until every host is empty')
    .option(
      '--max-parallel <number>',
      'Drain at most this many at a time, and wait until all are empty',
      wholeNumber('--max-parallel', 1),
    )
    .option('--all', 'Every host of the aggregate; only with --one-by-one')
    .option('--one-by-one', 'Empty one host, run the hook, enable the host, continue with the next')
    .option('--hook <command>', 'Command to run on each empty host; $KRONOS_HOST and $KRONOS_AGGREGATE name it')
    .option('--hook-timeout <duration>', 'Stop the hook, and the run, after this time', '1h')
    .addHelpText(
      'after',
      `${examples(
        ['kronos drain compute-07', 'show where each VM would go, and which are stuck'],
        ['kronos drain compute-07 --yes --watch -r "change 4711"', 'empty it'],
        ['kronos drain compute-07 compute-08 --yes --max-parallel 1', 'one after the other'],
        [
          "kronos drain --all -a gpu --one-by-one --hook 'ssh $KRONOS_HOST reboot-and-wait' --yes",
          'rolling maintenance',
        ],
      )}\n\nPauses, cooldowns and approval apply as to any move. A drain ends with kronos undrain, or when somebody enables the host.\nExit status 1: a drain is stuck, or the hook failed; the host stays disabled.`,
    )
    .action(async (hosts: string[], options: DrainOptions) =>
      (await import('../commands/drain.ts')).drain(shell, hosts, options),
    );

  withAggregate(operatorCommand(program.command('undrain')))
    .description('End drains: enable the services that Kronos disabled, unless somebody has changed them since')
    .argument('<host...>', 'Hosts that are being drained, as in kronos status')
    .option('--watch', 'Wait until every drain has ended')
    .addHelpText(
      'after',
      `${examples(['kronos undrain compute-07', 'let it take VMs again'])}\n\nA host that somebody else disabled stays disabled. Released moves continue: kronos tasks lists them.`,
    )
    .action(async (hosts: string[], options: UndrainOptions) =>
      (await import('../commands/drain.ts')).undrain(shell, hosts, options),
    );
}

function hostCommands(program: Command, shell: Shell): void {
  const host = program.command('host').description('Close the breakers of hosts');

  operatorCommand(host.command('release'))
    .description('Close the breaker of hosts: they are destinations again')
    .argument('<host...>', 'Hosts that the breaker excludes, as in kronos status')
    .addHelpText('after', examples(['kronos host release compute-07', 'it is repaired']))
    .action(async (hosts: string[], options: OperatorOptions) =>
      (await import('../commands/host.ts')).hostRelease(shell, hosts, options),
    );
}

function cellsCommands(program: Command, shell: Shell): void {
  const cells = program.command('cells').description('Move servers between cells: plan, follow, confirm and revert');

  operatorCommand(cells.command('plan'))
    .description('Propose a plan that moves servers to an aggregate of another cell')
    .requiredOption('--from <name...>', 'Aggregate, or hosts of one aggregate, whose servers leave')
    .requiredOption('--to <aggregate>', 'Target aggregate')
    .option('--flavor-map <file>', 'YAML file of OLD-FLAVOR: NEW-FLAVOR; these servers are resized')
    .option('--server <server...>', 'Only these servers, by uuid or name')
    .option('--project <id>', 'Only servers of this project')
    .option('--limit <number>', 'Move at most this many servers', wholeNumber('--limit', 1))
    .option('--wait <duration>', 'Wait this long for the plan', '120s')
    .addHelpText(
      'after',
      `${examples(
        ['kronos cells plan --from old --to new', 'show what can move, what cannot and why'],
        ['kronos cells plan --from old-07 --to new --limit 10', 'ten servers of one host'],
        ['kronos cells plan --from old --to new --flavor-map map.yaml', 'leave old hardware'],
      )}\n\nThe plan waits for kronos approve. The servers are off for a while, the stopped ones stay stopped.\nExit status 1: nothing can move, or no plan in time.`,
    )
    .action(async (options: CellsPlanOptions) => (await import('../commands/cells.ts')).cellsPlan(shell, options));

  withOutput(withAggregate(withConfig(cells.command('status'))))
    .description('Show waiting and running plans between cells, and the stage of each move')
    .addHelpText('after', examples(['kronos cells status', 'all of them']))
    .action(async (options: CellsStatusOptions) => (await import('../commands/cells.ts')).cellsStatus(shell, options));

  const settles = [
    ['confirm', 'Confirm moves that wait in VERIFY_RESIZE: the servers stay where they are'],
    ['revert', 'Revert moves: the servers go back as soon as Nova allows it'],
  ] as const;
  for (const [name, description] of settles)
    operatorCommand(cells.command(name))
      .description(description)
      .argument('<task...>', 'Task ids, as in kronos cells status')
      .addHelpText(
        'after',
        `${examples([`kronos cells ${name} old-cells-4711-s2`, 'one move'])}\n\nThe first command counts. Exit status 1: too late, the move has ended.`,
      )
      .action(async (tasks: string[], options: OperatorOptions) =>
        (await import('../commands/operator.ts')).commandTasks(shell, name, tasks, options),
      );
}

function quarantineCommands(program: Command, shell: Shell): void {
  const quarantine = program.command('quarantine').description('List, set and release quarantines of VMs');

  withOutput(withAggregate(withConfig(quarantine.command('list'))))
    .description('List the VMs in quarantine, with reason and end')
    .addHelpText('after', examples(['kronos quarantine list', 'all of them']))
    .action(async (options: QuarantineListOptions) =>
      (await import('../commands/quarantine.ts')).quarantineList(shell, options),
    );

  withAggregate(
    operatorCommand(quarantine.command('add')),
    'Aggregate of the VM (default: found in the newest snapshots)',
  )
    .description('Quarantine a VM for a time, or until it is released')
    .argument('<vm>', 'Uuid or name of the server')
    .option('--for <duration>', 'Duration: 3600, 90m, 2d (default: until released)')
    .addHelpText(
      'after',
      examples(
        ['kronos quarantine add db-7 --for 8h -m "backup window"', 'by name, for a while'],
        ['kronos quarantine add 6d1f0d5e-8a34-4a4c-8d3b-0a4a3d2a7b11', 'by uuid, until released'],
      ),
    )
    .action(async (vm: string, options: QuarantineAddOptions) =>
      (await import('../commands/quarantine.ts')).quarantineAdd(shell, vm, options),
    );

  operatorCommand(quarantine.command('release'))
    .description('Release VMs from quarantine')
    .argument('<vm...>', 'Uuids or names of servers')
    .addHelpText('after', examples(['kronos quarantine release db-7', 'Kronos may move it again']))
    .action(async (vms: string[], options: OperatorOptions) =>
      (await import('../commands/quarantine.ts')).quarantineRelease(shell, vms, options),
    );
}
