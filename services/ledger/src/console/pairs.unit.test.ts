import { describe, expect, it } from 'vitest';

const { flows, flowText, leaving, pairs, sizeText, stepsLeft } = await import(
  new URL('./pairs.js', import.meta.url).href
);

const step = (n: number, from: string, to: string) => ({
  step: n,
  serverId: `uuid-${n}`,
  serverName: `web-${n}`,
  from,
  to,
  ramMb: 2048,
  diskGb: 30,
});

describe('moves as people tell them', () => {
  it('in one sentence: few hosts by name, more by their number', () => {
    expect(leaving([step(1, 'a', 'b')])).toBe('1 VM leaves a for b');
    expect(leaving([step(1, 'a', 'b'), step(2, 'a', 'c')])).toBe('2 VMs leave a for b and c');
    expect(leaving([step(1, 'a', 'x'), step(2, 'b', 'y'), step(3, 'c', 'z')])).toBe('3 VMs leave 3 hosts for 3 hosts');
  });

  it('a VM with two moves is one VM', () => {
    expect(leaving([step(1, 'a', 'b'), { ...step(2, 'b', 'c'), serverId: 'uuid-1' }])).toBe(
      '1 VM leaves a and b for b and c',
    );
  });

  it('summed per pair of hosts, those off one host together', () => {
    const all = [step(1, 'a', 'b'), step(2, 'c', 'b'), step(3, 'a', 'd'), step(4, 'a', 'b')];
    expect(
      pairs(all).map((pair: { from: string; to: string }) => [
        pair.from,
        pair.to,
        flowText(pair, true),
        sizeText(pair),
      ]),
    ).toEqual([
      ['a', 'b', 'web-1 and web-4', '64 GiB'],
      ['a', 'd', 'web-3', '32 GiB'],
      ['c', 'b', 'web-2', '32 GiB'],
    ]);
  });

  it('each by itself where they can be told apart by their names, else per pair', () => {
    const many = (n: number) => Array.from({ length: n }, (_, i) => step(i, 'a', 'b'));
    expect(flows(many(12))).toHaveLength(12);
    expect(flows(many(13)).map((flow: unknown) => [flowText(flow, false), sizeText(flow)])).toEqual([
      ['13 VMs', '416 GiB'],
    ]);
  });
});

describe('the steps of a plan that are left at a moment', () => {
  const steps = [step(1, 'a', 'b'), step(2, 'a', 'b'), step(3, 'a', 'b')];
  const left = (picture: object, doneAt: readonly (readonly [string, string])[]) =>
    stepsLeft(steps, picture, new Map(doneAt)).map(({ serverId }: { serverId: string }) => serverId);

  it('are those whose VMs are not on their destinations', () => {
    const vms = { ids: ['uuid-1', 'uuid-2', 'uuid-3'], hosts: [1, 0, 0] };
    expect(left({ vms, hosts: [{ name: 'a' }, { name: 'b' }] }, [])).toEqual(['uuid-2', 'uuid-3']);
  });

  it('are those whose moves end later, where the picture has no VMs', () => {
    const picture = { vms: null, hosts: [], snapshot: { time: '2026-03-01T12:00:00.000Z' } };
    const ends = [
      ['uuid-1', '2026-03-01T11:59:59.000Z'],
      ['uuid-2', '2026-03-01T12:00:01.000Z'],
    ] as const;
    expect(left(picture, ends)).toEqual(['uuid-2', 'uuid-3']);
  });
});
