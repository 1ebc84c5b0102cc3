import { errorText } from '@kronos/contracts';
import type { Logger } from '@kronos/telemetry';
import { z } from 'zod';

/** How a NATS server writes: each message before its acknowledgement, every so often, or not known. */
export type Durability = { readonly url: string } & (
  | { readonly writes: 'always' }
  | { readonly writes: 'later'; readonly everySeconds: number }
  | { readonly writes: 'unknown'; readonly text: string }
);

const TIMEOUT_MS = 5_000;
const NS_PER_SECOND = 1e9;

/** Source: nats-server, `JetStreamConfig` in the answer of `/jsz`. */
const jszSchema = z.object({
  config: z.object({ sync_always: z.boolean().default(false), sync_interval: z.number().default(120 * NS_PER_SECOND) }),
});

/** Asks the monitoring address of each server (`http://nats-1:8222`). Never throws. */
export const readDurability = (urls: readonly string[]): Promise<Durability[]> => Promise.all(urls.map(ask));

async function ask(url: string): Promise<Durability> {
  try {
    const answer = await fetch(new URL('/jsz', url), { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!answer.ok) return { url, writes: 'unknown', text: `it answers ${answer.status} to /jsz` };
    const { config } = jszSchema.parse(await answer.json());
    if (config.sync_always) return { url, writes: 'always' };
    return { url, writes: 'later', everySeconds: config.sync_interval / NS_PER_SECOND };
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return { url, writes: 'unknown', text: errorText(cause) };
  }
}

/** Says why acknowledged events may be lost with a server; null: they are not. */
export function durabilityText(found: Durability): string | null {
  if (found.writes === 'always') return null;
  if (found.writes === 'unknown')
    return `${found.url} does not say whether acknowledged events are on disk: ${found.text}`;
  return `the NATS server at ${found.url} writes to its disk every ${found.everySeconds} s: a power failure loses events that it has acknowledged; set sync_interval: always in its block jetstream`;
}

/** Warns at start of each server that may lose acknowledged events. */
export async function logDurability(urls: readonly string[], logger: Logger): Promise<void> {
  for (const found of await readDurability(urls)) {
    const text = durabilityText(found);
    if (text !== null) logger.warn({ url: found.url }, text);
  }
}
