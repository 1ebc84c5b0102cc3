import { randomUUID } from 'node:crypto';
import { systemClock } from '@kronos/clock';
import { type Actor, ALL, defaultStorageLimits, streamNames } from '@kronos/contracts';
import { AppendConflict, AppendWithdrawn, connectEventLog, type EventLog, LogGap } from '@kronos/eventlog';
import { appendEvents, emptySnapshot, type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { inForce } from '@kronos/projections';
import { foldAll, randomHistory } from '@kronos/projections/testing';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  foldLog,
  type GuardOptions,
  type LogGuard,
  LogNotStated,
  nameLog,
  openGuard,
  readIdentity,
  reportSeen,
  type SkippedCheckpoint,
  type StoredSnapshot,
  snapshotMark,
  stateInstallation,
  writeCheckpoint,
} from './index.ts';

const provisioner: Actor = { service: 'provisioner', instance: 'test', version: '0.0.0' };
const ledger: Actor = { service: 'ledger', instance: 'test', version: '0.0.0' };
const aggregates = ['gpu', 'general', 'web eu/1'];
let server: NatsServer;
let log: EventLog;
const guards: LogGuard[] = [];
const provision = () => log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates });
const name = (more: { newLog?: boolean } = {}, through: EventLog = log) =>
  nameLog(through, {
    aggregates,
    by: provisioner,
    nowMs: Date.now(),
    installationId: randomUUID(),
    newLog: false,
    comment: null,
    ...more,
  });
const append = (seed: number, cycles: number) =>
  appendEvents(log, randomHistory({ seed, cycles, startMs: Date.now() }));

beforeEach(async () => {
  server = await startNatsServer();
  log = await connectEventLog({ servers: [server.url], name: 'test' });
  await provision();
});
afterEach(async () => {
  for (const guard of guards.splice(0)) guard.close();
  await log.close();
  await server.stop();
});

async function guard(more: Partial<GuardOptions> = {}): Promise<LogGuard> {
  const opened = await openGuard({ log, clock: systemClock, snapshotsOf: ['gpu'], needsLedger: false, ...more });
  guards.push(opened);
  return opened;
}

/** The log is deleted and provisioned again; other streams stay. */
async function wipe(...more: string[]): Promise<void> {
  const nc = await connect({ servers: server.url });
  const { streams } = await jetstreamManager(nc);
  for (const stream of [streamNames.log, ...more]) await streams.delete(stream);
  await nc.close();
  await provision();
}

/** A log of some length with a checkpoint and a snapshot, as services leave them behind. */
async function lived(): Promise<string> {
  const { installation } = await name();
  await append(1, 30);
  const { state, anchor } = await foldAll(log.replay());
  await writeCheckpoint(log, state, {
    anchor,
    by: ledger,
    nowMs: Date.now(),
    installationId: installation.id,
  });
  await takeSnapshot('gpu-1', null);
  return installation.id;
}

/** Takes a snapshot like a scorer whose clock is ahead. `before` is the newest one that the scorer knows. */
async function takeSnapshot(id: string, before: StoredSnapshot | null, aheadMs = 0): Promise<StoredSnapshot> {
  const { mark } = await snapshotMark(log, systemClock)(before);
  const by = { ...ledger, service: 'scorer' as const };
  const snapshot = { ...emptySnapshot(id), time: new Date(Date.now() + aheadMs).toISOString() };
  const { message, sequence } = await log.putSnapshot(snapshot, { by, causationId: null, log: mark });
  return { taken: message, sequence };
}

/** Does the same as `kronos provision` before logs had names, and as a careless restore of streams. */
const nameBlindly = async () =>
  stateInstallation(log, 'provisioned', {
    expectedLastSequence: await log.lastSequenceOf('controls', ALL),
    by: provisioner,
    comment: null,
    nowMs: Date.now(),
    installationId: randomUUID(),
  });

