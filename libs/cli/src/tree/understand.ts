import { type Command, Option } from 'commander';
import type { AdviseOptions } from '../commands/advise.ts';
import type { BacktestOptions } from '../commands/backtest.ts';
import type { FitOptions, HeadroomOptions } from '../commands/capacity.ts';
import type { EvidenceOptions, EvidenceVerifyOptions } from '../commands/evidence.ts';
import type { ExplainOptions } from '../commands/explain.ts';
import type { RecordCommandOptions } from '../commands/record.ts';
import type { ReplayOptions } from '../commands/replay/input.ts';
import type { ReportCommandOptions } from '../commands/report.ts';
import { examples } from '../grammar/help.ts';
import {
  operatorCommand,
  repeated,
  stepNumbers,
  wholeNumber,
  withAggregate,
  withConfig,
  withOutput,
} from '../grammar/shared.ts';
import type { Shell } from '../shell.ts';

function fitCommand(program: Command, shell: Shell): void {
  withAggregate(operatorCommand(program.command('fit')))
    .description('Count the VMs of a flavor that fit, and plan moves that make room for more')
    .option('--flavor <name>', 'Flavor of a VM in the newest snapshot')
    .option('--vcpus <n>', 'In place of --flavor: vCPUs', wholeNumber('--vcpus', 1))
    .option('--ram <mib>', 'In place of --flavor: RAM in MiB', wholeNumber('--ram', 1))
    .option('--disk <gib>', 'In place of --flavor: local disk in GiB', wholeNumber('--disk'))
    .option('--count <n>', 'Number of VMs', wholeNumber('--count', 1), 1)
    .option('-k, --max-migrations <n>', 'Budget of moves', wholeNumber('--max-migrations', 1))
    .option('--propose', 'Ask for a plan with the moves; it waits for kronos approve')
    .option('--wait <duration>', 'With --propose: wait this long for the plan', '120s')
    .addHelpText(
      'after',
      `${examples(
        ['kronos fit --flavor m1.large --count 10', 'do ten more fit?'],
        ['kronos fit --vcpus 8 --ram 32768', 'a flavor that no VM has yet'],
        ['kronos fit --flavor m1.large --count 10 -a gpu --propose', 'propose the moves that make room'],
      )}\n\nWithout --propose the moves are only shown. Exit status 1: even with moves too few fit, or no plan in time.`,
    )
    .action(async (options: FitOptions) => (await import('../commands/capacity.ts')).fitCommand(shell, options));
}

function headroomCommand(program: Command, shell: Shell): void {
  withOutput(withAggregate(withConfig(program.command('headroom'))))
    .description('Count the free slots per flavor, and find hosts for the VMs of hosts that fail')
    .option('--hosts <k>', 'Test failures of up to this many hosts', wholeNumber('--hosts'), 2)
    .option('--proof', 'Show for each failure where each VM would go')
    .addHelpText(
      'after',
      examples(
        ['kronos headroom', 'is there room for a host that fails?'],
        ['kronos headroom --hosts 1 --proof', 'where would its VMs go?'],
      ),
    )
    .action(async (options: HeadroomOptions) =>
      (await import('../commands/capacity.ts')).headroomCommand(shell, options),
    );
}

/** Commands that say why, and what if. */
export function understandCommands(program: Command, shell: Shell): void {
  explainCommands(program, shell);
  reportCommand(program, shell);
  fitCommand(program, shell);
  headroomCommand(program, shell);
  adviseCommand(program, shell);
  backtestCommand(program, shell);
  replayCommand(program, shell);
  evidenceCommands(program, shell);
  recordCommand(program, shell);
}

function reportCommand(program: Command, shell: Shell): void {
  withOutput(withAggregate(withConfig(program.command('report'))))
    .description('Report what Kronos did, or would have done in dry run')
    .argument('[directory]', 'Recorded directory (default: the running system)')
    .option('-s, --since <time>', 'Start at this time: 1d, 2h, 2026-03-01T12:30Z, all', '7d')
    .option('-u, --until <time>', 'End at this time')
    .option('--html <file>', 'Write a page with charts, too')
    .addHelpText(
      'after',
      `${examples(
        ['kronos report', 'the last seven days'],
        ['kronos report --since 30d --html report.html', 'write a page with charts'],
        ['kronos report case --since all', 'of a recorded directory'],
      )}\n\nOnly the event log is read. To simulate the range with other options: kronos replay --set.`,
    )
    .action(async (directory: string | undefined, options: ReportCommandOptions) =>
      (await import('../commands/report.ts')).report(shell, directory, options),
    );
}

