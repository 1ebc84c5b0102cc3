import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StoredEvent } from '@kronos/contracts';
import { newRefusals } from '@kronos/projections';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { memoryHistory, operate } from '../../testing/index.ts';
import { openSnapshot } from '../history.ts';
import { recordRange } from '../record.ts';
import { readRecording } from '../recording.ts';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'kronos-anonymize-'));
});
afterAll(() => rm(root, { recursive: true }));

it('what a decision noted of a refusing host is made of the new names, and counts on the recorded snapshots', async () => {
  const { events, snapshots } = operate({ seed: 2, cycles: 3, aggregates: ['gpu'] });
  const [snapshot] = snapshots;
  const refused = { serverId: snapshot?.servers[0]?.id ?? '', host: snapshot?.hosts[1]?.name ?? '' };
  const seen = { ...refused, sequence: 1, atMs: 0, text: '', shape: null, mark: null };
  const noted = newRefusals({ refusals: new Map([['', seen]]), elsewhere: [] }, snapshot ?? expect.fail('no snapshot'));
  const told = events.map((stored): StoredEvent => {
    const { event } = stored;
    return event.type === 'cycle.decided'
      ? { ...stored, event: { ...event, data: { ...event.data, novaRefusals: noted } } }
      : stored;
  });
  const directory = join(root, 'case');
  const about = { range: {}, anonymize: true, madeBy: 'kronos test', nowMs: 0 };
  await recordRange(memoryHistory(told, snapshots), directory, about);

  const { history } = await readRecording(directory);
  const renamed = [];
  for await (const entry of history.snapshots({})) renamed.push(openSnapshot(await entry.read()).snapshot);
  let decided = 0;
  for await (const { event } of history.events()) {
    if (event.type !== 'cycle.decided') continue;
    decided += 1;
    const [fact] = event.data.novaRefusals ?? [];
    expect(fact?.mark).not.toBe(noted?.[0]?.mark);
    const own = renamed.find(({ id }) => id === event.data.snapshotId) ?? expect.fail('no snapshot');
    const now = { ...seen, serverId: fact?.serverId ?? '', host: fact?.host ?? '' };
    expect(event.data.novaRefusals).toEqual(newRefusals({ refusals: new Map([['', now]]), elsewhere: [] }, own));
  }
  expect(decided).toBe(3);
});