describe('the name of a log', () => {
  it('is its first event, once', async () => {
    const { installation, created } = await name();
    expect({ created, sequence: installation.sequence }).toEqual({ created: true, sequence: 1 });
    expect((await name()).created).toBe(false);
    expect(await readIdentity(log)).toMatchObject({ installations: [{ id: installation.id }], lastSequence: 1 });
  });

  it('is appended to a log that has events already, and the log counts from there', async () => {
    await append(1, 10);
    const before = await log.lastSequence(streamNames.log);
    expect((await name()).installation.sequence).toBe(before + 1);
    expect((await guard()).problem).toBeNull();
  });

  it('is not given to a log that others have seen longer, or otherwise', async () => {
    const id = await lived();
    await wipe();
    const error = await name().catch((e: unknown) => e);
    expect(error).toBeInstanceOf(LogNotStated);
    expect(String(error)).toMatch(new RegExp(`has seen event \\d+ of installation ${id}.* ends at event 0`));
    expect(await log.lastSequence(streamNames.log)).toBe(0);
    expect((await name({ newLog: true })).installation).toMatchObject({ statement: 'newLog', sequence: 1 });
    expect((await name()).created).toBe(false);
  });

  it('is given by one of two who provision at the same time', async () => {
    const both = await Promise.allSettled([name(), name()]);
    expect(both.some(({ status }) => status === 'fulfilled')).toBe(true);
    expect((await readIdentity(log)).installations).toHaveLength(1);
  });

  it('conflicts with a name that another gives after the log was read', async () => {
    let other: Promise<unknown> | null = null;
    const lastSequence = async (stream: string): Promise<number> => {
      const last = await log.lastSequence(stream);
      other ??= name();
      await other;
      return last;
    };
    await expect(name({}, { ...log, lastSequence })).rejects.toBeInstanceOf(AppendConflict);
    expect((await readIdentity(log)).installations).toHaveLength(1);
  });
});

