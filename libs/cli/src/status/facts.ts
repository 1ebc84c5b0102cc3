import { collectFacts, type Facts } from '@kronos/status';
import { currentState, type OpenLog } from '../open.ts';
import type { Shell } from '../shell.ts';

/** Reads the facts of a status from the log of a session. */
export const readFacts = async (shell: Shell, { log, config, scope }: OpenLog): Promise<Facts> =>
  collectFacts({
    log,
    state: await currentState(shell, log),
    scope,
    maxClockSkewMs: config.engine.maxClockSkew * 1000,
    clock: shell.now,
  });
