import type { Clock } from '@kronos/clock';
import type { Logger } from '@kronos/telemetry';
import { type HangingCall, hangingText } from './reads.ts';

const LOOK_MS = 5_000;
/** While a call hangs, the log says so again after this time. */
const AGAIN_MS = 60_000;

/** Logs the calls that hang, while they do: a scorer that waits for an API would be silent for minutes. Returns what ends it. */
export function reportHanging(from: {
  readonly hanging: () => readonly HangingCall[];
  readonly clock: Pick<Clock, 'every' | 'monotonic'>;
  readonly logger: Pick<Logger, 'warn' | 'info'>;
}): () => void {
  const { hanging, clock, logger } = from;
  /** By API: when the log said so last. */
  const said = new Map<string, number>();
  return clock.every(LOOK_MS, () => {
    const now = hanging();
    for (const api of said.keys())
      if (!now.some(({ service }) => service === api)) {
        said.delete(api);
        logger.info({ api }, `${api} answers again, or the call was given up`);
      }
    for (const one of now) {
      const { service: api, call, ageMs, attempt } = one;
      const lastMs = said.get(api);
      if (lastMs !== undefined && clock.monotonic() - lastMs < AGAIN_MS) continue;
      said.set(api, clock.monotonic());
      logger.warn({ api, call, ageMs, attempt }, hangingText(one));
    }
  });
}
