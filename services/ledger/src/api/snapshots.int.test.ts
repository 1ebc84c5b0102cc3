import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ledgerBed } from '../../testing/index.ts';
import { costly } from './answer.ts';
import { snapshotReader } from './snapshots.ts';

let bed: Awaited<ReturnType<typeof ledgerBed>>;
beforeEach(async () => {
  bed = await ledgerBed();
});
afterEach(async () => {
  await bed.close();
});

const NOW_MS = Date.now();
const sketch = { policies: { cpu: {} }, hosts: { h1: {}, h2: {} }, vms: { vm1: { host: 'h1', w: { cpu: 0.3 } } } };

/** A reader of three snapshots, its clock, and how often it read one from the server. */
async function reading(limits?: { snapshots: number; bytes: number }) {
  for (const [i, id] of ['s1', 's2', 's3'].entries()) await bed.observed(id, 'gpu', NOW_MS + i * 1000, sketch);
  const reads: string[] = [];
  const { log } = bed;
  const source = {
    lastSequenceOf: log.lastSequenceOf,
    tail: log.tail,
    replaySnapshots: log.replaySnapshots,
    getSnapshot: (taken: Parameters<typeof log.getSnapshot>[0]) => {
      reads.push(taken.data.snapshotId);
      return log.getSnapshot(taken);
    },
  };
  const time = { ms: 0 };
  return { reads, time, reader: snapshotReader(source, () => time.ms, costly(4), limits) };
}

describe('recorded snapshots', () => {
  it('are read once for all who ask', async () => {
    const { reads, reader } = await reading();
    const both = await Promise.all([reader.recorded('gpu', 's1', NOW_MS), reader.recorded('gpu', 's1', NOW_MS)]);
    expect(both).toMatchObject([{ id: 's1' }, { id: 's1' }]);
    expect((await reader.recorded('gpu', 's1', NOW_MS))?.servers).toHaveLength(1);
    expect(reads).toEqual(['s1']);
  });

  it.each([
    [{ snapshots: 2, bytes: 1e9 }, ['s1', 's2', 's3', 's2']],
    [{ snapshots: 9, bytes: 1 }, ['s1', 's2', 's1', 's3', 's1', 's2']],
  ])('are forgotten beyond the limits %j, the one used last at the end', async (limits, expected) => {
    const { reads, reader } = await reading(limits);
    for (const id of ['s1', 's2', 's1', 's3', 's1', 's2']) await reader.recorded('gpu', id, NOW_MS);
    expect(reads).toEqual(expected);
  });

  it('are not found once they are not kept, nor far from their time', async () => {
    const { reader } = await reading();
    expect(await reader.recorded('gpu', 's1', NOW_MS - 600_000)).toBeNull();
    expect(await reader.recorded('other', 's1', NOW_MS)).toBeNull();
    await bed.forgetSnapshots();
    expect(await reader.recorded('gpu', 's1', NOW_MS)).toBeNull();
  });

  it('that are the newest are looked for again after two seconds', async () => {
    const { reads, reader, time } = await reading();
    expect(await reader.newest('gpu')).toMatchObject({ id: 's3' });
    await bed.observed('s4', 'gpu', NOW_MS + 4000, sketch);
    time.ms = 1_999;
    expect(await reader.newest('gpu')).toMatchObject({ id: 's3' });
    time.ms = 2_000;
    expect(await reader.newest('gpu')).toMatchObject({ id: 's4' });
    expect(reads).toEqual(['s3', 's4']);
    expect(await reader.newest('idle')).toBeNull();
  });
});