function adviseCommand(program: Command, shell: Shell): void {
  withOutput(withAggregate(withConfig(program.command('advise'))))
    .description('Compare Nova, the policies and the exporters with the recorded history, and recommend changes')
    .option('-s, --since <time>', 'Judge thresholds and moves from this time on: 1d, 2h, 2026-03-01T12:30Z, all', '7d')
    .addHelpText(
      'after',
      `${examples(
        ['kronos advise', 'all aggregates, with the last seven days'],
        ['kronos advise -a gpu -o json', 'every VM and host of each finding'],
      )}\n\nThresholds are judged from a day of decisions on. With the credentials of [nova], weights and allocation ratios are compared, too.`,
    )
    .action(async (options: AdviseOptions) => (await import('../commands/advise.ts')).adviseCommand(shell, options));
}

function backtestCommand(program: Command, shell: Shell): void {
  withOutput(withAggregate(withConfig(program.command('backtest'))))
    .description('Show what Kronos would have done, from the history of Nova and Prometheus; needs no service')
    .option('-s, --since <time>', 'Start at this time: 30d, 2h, 2026-03-01T12:30Z', '30d')
    .option('-u, --until <time>', 'End at this time (default: now)')
    .option('--step <duration>', 'Time between two decisions: 5m, 60s, 1h', '5m')
    .option('--to <directory>', 'Directory of the recording; an interrupted run continues in it', 'kronos-backtest')
    .option('--html <file>', 'Write the report as a page with charts')
    .option('--rate <n>', 'Send at most this many requests per second', wholeNumber('--rate', 1), 5)
    .option('--decisions', 'Also decide each step as it was, in dry run, for kronos replay and kronos explain --in')
    .option(
      '--threads <n>',
      'Decide on this many threads; the output is the same (default: one per core)',
      wholeNumber('--threads', 1),
    )
    .addHelpText(
      'after',
      `${examples(
        ['kronos backtest --since 30d --html backtest.html', 'the last month, as a page for a manager'],
        ['kronos backtest --since 1d --step 1m -a gpu', 'one aggregate, step by step of a minute'],
        ['kronos replay kronos-backtest --set engine.cooldown=0', 'the same month with another option'],
      )}\n\nIt only reads. What neither Nova nor Prometheus has kept is counted and shown.\nExit status 130: interrupted; run the same command again to continue.`,
    )
    .action(async (options: BacktestOptions) => (await import('../commands/backtest.ts')).backtest(shell, options));
}

function replayCommand(program: Command, shell: Shell): void {
  withOutput(withAggregate(withConfig(program.command('replay'))))
    .description('Run recorded decisions again and compare them, or run them with changed options')
    .argument('[directory]', 'Recorded directory (default: the running system)')
    .option(
      '-s, --since <time>',
      'Start at this time: 2h, 12:30, 2026-03-01T12:30Z, all (default: the oldest snapshot)',
    )
    .option('-u, --until <time>', 'End at this time')
    .option('--strict', 'Treat differences to another planner version as failures')
    .option('--set <option=value>', 'What-if: change an option, such as engine.cooldown=0; repeatable', repeated)
    .addOption(new Option('--planner <name>', 'What-if: use this planner').choices(['search', 'greedy']))
    .option('--policies <file>', 'What-if: use this policies.yaml')
    .option('--cooldowns <file>', 'Cooldowns at the start (default: cooldowns.json of the directory)')
    .option('--what-if', 'What-if: execute every plan immediately, change nothing else')
    .option('--moves', 'List every simulated move')
    .option('--chart <file>', 'Draw recorded and simulated imbalance and moves into an SVG file')
    .option(
      '--threads <n>',
      'Decide on this many threads; the output is the same (default: one per core)',
      wholeNumber('--threads', 1),
    )
    .addHelpText(
      'after',
      `${examples(
        ['kronos replay --since 1d', 'compare every decision of a day with the log'],
        ['kronos replay case', 'the same for a recorded directory'],
        ['kronos replay --since 1d --set engine.cooldown=0 --chart a.svg', 'simulate without a cooldown'],
        ['kronos replay case --policies other.yaml --planner greedy', 'other thresholds, another planner'],
      )}\n\nExit status: 0 every decision is identical (what-if: it ran); 1 one differs or could not be run again, or the recording was changed; 2 the command was not understood; 130 it was interrupted: the output covers only the part that was done.`,
    )
    .action(async (directory: string | undefined, options: ReplayOptions) =>
      (await import('../commands/replay.ts')).replayCommand(shell, directory, options),
    );
}

function recordCommand(program: Command, shell: Shell): void {
  withAggregate(operatorCommand(program.command('record')))
    .description('Take a snapshot that is never planned, or copy a time range into a directory')
    .option('--to <directory>', 'Write readable files into a directory, with the log')
    .option(
      '-s, --since <time>',
      'With --to: copy the snapshots since this time instead of taking one now: 2h, 12:30, all',
    )
    .option('-u, --until <time>', 'With --since: copy up to this time')
    .option('--anonymize', 'With --to: replace names and ids consistently')
    .option('--wait <duration>', 'Wait this long for the snapshot', '60s')
    .addHelpText(
      'after',
      `${examples(
        ['kronos record', 'take a snapshot of every aggregate now, onto the stream'],
        ['kronos record -a gpu --to case', 'take one of gpu, into the directory case'],
        ['kronos record --to case --since 2h --anonymize', 'the last two hours, to attach to a bug report'],
        ['kronos replay case', 'run its decisions again'],
      )}\n\nA recording holds no secret. Taking a snapshot now needs the scorer; copying a range needs no service.`,
    )
    .action(async (options: RecordCommandOptions) => (await import('../commands/record.ts')).record(shell, options));
}

