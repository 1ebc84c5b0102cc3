import { setTimeout as delay } from 'node:timers/promises';
import { type Facts, statusOf, unreadableFacts } from '@kronos/status';
import type { AggregateOption, ConfigOption, OutputOption } from '../grammar/shared.ts';
import { configOf, withSession } from '../open.ts';
import { answer } from '../output.ts';
import { whileWaiting } from '../progress.ts';
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
  const atMostMs = parseDuration('--wait', options.wait);
  const { place, found } = await whileWaiting(
    shell,
    { what: 'everything to work', atMostMs },
    lookUntil(shell, options, atMostMs),
  );
  await answer(shell, options, { ...place, ...found }, (terminal) => renderStatus(terminal, found, place));
  if (!found.well) process.exitCode = 1;
}

/** Looks again until all is well, for at most so long. */
async function lookUntil(shell: Shell, options: StatusOptions, atMostMs: number) {
  const untilMs = performance.now() + atMostMs;
  for (;;) {
    const { facts, place } = await look(shell, options);
    const found = statusOf(facts);
    if (found.well || performance.now() >= untilMs) return { place, found };
    await delay(LOOK_AGAIN_MS);
  }
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
