import { describe, expect, it } from 'vitest';
import { decidedSnapshots } from './snapshots.ts';

type Log = Parameters<typeof decidedSnapshots>[0];

const AT_MS = Date.parse('2026-01-01T12:00:00Z');

/** A stream of snapshots: id, and seconds after {@link AT_MS}. */
function stream(...taken: readonly (readonly [id: string, second: number])[]) {
  let read = 0;
  const log = {
    async *replaySnapshots() {
      for (const [id, second] of taken) {
        read += 1;
        const ms = AT_MS + second * 1000;
        yield { firstStoredAt: ms, message: { time: new Date(ms).toISOString(), data: { snapshotId: id } } };
      }
    },
  } as unknown as Log;
  return { log, read: () => read };
}

describe('the snapshots of decisions', () => {
  it('are those of the time of the decision where two have one id', async () => {
    const { log } = stream(['s1', 0], ['s1', 5]);
    const found = await decidedSnapshots(log, 'gpu', [{ id: 's1', atMs: AT_MS + 5000 }]);
    expect(found.get('s1')?.time).toBe('2026-01-01T12:00:05.000Z');
  });

  it('are the first of their id where no time is the same', async () => {
    const { log } = stream(['s1', 0], ['s1', 5]);
    const found = await decidedSnapshots(log, 'gpu', [{ id: 's1', atMs: AT_MS + 2000 }]);
    expect(found.get('s1')?.time).toBe('2026-01-01T12:00:00.000Z');
  });

  it('are read only until all are found; those that are not kept are left out', async () => {
    const whole = stream(['s1', 0], ['s2', 5], ['s3', 10]);
    await decidedSnapshots(whole.log, 'gpu', [{ id: 's2', atMs: AT_MS + 5000 }]);
    expect(whole.read()).toBe(2);
    const { log } = stream(['s1', 0]);
    expect(await decidedSnapshots(log, 'gpu', [{ id: 's2', atMs: AT_MS }])).toEqual(new Map());
  });
});
