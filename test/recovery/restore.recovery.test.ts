import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { readArchive, verifyArchive } from '@kronos/archive';
import { type LogEvent, streamNames } from '@kronos/contracts';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import type { MigrationRecord } from '@kronos/simcloud';
import { afterEach, describe, expect, it } from 'vitest';
import { type DemoStage, openStage } from '../../libs/cli/src/demo/stage.ts';
import { kronos } from '../../libs/cli/test/world.ts';
import { ended, released, SHORT_SEARCH, settled, watch } from '../e2e/world.ts';
import { assertOnce } from './once.ts';

const services = ['scorer', 'planner', 'executor', 'ledger'] as const;
const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

const count = (events: readonly LogEvent[], type: LogEvent['type']) => events.filter((e) => e.type === type).length;

async function kill(stage: DemoStage, names: readonly (typeof services)[number][]): Promise<void> {
  const children = names.flatMap((name) => stage.processes.get(name) ?? []);
  await Promise.all(
    children.map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await gone;
    }),
  );
}

async function act(stage: DemoStage, acts: readonly unknown[]): Promise<void> {
  const answer = await fetch(`${stage.cloudUrl}/acts`, { method: 'POST', body: JSON.stringify(acts) });
  expect(answer.status).toBe(200);
}

async function cloud<T>(stage: DemoStage, what: string): Promise<T[]> {
  const answer = (await (await fetch(`${stage.cloudUrl}/${what}`)).json()) as Record<string, T[]>;
  return answer[what] ?? [];
}

/** Makes all guests of one host idle, so that moves to this host pay. */
async function disturb(stage: DemoStage): Promise<void> {
  type Server = { id: string; host: string; demand: { memoryMb: number } };
  const servers = await cloud<Server>(stage, 'servers');
  const byHost = Map.groupBy(servers, ({ host }) => host);
  const [, idle] = [...byHost].sort(([, a], [, b]) => b.length - a.length)[0] ?? [];
  await act(
    stage,
    (idle ?? []).map(({ id, demand }) => ({
      act: 'setServer',
      server: id,
      demand: { cpuCores: 0, memoryMb: demand.memoryMb },
    })),
  );
}

async function scratch(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'kronos-restore-'));
  undo.push(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

describe('a running system whose NATS server is lost with all its data', () => {
  it('goes on from the archive: what was in flight ends once, and more is planned and moved', async () => {
    const directory = await scratch();
    let server: NatsServer = await startNatsServer();
    undo.push(() => server.stop());
    const { port, url } = server;
    const stage = await openStage({
      seed: 7,
      speed: 5,
      env: { ...SHORT_SEARCH, OS_LEDGER__ARCHIVE_DIR: directory, OS_LEDGER__ARCHIVE_MAX_FILE_BYTES: '65536' },
      nats: async () => ({ urls: [url], stop: async () => undefined }),
      say: () => {},
      onExit: () => {},
    });
    undo.push(() => stage.close());
    const connect = async (): Promise<EventLog> => {
      const log = await connectEventLog({ servers: [url], name: 'restore-test' });
      undo.push(() => log.close());
      return log;
    };

    const before = await connect();
    const first = watch({ ...stage, log: before });
    await first.until('moves that run and moves that wait', (events) => {
      const open = released(events).length - ended(events).size;
      // On a busy machine some of them end before the executors are killed.
      return count(events, 'migration.started') >= 2 && count(events, 'migration.completed') >= 1 && open >= 4;
    });
    await kill(stage, ['scorer', 'planner', 'executor']);
    const last = await before.lastSequence(streamNames.log);
    await expect.poll(async () => (await verifyArchive(directory)).last).toBe(last);
    await kill(stage, ['ledger']);
    await first.until('the end of the log', (events) => events.length >= last);
    const inFlight = released(first.events).filter((task) => !ended(first.events).has(task));
    expect(inFlight.length).toBeGreaterThan(0);
    await before.close();
    await server.stop();

    // An empty server takes its place.
    server = await startNatsServer({ port });
    const cli = (...words: string[]) => kronos(words, { env: { KRONOS_CONFIG: stage.configFile }, nowMs: Date.now() });
    expect(await cli('archive', 'restore', directory)).toMatchObject({
      status: 1,
      err: expect.stringMatching(/kronos provision/),
    });
    expect((await cli('provision', '--for-restore')).status).toBe(0);
    const restored = await cli('archive', 'restore', directory, '--json');
    expect(restored).toMatchObject({ status: 0, err: '' });
    expect(JSON.parse(restored.out)).toMatchObject({ last, restored: last, present: 0, requeued: inFlight.length });
    // A second restore changes nothing.
    expect(JSON.parse((await cli('archive', 'restore', directory, '--json')).out)).toMatchObject({
      restored: 0,
      present: last,
    });

    const log = await connect();
    const after = watch({ ...stage, log });
    for (const service of services) stage.start(service);
    await after.until('the moves that were in flight', (events) => inFlight.every((task) => ended(events).has(task)));
    await after.until('a balanced cloud', settled);
    const moves = released(after.events).length;
    await disturb(stage);
    await after.until('more moves', (events) => released(events).length > moves && settled(events));
    // The results of the moves that went on meanwhile.
    await kill(stage, ['scorer', 'planner', 'executor']);

    assertOnce(after.events, await cloud<MigrationRecord>(stage, 'migrations'));
    const end = await log.lastSequence(streamNames.log);
    await expect.poll(async () => (await verifyArchive(directory)).last).toBe(end);
    const stored = log.copy();
    for await (const event of readArchive(directory)) {
      const { value } = (await stored[Symbol.asyncIterator]().next()) as { value: typeof event };
      expect([value.sequence, value.subject, Buffer.from(value.data).toString()]).toEqual([
        event.sequence,
        event.subject,
        Buffer.from(event.data).toString(),
      ]);
    }

    const refused = await cli('archive', 'restore', await copyOfFirst(directory));
    expect(refused).toMatchObject({ status: 1, err: expect.stringMatching(/holds more/) });
  });
});

/** An archive that ends earlier: the first file of the other one. */
async function copyOfFirst(directory: string): Promise<string> {
  const { readFile, readdir, writeFile } = await import('node:fs/promises');
  const [name] = (await readdir(directory)).filter((one) => one.startsWith('events-')).sort();
  const copy = await scratch();
  if (name === undefined) return copy;
  // The file as it was while it was open: an archive is incomplete when the file after a closed one is missing.
  const bytes = await readFile(join(directory, name));
  await writeFile(join(copy, name.replace('.gz', '')), name.endsWith('.gz') ? gunzipSync(bytes) : bytes);
  return copy;
}
