import { healthCheck } from '@kronos/connect';
import type { LogView } from '@kronos/eventlog';
import type { LogState } from '@kronos/projections';
import type { Archiver } from './archive/archive.ts';
import type { LedgerInput } from './memory/input.ts';
import type { SkewWatch } from './memory/skew.ts';

export type Checked = {
  readonly view: LogView<LogState>;
  readonly skew: SkewWatch;
  readonly archiver: Archiver | null;
};

/** Adds what the ledger must have to be ready. */
export function addChecks({ log, http, clock, ownClock }: LedgerInput, { view, skew, archiver }: Checked): void {
  http.check('nats', () => healthCheck(log.healthy()));
  http.check('log', () => healthCheck(view.healthy()));
  http.check('clock', () => {
    const own = ownClock.problem();
    if (own !== null) return { ok: false, reason: own };
    const wrong = skew.skewed(clock.now()).map(({ writer, seconds }) => `${writer} (${seconds.toFixed(1)} s)`);
    return wrong.length === 0
      ? { ok: true }
      : { ok: false, reason: `clocks differ from the NATS server's by more than max_clock_skew: ${wrong.join(', ')}` };
  });
  if (archiver !== null)
    http.check('archive', () => (archiver.trouble === null ? { ok: true } : { ok: false, reason: archiver.trouble }));
}
