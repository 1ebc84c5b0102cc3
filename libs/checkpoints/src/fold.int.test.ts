import { type Actor, defaultStorageLimits, type StateCheckpointed, streamNames } from '@kronos/contracts';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { appendEvents, type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { canonicalState } from '@kronos/projections';
import { foldAll, type HistoryOptions, randomHistory } from '@kronos/projections/testing';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { foldLog, type SkippedCheckpoint, startingPoint, writeCheckpoint } from './index.ts';

const by: Actor = { service: 'ledger', instance: 'test', version: '0.0.0' };
let server: NatsServer;
let log: EventLog;
beforeEach(async () => {
  server = await startNatsServer();
  log = await connectEventLog({ servers: [server.url], name: 'test' });
  await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu', 'general', 'web eu/1'] });
});
afterEach(async () => {
  await log.close();
  await server.stop();
});

async function append(options: HistoryOptions): Promise<number> {
  await appendEvents(log, randomHistory(options));
  return await log.lastSequence(streamNames.log);
}

/** The state up to a sequence, folded from the first event. */
const folded = (to?: number) => foldAll(log.replay(to === undefined ? {} : { to }));

async function checkpointAt(sequence: number, installationId: string | null = null): Promise<void> {
  const { state, anchor } = await folded(sequence);
  await writeCheckpoint(log, state, { anchor, by, nowMs: 0, installationId });
}

/** A reader's start, its messages, and the text of its state at the end. */
async function read() {
  const skipped: SkippedCheckpoint[] = [];
  let start = -1;
  const view = await foldLog(log, {
    onSkipped: (one) => skipped.push(one),
    onStart: (sequence) => {
      start = sequence;
    },
  });
  const text = canonicalState(view.at().state);
  await view.close();
  return { start, skipped, text };
}

describe('a reader of the log', () => {
  it('starts from the first event where there is no checkpoint', async () => {
    await append({ seed: 1, cycles: 20 });
    expect(await read()).toEqual({ start: 0, skipped: [], text: canonicalState((await folded()).state) });
  });

  it('starts from the newest checkpoint, has the very same state, and goes on with the log', async () => {
    const end = await append({ seed: 2, cycles: 60 });
    await checkpointAt(Math.floor(end / 3));
    await checkpointAt(Math.floor(end / 2));
    expect(await read()).toEqual({
      start: Math.floor(end / 2),
      skipped: [],
      text: canonicalState((await folded()).state),
    });
    const view = await foldLog(log);
    const more = await append({ seed: 3, cycles: 5, startMs: Date.now() });
    await view.upTo(more);
    expect(canonicalState(view.at().state)).toBe(canonicalState((await folded()).state));
    await view.close();
  });

  it('takes the one before a checkpoint that is bad, and says so', async () => {
    const end = await append({ seed: 4, cycles: 60 });
    const good = Math.floor(end / 3);
    await checkpointAt(good);
    const spoilt: [number, (data: StateCheckpointed['data']) => StateCheckpointed['data'], RegExp][] = [
      [good + 1, (data) => ({ ...data, digest: 'sha256:00' }), /digest/],
      [good + 2, (data) => ({ ...data, foldVersion: 999 }), /fold version 999/],
      [good + 3, (data) => data, /another log/],
      [end + 1000, (data) => data, /log ends at/],
    ];
    const parts: StateCheckpointed[] = [];
    for await (const { message, problem } of log.tail({ families: ['ledger'], since: 'all', end: true }))
      if (problem === undefined && message.type === 'state.checkpointed') parts.push(message);
    for (const [sequence, change] of spoilt)
      for (const part of parts)
        await log.append({ ...part, id: `${part.id}-${sequence}`, data: { ...change(part.data), sequence } });
    const { start, skipped, text } = await read();
    expect(start).toBe(good);
    expect(text).toBe(canonicalState((await folded()).state));
    expect(skipped.map((one) => one.sequence)).toEqual([end + 1000, good + 3, good + 2, good + 1]);
    for (const [sequence, , problem] of spoilt)
      expect(skipped.find((one) => one.sequence === sequence)?.problem).toMatch(problem);
    expect(skipped.filter(({ otherVersion }) => otherVersion).map(({ sequence }) => sequence)).toEqual([good + 2]);
  });

  it('uses a checkpoint beside one of a lost log that has the same sequence', async () => {
    const end = await append({ seed: 4, cycles: 60 });
    const good = Math.floor(end / 3);
    await checkpointAt(good, 'lost');
    await checkpointAt(good);
    expect((await read()).start).toBe(good);
  });

  it('takes a checkpoint that is not all there for none', async () => {
    const end = await append({ seed: 5, cycles: 60 });
    const good = Math.floor(end / 3);
    await checkpointAt(good);
    const { state, anchor } = await folded(Math.floor(end / 2));
    const half: Pick<EventLog, 'append' | 'objects'> = {
      objects: log.objects,
      append: (message, options) =>
        message.aggregate === 'gpu' ? log.append(message, options) : Promise.resolve({ sequence: 0, duplicate: false }),
    };
    await writeCheckpoint(half, state, { anchor, by, nowMs: 0 });
    const { start, skipped } = await read();
    expect(start).toBe(good);
    expect(skipped).toMatchObject([{ sequence: Math.floor(end / 2), problem: expect.stringMatching(/is missing/) }]);
  });

  it('gets the newest one up to a sequence for an earlier state', async () => {
    const end = await append({ seed: 6, cycles: 60 });
    const [first, second] = [Math.floor(end / 3), Math.floor(end / 2)];
    await checkpointAt(first);
    await checkpointAt(second);
    expect((await startingPoint(log, () => {}, second - 1))?.sequence).toBe(first);
    expect(await startingPoint(log, () => {}, first - 1)).toBeNull();
  });

  it('starts from the first event, and says so, where checkpoints cannot be read', async () => {
    await append({ seed: 7, cycles: 20 });
    await checkpointAt(10);
    const nc = await connect({ servers: server.url });
    await (await jetstreamManager(nc)).streams.delete(streamNames.checkpoints);
    await nc.close();
    const { start, skipped, text } = await read();
    expect({ start, text }).toEqual({ start: 0, text: canonicalState((await folded()).state) });
    expect(skipped).toMatchObject([{ sequence: 0, problem: expect.stringMatching(/cannot be read/) }]);
  });
});
