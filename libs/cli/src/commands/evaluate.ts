import { type CycleDecided, commandSnapshotId, streamNames } from '@kronos/contracts';
import { collect } from '@kronos/replay';
import type { Command } from 'commander';
import { withSession } from '../open.ts';
import { control } from '../operator/control.ts';
import { chooseAddress, chooseAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { count, figure, paint } from '../terminal.ts';
import { parseDuration, span } from '../times.ts';
import { examples, printJson } from './help.ts';
import { give, type OperatorOptions, operatorCommand } from './operator.ts';

type EvaluateOptions = OperatorOptions & { readonly all?: boolean; readonly wait: string };

export function evaluateCommand(program: Command, shell: Shell): void {
  operatorCommand(program.command('evaluate'))
    .description('Take a snapshot and decide now, without waiting for the next cycle')
    .argument('[aggregate]', 'Aggregate (optional when only one is in scope)')
    .option('--all', 'All aggregates in scope')
    .option('--wait <duration>', 'Wait this long for the decision; 0: only ask', '60s')
    .addHelpText(
      'after',
      `${examples(
        ['kronos evaluate', 'what would be decided now'],
        ['kronos evaluate gpu --wait 0', 'ask, and do not wait'],
      )}\n\nGates hold as in any cycle: pauses and cooldowns are not passed. Exit status 1: no decision came in time.`,
    )
    .action(async (aggregate: string | undefined, options: EvaluateOptions) => {
      const waitMs = parseDuration('--wait', options.wait) * 1000;
      await withSession(shell, options, async (session) => {
        const all = options.all === true;
        const address = chooseAddress(session.scope, aggregate, all, 'evaluate');
        const aggregates = chooseAggregates(session.scope, aggregate, all, 'evaluate');
        const from = (await session.log.lastSequence(streamNames.log)) + 1;
        const told = await give(shell, session, options, (_, asking) =>
          control('evaluation.requested', address, { purpose: 'evaluate' }, asking),
        );
        if (waitMs === 0) {
          if (options.json === true) printJson(shell.terminal, told);
          else shell.terminal.out(`${told.text}: ${told.commandId}\n`);
          return;
        }
        const ids = new Map(aggregates.map((name) => [commandSnapshotId(name, told.commandId), name]));
        const decided = await collect(
          session.log.tail({ families: ['plans'], aggregates, since: from }),
          (message) => (message.type === 'cycle.decided' && ids.has(message.data.snapshotId) ? message : null),
          ids.size,
          AbortSignal.timeout(waitMs),
        );
        if (options.json === true)
          printJson(shell.terminal, { ...told, decisions: decided.map((event) => event.data) });
        else {
          for (const event of decided) shell.terminal.out(describe(event));
          const silent = [...ids].filter(([id]) => !decided.some((event) => event.data.snapshotId === id));
          for (const [, name] of silent)
            shell.terminal.err(
              `${name}: no decision within ${span(waitMs)}. Is the scorer running, and the planner? kronos status says.\n`,
            );
        }
        if (decided.length < ids.size) process.exitCode = 1;
      });

      function describe({ aggregate: name, data }: CycleDecided): string {
        const steps = data.plan === null ? '' : ` (${count(data.plan.steps.length, 'move')}, ${data.release})`;
        const imbalance = data.before.combined === null ? '' : `, combined imbalance ${figure(data.before.combined)}`;
        return `${name}: ${paint(shell.terminal, data.outcome === 'planned' ? 'green' : 'yellow', data.outcome)}${steps}: ${data.reason.text}${imbalance}\n`;
      }
    });
}
