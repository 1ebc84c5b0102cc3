import type { Migration } from '@kronos/openstack';
import { describe, expect, it } from 'vitest';
import { EndedMigrations, endedOf } from './endedMigrations.ts';

const NOW = Date.parse('2026-03-10T12:00:00Z');
const HOUR = 3_600_000;
const signal = new AbortController().signal;
const right = () => false;
const row = (id: number, at: number, more: Partial<Migration> = {}): Migration => ({
  id,
  uuid: `u${id}`,
  serverId: 's1',
  type: 'live-migration',
  status: 'completed',
  sourceCompute: 'h1',
  destCompute: 'h2',
  createdAt: new Date(at).toISOString(),
  updatedAt: new Date(at).toISOString(),
  ...more,
});

function novaOf(rows: Migration[]) {
  const asked: (string | undefined)[] = [];
  const nova = {
    down: false,
    asked,
    async listMigrations({ changesSince }: { readonly changesSince?: string } = {}) {
      asked.push(changesSince);
      if (nova.down) throw new Error('Nova does not answer');
      return rows.filter((one) => Date.parse(one.updatedAt ?? one.createdAt) >= Date.parse(changesSince ?? ''));
    },
  };
  return nova;
}

/** Reads, and fails the test where Nova does not answer. */
async function read(reader: EndedMigrations, atMs: number) {
  const got = await reader.read(atMs, signal);
  if (!got.ok) throw new Error(got.text);
  return got.value;
}
const idsOf = (rows: Awaited<ReturnType<typeof read>>) => rows.map(({ id }) => id);

describe('the migrations that Nova completed', () => {
  it('are those of one day at first, and then those that changed since, with an overlap', async () => {
    const rows = [row(1, NOW - 25 * HOUR), row(2, NOW - 23 * HOUR)];
    const nova = novaOf(rows);
    const reader = new EndedMigrations(nova, right);
    expect(idsOf(await read(reader, NOW))).toEqual([2]);
    rows.push(row(3, NOW));
    expect(idsOf(await read(reader, NOW + HOUR / 2))).toEqual([2, 3]);
    expect(nova.asked).toEqual(['2026-03-09T12:00:00.000Z', '2026-03-10T11:59:00.000Z']);
    expect(idsOf(await read(reader, NOW + 2 * HOUR))).toEqual([3]);
  });

  it('are unknown after a read that failed, and are asked for again', async () => {
    const rows = [row(2, NOW - 10 * HOUR)];
    const nova = novaOf(rows);
    const reader = new EndedMigrations(nova, right);
    expect(idsOf(await read(reader, NOW))).toEqual([2]);
    nova.down = true;
    rows.push(row(3, NOW + HOUR));
    const failed = await reader.read(NOW + HOUR, signal);
    expect(failed).toMatchObject({ ok: false, text: 'Nova does not answer' });
    expect(endedOf(failed, [{ id: 's1' }])).toEqual({ endedMigrations: null });
    nova.down = false;
    expect(idsOf(await read(reader, NOW + 2 * HOUR))).toEqual([2, 3]);
    expect(nova.asked.at(-1)).toBe('2026-03-10T11:59:00.000Z');
  });

  it('are read for the whole day while the clock is wrong, and once more when it is right', async () => {
    const rows = [row(2, NOW - 10 * HOUR)];
    const nova = novaOf(rows);
    let wrong = false;
    const reader = new EndedMigrations(nova, () => wrong);
    await read(reader, NOW);
    wrong = true;
    rows.push(row(3, NOW + 60_000));
    expect(idsOf(await read(reader, NOW + 48 * HOUR))).toEqual([]);
    wrong = false;
    rows.push(row(4, NOW + 120_000));
    expect(idsOf(await read(reader, NOW + 180_000))).toEqual([2, 3, 4]);
  });

  it('are live migrations from host to host', async () => {
    const rows = [
      row(1, NOW, { type: 'evacuation' }),
      row(2, NOW, { type: 'resize' }),
      row(3, NOW, { destCompute: 'h1' }),
      row(4, NOW, { destCompute: null }),
      row(5, NOW),
    ];
    expect(idsOf(await read(new EndedMigrations(novaOf(rows), right), NOW))).toEqual([5]);
  });

  it('of an aggregate are those of its servers, the newest first; without any the snapshot has none', async () => {
    const rows = [row(1, NOW - HOUR), row(2, NOW, { serverId: 's2' }), row(3, NOW)];
    const ended = await new EndedMigrations(novaOf(rows), right).read(NOW, signal);
    expect(endedOf(ended, [{ id: 's1' }]).endedMigrations?.map(({ id }) => id)).toEqual([3, 1]);
    expect(endedOf(ended, [{ id: 's9' }])).toEqual({});
    expect(endedOf(null, [{ id: 's1' }])).toEqual({});
  });
});
