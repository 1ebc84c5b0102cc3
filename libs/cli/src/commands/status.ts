import { setTimeout as delay } from 'node:timers/promises';
import { collectFacts, type Facts, statusOf, unreadable } from '@kronos/status';
import type { Command } from 'commander';
import { type ConfigOption, configOf, currentState, withConfig, withSession } from '../open.ts';
import type { Shell } from '../shell.ts';
import { type Place, renderStatus } from '../status/render.ts';
import { parseDuration } from '../times.ts';
import { examples, printJson } from './help.ts';

/** Time from one look to the next while the command waits. */
const LOOK_AGAIN_MS = 1000;

export function statusCommand(program: Command, shell: Shell): void {
  withConfig(program.command('status'))
    .description('Show health, current activity and pending work')
    .option('--json', 'Print everything as JSON')
    .option('--wait <duration>', 'Wait until all is well, at most this long', '0')
    .addHelpText(
      'after',
      `${examples(
        ['kronos status', 'one screen'],
        ['watch -c kronos status', 'again and again'],
        ['kronos status --wait 2m', 'after a start or an upgrade'],
        ['kronos status --json | jq .alarms', 'for monitoring'],
      )}\n\nExit status: 0 all is well, 1 there is something to look at.`,
    )
    .action(async (options: ConfigOption & { json?: boolean; wait: string }) => {
      const untilMs = performance.now() + parseDuration('--wait', options.wait) * 1000;
      let { facts, place } = await look(shell, options);
      let status = statusOf(facts);
      while (!status.well && performance.now() < untilMs) {
        await delay(LOOK_AGAIN_MS);
        ({ facts, place } = await look(shell, options));
        status = statusOf(facts);
      }
      if (options.json === true) printJson(shell.terminal, { ...place, ...status });
      else shell.terminal.out(renderStatus(shell.terminal, status, place));
      if (!status.well) process.exitCode = 1;
    });
}

/** The facts; also when the event log cannot be read, which is one of them. */
async function look(shell: Shell, options: ConfigOption): Promise<{ facts: Facts; place: Place }> {
  try {
    return await withSession(shell, options, async ({ log, config, scope }) => ({
      facts: await collectFacts({
        log,
        state: await currentState(shell, log),
        scope,
        maxClockSkewMs: config.engine.maxClockSkew * 1000,
        clock: shell.now,
      }),
      place: { server: log.server.version, servers: config.nats.servers },
    }));
  } catch (error) {
    const facts = unreadable(error, shell.now());
    if (facts === null) throw error;
    return { facts, place: { server: null, servers: configOf(shell, options).nats.servers } };
  }
}