function evidenceCommands(program: Command, shell: Shell): void {
  const evidence = withOutput(withAggregate(withConfig(program.command('evidence'))))
    .description('Write decisions into one HTML file that makes them again in any browser')
    .option('--plan <id>', 'Take the decision that made this plan')
    .option('-s, --since <time>', 'Take the decisions since this time: 2h, 12:30, 2026-03-01T12:30Z')
    .option('-u, --until <time>', 'With --since: up to this time')
    .option('--in <directory>', 'Read a recorded directory instead of the running system')
    .option('--anonymize', 'Replace names and ids consistently')
    .option('--key <file>', 'Sign with this Ed25519 key (default: [ledger] evidence_key)')
    .option('--to <file>', 'HTML file to write', 'evidence.html')
    .addHelpText(
      'after',
      `${examples(
        ['kronos evidence --plan gpu-29537 --to plan.html', 'one decision, for the person who asks why'],
        ['kronos evidence --since 2h --anonymize --to case.html', 'two hours, to attach to a bug report'],
        ['kronos evidence verify case.html --key public.pem', 'check a file from somebody else'],
        ['kronos replay case.html', 'run its decisions again here'],
      )}\n\nA file takes at most 3 MB. It holds no secret.`,
    )
    .action(async (options: EvidenceOptions) => (await import('../commands/evidence.ts')).evidence(shell, options));

  withOutput(evidence.command('verify'))
    .description('Check every part, the chain and the signature of an evidence file, and make its decisions again')
    .argument('<file>', 'Evidence file')
    .option('--key <file>', 'Require the signature of this public key (PEM)')
    .addHelpText(
      'after',
      `${examples(['kronos evidence verify case.html', 'name what was changed in it'])}\n\nExit status 1: something was changed, the signature is wrong, or a decision differs.`,
    )
    .action(async (file: string, options: EvidenceVerifyOptions) =>
      (await import('../commands/evidence.ts')).evidenceVerify(shell, file, options),
    );
}

function explainCommands(program: Command, shell: Shell): void {
  const explain = program
    .command('explain')
    .description('Show why a VM moved, or why nothing moved, by running a recorded decision again');
  const sub = (name: string, description: string): Command =>
    withOutput(
      withAggregate(
        withConfig(explain.command(name))
          .description(description)
          .option(
            '--at <time>',
            'Explain the last decision at or before this time: 10m, 12:30, 2026-03-01T12:30Z (default: now)',
          )
          .option('--in <directory>', 'Read a recorded directory instead of the running system'),
      ),
    );

  sub('cycle', 'Show the result of a cycle: what blocked it, policies, refusals')
    .addHelpText(
      'after',
      examples(
        ['kronos explain cycle', 'show why nothing moves now'],
        ['kronos explain cycle --at 2h', 'the last cycle two hours ago'],
      ),
    )
    .action(async (options: ExplainOptions) => (await import('../commands/explain.ts')).explainCycle(shell, options));

  sub('plan', 'Show the quality of a plan and the reason for each step')
    .argument('[plan]', 'Plan id (default: the last plan)')
    .option(
      '--step <numbers>',
      'Show these steps in full: why this VM, why this destination, why no other',
      stepNumbers,
    )
    .addHelpText(
      'after',
      examples(
        ['kronos explain plan gpu-29537', 'the whole plan'],
        ['kronos explain plan gpu-29537 --step 2', 'one step'],
      ),
    )
    .action(async (planId: string | undefined, options: ExplainOptions) =>
      (await import('../commands/explain.ts')).explainPlan(shell, planId, options),
    );

  sub('vm', 'Show why a VM moves or stays')
    .argument('<vm>', 'Uuid or name of the server')
    .addHelpText(
      'after',
      examples(
        ['kronos explain vm db-7', 'why it stays, or where it moves'],
        ['kronos explain vm db-7 --at 12:30', 'the same at 12:30'],
      ),
    )
    .action(async (vm: string, options: ExplainOptions) =>
      (await import('../commands/explain.ts')).explainVm(shell, vm, options),
    );

  sub('host', 'Show the VMs of a host and why it gains or loses VMs')
    .argument('<host>', 'Nova service host')
    .addHelpText('after', examples(['kronos explain host compute-07', 'its VMs, and why it gains or loses VMs']))
    .action(async (host: string, options: ExplainOptions) =>
      (await import('../commands/explain.ts')).explainHost(shell, host, options),
    );
}
