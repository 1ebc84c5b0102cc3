import { systemClock } from '@kronos/clock';
import { keepServers } from '@kronos/observation';
import { demoCloud } from '@kronos/simcloud';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Bed, openBed } from '../testing/bed.ts';

describe('the mode changes', () => {
  let bed: Bed;
  beforeAll(async () => {
    bed = await openBed({ scenario: demoCloud(), scope: ['general'] });
  });
  afterAll(() => bed.close());

  test('gives the snapshots that the mode api gives, and states where the list of each host came from', async () => {
    const whole = bed.scorer({ name: 'whole' });
    const resyncs: string[] = [];
    const kept = bed.scorer({
      name: 'kept',
      servers: (nova) =>
        keepServers({
          nova,
          clock: systemClock,
          mode: 'changes',
          optOut: ['kronos:exclude'],
          syncIntervalMs: 300_000,
          maxClockSkewMs: 5_000,
          clockWrong: () => false,
          concurrency: 8,
          onResync: (reason) => resyncs.push(reason),
        }),
    });
    const servers = [...bed.sim.cloud.servers.values()].filter((one) => one.vmState === 'active');
    const [gone, locked, tagged, renamed] = servers.map((one) => one.uuid);
    let number = 100;
    const both = async () => {
      await whole.cycle(++number);
      const expected = await bed.newest('general');
      await kept.cycle(++number);
      const snapshot = await bed.newest('general');
      expect(snapshot.servers).toEqual(expected.servers);
      expect(snapshot.problems).toEqual(expected.problems);
      return { from: new Set(snapshot.hosts.map((one) => one.listing?.from)), servers: snapshot.servers };
    };
    expect((await both()).from).toEqual(new Set(['api']));
    const now = (): number => bed.sim.clock.now();
    bed.sim.cloud.deleteServer(now(), gone ?? '');
    bed.sim.cloud.setServer(now(), locked ?? '', { locked: true });
    bed.sim.cloud.setServer(now(), tagged ?? '', { tags: ['kronos:exclude'] });
    bed.sim.cloud.setServer(now(), renamed ?? '', { name: 'renamed' });
    const after = await both();
    expect(after.from).toEqual(new Set(['changes']));
    const shown = new Map(after.servers.map((one) => [one.id, one]));
    expect(shown.has(gone ?? '')).toBe(false);
    expect(shown.get(locked ?? '')?.locked).toBe(true);
    expect(shown.get(tagged ?? '')?.optedOutBy).toBe('kronos:exclude');
    expect(shown.get(renamed ?? '')?.name).toBe('renamed');
    expect(resyncs).toEqual(['tagged']);

    // No later list of changes has what changed while Nova did not reach the cell.
    bed.sim.act({ act: 'setCell', cell: 'cell1', reachable: false });
    bed.sim.cloud.setServer(now(), locked ?? '', { locked: false });
    await kept.cycle(++number);
    const down = await bed.newest('general');
    expect([down.hosts, down.problems[0]?.code]).toEqual([[], 'hosts-of-down-cell']);
    await whole.cycle(++number);
    expect((await bed.newest('general')).problems.at(-1)).toMatchObject({
      code: 'server-vanished',
      text: expect.stringContaining('(a cell is down)'),
    });
    bed.sim.act({ act: 'setCell', cell: 'cell1', reachable: true });
    expect((await both()).servers.find(({ id }) => id === locked)?.locked).toBe(false);
    expect(resyncs.filter((reason) => reason !== 'tagged')).toEqual(['cell-down']);
  });
});
