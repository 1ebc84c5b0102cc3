import { systemClock } from '@kronos/clock';
import { type Actor, defaultStorageLimits } from '@kronos/contracts';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { appendEvents, type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import type { LogState } from '@kronos/projections';
import { foldAll, randomHistory } from '@kronos/projections/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { foldLog, verifyInBackground, writeCheckpoint } from './index.ts';

const by: Actor = { service: 'ledger', instance: 'test', version: '0.0.0' };
let server: NatsServer;
let log: EventLog;
beforeEach(async () => {
  server = await startNatsServer();
  log = await connectEventLog({ servers: [server.url], name: 'test' });
  await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu', 'general', 'web eu/1'] });
  await appendEvents(log, randomHistory({ seed: 8, cycles: 60 }));
});
afterEach(async () => {
  await log.close();
  await server.stop();
});

/** Writes a checkpoint that somebody with the ledger's credentials changed, and starts from it. */
async function startedFrom(forge: (state: LogState) => LogState): Promise<LogState | null> {
  const { state, anchor } = await foldAll(log.replay());
  await writeCheckpoint(log, forge(state), { anchor, by, nowMs: Date.now() });
  const found: { checkpoint: LogState | null } = { checkpoint: null };
  const view = await foldLog(log, {
    onCheckpoint(checkpoint) {
      found.checkpoint = checkpoint;
    },
  });
  await view.close();
  return found.checkpoint;
}

describe('a checkpoint that a fold started from', () => {
  it('is verified when it is what the log says', async () => {
    const checkpoint = await startedFrom((state) => state);
    const verification = verifyInBackground(log, checkpoint, systemClock);
    expect(verification).toMatchObject({ verified: false, verifiedTo: 0, checkpoint: checkpoint?.sequence });
    expect(await verification.done).toBeNull();
    expect(verification).toMatchObject({ verified: true, verifiedTo: checkpoint?.sequence });
  });

  it('is found when a pause or anything else was taken out of it, with its digest computed again', async () => {
    const forgeries: ((state: LogState) => LogState)[] = [
      (state) => ({
        ...state,
        aggregates: new Map(
          [...state.aggregates].map(([name, facts]) => [name, name === 'gpu' ? { ...facts, seen: new Set() } : facts]),
        ),
      }),
      (state) => ({ ...state, aggregates: new Map([...state.aggregates].filter(([name]) => name !== 'gpu')) }),
      (state) => ({ ...state, all: { ...state.all, seen: new Set(['forged']) } }),
    ];
    for (const forge of forgeries) {
      const checkpoint = await startedFrom(forge);
      if (checkpoint === null) throw new Error('the forged checkpoint was not used: it cannot be found either');
      const forged = verifyInBackground(log, forge(checkpoint), systemClock);
      expect(await forged.done).toMatch(`the checkpoint at event ${checkpoint.sequence} is wrong: `);
      expect(forged.verified).toBe(false);
    }
  });

  it('that is none needs no verification', async () => {
    const verification = verifyInBackground(log, null, systemClock);
    expect(verification).toMatchObject({ verified: true, checkpoint: null });
    expect(await verification.done).toBeNull();
  });

  it('is not started from once checkpoints are distrusted', async () => {
    await startedFrom((state) => state);
    let start = -1;
    const view = await foldLog(log, {
      checkpoints: false,
      onStart(sequence) {
        start = sequence;
      },
    });
    expect(start).toBe(0);
    await view.close();
  });

  it('is left alone when the process stops', async () => {
    const verification = verifyInBackground(log, await startedFrom((state) => state), systemClock);
    verification.close();
    expect(await verification.done).toBeNull();
    expect(verification.verified).toBe(false);
  });
});
