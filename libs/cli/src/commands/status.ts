import { setTimeout as delay } from 'node:timers/promises';
import { type Facts, statusOf, unreadableFacts } from '@kronos/status';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { configOf, withSession } from '../open.ts';
import { answer } from '../output.ts';
import { filterAggregates } from '../scope.ts';
import type { Shell } from '../shell.ts';
import { readFacts } from '../status/facts.ts';
import { renderStatus, type StatusOrigin } from '../status/render.ts';
import { parseDuration } from '../times.ts';

export type StatusOptions = ConfigOption & AggregateOption & OutputOption & { readonly wait: string };

/** Time from one look to the next while the command waits. */
const LOOK_AGAIN_MS = 1000;

/** kronos status. */
export async function status(shell: Shell, options: StatusOptions): Promise<void> {
  const untilMs = performance.now() + parseDuration('--wait', options.wait);
  let { facts, place } = await look(shell, options);
  let found = statusOf(facts);
  while (!found.well && performance.now() < untilMs) {
    await delay(LOOK_AGAIN_MS);
    ({ facts, place } = await look(shell, options));
    found = statusOf(facts);
  }
  await answer(shell, options, { ...place, ...found }, (terminal) => renderStatus(terminal, found, place));
  if (!found.well) process.exitCode = 1;
}

/** The facts; also when the event log cannot be read, which is one of them. */
async function look(
  shell: Shell,
  options: ConfigOption & AggregateOption,
): Promise<{ facts: Facts; place: StatusOrigin }> {
  try {
    return await withSession(shell, options, async (session) => ({
      facts: await readFacts(shell, { ...session, scope: filterAggregates(session.scope, options.aggregate) }),
      place: {
        only: options.aggregate ?? null,
        server: session.log.server.version,
        servers: session.config.nats.servers,
      },
    }));
  } catch (error) {
    const facts = unreadableFacts(error, shell.now());
    if (facts === null) throw error;
    return { facts, place: { only: null, server: null, servers: configOf(shell, options).nats.servers } };
  }
}