describe('a service', () => {
  it('trusts a log that everything agrees with, and one without a name', async () => {
    await append(2, 5);
    expect((await guard()).problem).toBeNull();
    await lived();
    expect((await guard()).problem).toBeNull();
  });

  it('waits when the log was wiped and the checkpoints were not, and goes on when it is stated', async () => {
    const id = await lived();
    await wipe(streamNames.snapshots);
    await nameBlindly();
    await append(3, 3);
    const changes: (string | null)[] = [];
    const opened = await guard({ onChange: (problem) => changes.push(problem) });
    expect(opened.problem).toMatch(`of installation ${id}`);
    expect(opened.problem).toMatch(/kronos archive restore .*kronos provision --new-log/);
    expect(opened.healthy().ok).toBe(false);
    const settled = opened.settled(new AbortController().signal);
    await name({ newLog: true });
    await settled;
    expect(opened.problem).toBeNull();
    expect(inForce(opened.identity)?.statement).toBe('newLog');
    expect(changes).toEqual([expect.stringContaining(id), null]);
  });

  it('waits when only the snapshots were left', async () => {
    await lived();
    await wipe(streamNames.checkpoints);
    await nameBlindly();
    expect((await guard()).problem).toMatch(/the snapshot gpu-1 has seen event/);
  });

  it('waits when only the snapshots were left, and more were taken since', async () => {
    const { installation } = await name();
    await append(1, 30);
    const before = await takeSnapshot('gpu-1', null);
    await wipe(streamNames.checkpoints);
    await nameBlindly();
    const since = await takeSnapshot('gpu-2', before);
    await takeSnapshot('gpu-3', since);
    expect((await guard()).problem).toMatch(
      `the snapshot gpu-3 has seen event ${before.taken.data.log?.sequence} of installation ${installation.id}`,
    );
    await name({ newLog: true });
    expect((await guard()).problem).toBeNull();
    const stated = await takeSnapshot('gpu-4', since);
    expect(stated.taken.data.log).not.toMatchObject({ installationId: installation.id });
  });

  it('goes on after the statement, also when the snapshot before it is of a scorer whose clock is ahead', async () => {
    await name();
    const before = await takeSnapshot('gpu-1', null);
    await wipe(streamNames.checkpoints);
    await nameBlindly();
    const ahead = await takeSnapshot('gpu-2', before, 3_600_000);
    const { installation } = await name({ newLog: true });
    const stated = await takeSnapshot('gpu-3', ahead);
    expect(stated.taken.data.log).toMatchObject({ installationId: installation.id });
  });

  it('is stated by a snapshot only while the scorer has read it a short while ago', async () => {
    let nowMs = 0;
    const marked = snapshotMark(log, { monotonic: () => nowMs });
    const { mark, aged } = await marked(null);
    nowMs = 60_000;
    expect(aged()).toBeNull();
    nowMs = 61_000;
    expect(aged()).toBe('the log that it states was read 61 s ago');
    const by = { ...ledger, service: 'scorer' as const };
    const put = log.putSnapshot(emptySnapshot('gpu-1'), { by, causationId: null, log: mark }, { veto: aged });
    await expect(put).rejects.toThrow(AppendWithdrawn);
    expect((await marked(null)).aged()).toBeNull();
  });

  it('waits when only the archive of the ledger was left, also when the ledger says so later', async () => {
    const id = await lived();
    await wipe(streamNames.checkpoints, streamNames.snapshots);
    await nameBlindly();
    const opened = await guard();
    expect(opened.problem).toBeNull();
    await reportSeen(log, { installationId: id, sequence: 1571, seenAtMs: Date.now() }, 'archive', {
      by: ledger,
      nowMs: Date.now(),
    });
    await expect.poll(() => opened.problem).toMatch(/the ledger's archive has seen event 1571/);
  });

  it('waits for the ledger where there is an archive, until the ledger has compared it', async () => {
    const { installation } = await name();
    const opened = await guard({ needsLedger: true });
    expect(opened.problem).toMatch(/has not compared its archive/);
    const mark = { installationId: installation.id, sequence: 1, seenAtMs: Date.now() };
    await reportSeen(log, mark, 'log', { by: ledger, nowMs: Date.now() });
    await expect.poll(() => opened.problem).toBeNull();
    expect((await guard({ needsLedger: true })).problem).toBeNull();
  });

  it('waits when the log has lost its last events', async () => {
    const { installation } = await name();
    const mark = { installationId: installation.id, sequence: 5, seenAtMs: Date.now() };
    await reportSeen(log, mark, 'log', { by: ledger, nowMs: Date.now() });
    expect((await guard()).problem).toMatch(/KRONOS_LOG has lost events/);
  });

  it('that runs while the log is replaced remembers what it has seen', async () => {
    const id = await lived();
    const opened = await guard();
    const view = await foldLog(log);
    const { sequence } = view.at();
    await wipe(streamNames.checkpoints, streamNames.snapshots);
    await nameBlindly();
    await expect(view.refresh()).rejects.toBeInstanceOf(LogGap);
    opened.lost({ source: 'this process', installationId: id, sequence, seenAtMs: Date.now() });
    expect(opened.problem).toMatch(`this process has seen event ${sequence} of installation ${id}`);
    const settled = opened.settled(new AbortController().signal);
    await name({ newLog: true });
    await settled;
    expect(opened.problem).toBeNull();
  });

  it('goes on after the statement on a log that replaced its own, also when its clock is ahead', async () => {
    await name();
    const opened = await guard({ clock: { ...systemClock, now: () => Date.now() + 3_600_000 } });
    await wipe();
    await nameBlindly();
    const { installation } = await name({ newLog: true });
    await expect.poll(() => inForce(opened.identity)?.id).toBe(installation.id);
    expect(opened.problem).toBeNull();
  });

  it('stops waiting when it is told to stop', async () => {
    await lived();
    await wipe();
    const stop = new AbortController();
    const settled = (await guard()).settled(stop.signal);
    stop.abort(new Error('stopping'));
    await expect(settled).rejects.toThrow('stopping');
  });
});

it('a checkpoint of another installation is skipped', async () => {
  const id = await lived();
  await wipe();
  await name({ newLog: true });
  await append(4, 60);
  const skipped: SkippedCheckpoint[] = [];
  await (await foldLog(log, { onSkipped: (one) => skipped.push(one) })).close();
  expect(skipped).toMatchObject([
    { sequence: expect.any(Number), problem: expect.stringContaining(`of installation ${id}`) },
  ]);
});
