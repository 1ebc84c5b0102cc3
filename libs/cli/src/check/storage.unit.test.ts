import type { Durability } from '@kronos/connect';
import { defaultStorageLimits, storageNeeded } from '@kronos/contracts';
import { capabilitiesOf } from '@kronos/eventlog/local';
import { describe, expect, it } from 'vitest';
import { judgeAccount, judgeDurability, judgeSnapshots } from './storage.ts';

const GIB = 1024 ** 3;
const limits = { ...defaultStorageLimits, logMaxBytes: 4 * GIB, snapshotMaxBytes: 2 * GIB };
const needed = storageNeeded(limits);

describe('what an account may store', () => {
  it('is enough when it has no limit', () => {
    const found = judgeAccount({ limits, replicas: 1, account: { file: null, memory: null } });
    expect(found).toMatchObject({ state: 'ok', detail: { fileBytes: needed.file, memoryBytes: needed.memory } });
    expect(found.text).toBe('Kronos stores at most 13 GiB in files and 16 MiB in memory');
  });

  it('is enough when every replica fits, to the byte', () => {
    const account = { file: 3 * needed.file, memory: 3 * needed.memory };
    expect(judgeAccount({ limits, replicas: 3, account }).state).toBe('ok');
    expect(judgeAccount({ limits, replicas: 3, account: { ...account, file: account.file - 1 } }).state).toBe('failed');
    expect(judgeAccount({ limits, replicas: 3, account: { ...account, memory: account.memory - 1 } }).state).toBe(
      'failed',
    );
  });

  it('is too little: both amounts and the remedy are named', () => {
    const { text, remedy } = judgeAccount({ limits, replicas: 3, account: { file: 20 * GIB, memory: null } });
    expect(text).toBe(
      [
        'Kronos stores at most 13 GiB in files and 16 MiB in memory on each of 3 servers (38 GiB in all)',
        'the account may store 20 GiB in files, and needs 38 GiB',
      ].join('\n'),
    );
    expect(remedy).toContain('max_file');
  });

  it('is not judged when NATS cannot be asked, but the amounts are told', () => {
    expect(judgeAccount({ limits, replicas: 1, account: null })).toMatchObject({
      state: 'skipped',
      text: expect.stringContaining('13 GiB in files'),
    });
  });
});

describe('how long snapshots are kept', () => {
  const day = { ...limits, snapshotMaxAgeSeconds: 86_400 };

  it('is as long as asked: says for how many days there is room', () => {
    const [found] = judgeSnapshots(day, [500_000, 500_000], 60);
    expect(found).toMatchObject({ state: 'ok', detail: { bytesPerDay: 1_440_000_000, days: 1.5 } });
    expect(found?.text).toBe(
      'the snapshots of a cycle take 977 KiB, 1.3 GiB a day: snapshot_max_bytes (2.0 GiB) is enough for 1.5 days',
    );
  });

  it('is shorter than asked: warns with the size that is needed', () => {
    const [found] = judgeSnapshots({ ...limits, snapshotMaxAgeSeconds: 3 * 86_400 }, [1_000_000], 60);
    expect(found).toMatchObject({ state: 'warning', remedy: expect.stringContaining('snapshot_max_bytes = 5GiB') });
    expect(found?.text).toMatch(/enough for 1\.5 days, and snapshot_max_age asks for 3\.0$/);
  });

  it('says nothing when no snapshot could be made', () => {
    expect(judgeSnapshots(day, [], 60)).toEqual([]);
  });
});

describe('whether acknowledged events are on disk', () => {
  const judge = (version: string, ...servers: Durability[]) =>
    judgeDurability({ version, capabilities: capabilitiesOf(version) }, servers);

  it('is never so on a server without sync_interval', () => {
    expect(judge('2.9.25')).toMatchObject({
      state: 'warning',
      text: expect.stringContaining('nats-server 2.9.25 writes to its disk every two minutes'),
      remedy: expect.stringContaining('2.10 or newer'),
    });
  });

  it('is not known from here on any other, and is not said to be so', () => {
    expect(judge('2.15.3')).toMatchObject({ state: 'skipped', remedy: expect.stringContaining('"sync_always": true') });
  });

  it('is what each server says, and a server that does not say it is not fine', () => {
    const good = { url: 'http://nats-1:8222', writes: 'always' } as const;
    const late = { url: 'http://nats-2:8222', writes: 'later', everySeconds: 120 } as const;
    const silent = { url: 'http://nats-3:8222', writes: 'unknown', text: 'refused' } as const;
    expect(judge('2.15.3', good)).toMatchObject({ state: 'ok' });
    expect(judge('2.15.3', good, late)).toMatchObject({
      state: 'warning',
      text: expect.stringContaining('every 120 s'),
    });
    expect(judge('2.15.3', good, silent)).toMatchObject({ state: 'warning', text: expect.stringContaining('refused') });
  });
});
