import { describe, expect, it } from 'vitest';
import { decideInput, type Sketch } from '../../testing/index.ts';
import { decide } from '../decide.ts';
import { previewDrain } from './drainPreview.ts';

const sketch = (more: Partial<Sketch> = {}): Sketch => ({
  policies: { cpu: { threshold: 0.9, maxMigrationsPerCycle: 1 } },
  hosts: { a: {}, b: {}, c: {} },
  vms: {
    v1: { host: 'a', w: { cpu: 0.3 } },
    v2: { host: 'a', w: { cpu: 0.1 } },
    locked: { host: 'a', w: { cpu: 0.1 }, set: { locked: true } },
    v3: { host: 'b', w: { cpu: 0.2 } },
  },
  ...more,
});
const disabled = (host: string) => ({ a: {}, b: {}, c: {}, [host]: { disabled: true } });
const moves = (input: Sketch) =>
  (decide(decideInput(input)).plan?.steps ?? []).map(({ serverId, from, to }) => [serverId, from, to]);

describe('a drain', () => {
  it('is an evacuation without the option that evacuates every disabled host', () => {
    const hosts = disabled('a');
    const drained = sketch({ hosts, memory: { draining: ['a'] }, options: { balance: false } });
    expect(moves(drained)).toEqual([['v1', 'a', 'c']]);
    expect(decide(decideInput(drained)).evacuations).toEqual([{ host: 'a', state: 'running', left: 3 }]);
  });

  it('evacuates no other disabled host', () => {
    const hosts = disabled('b');
    const other = sketch({ hosts, memory: { draining: ['a'] }, options: { balance: false } });
    expect(moves(other)).toEqual([]);
    expect(decide(decideInput(other)).evacuations).toEqual([]);
  });

  it('evacuates nothing while the host is enabled, and takes no VM there', () => {
    const enabled = sketch({ memory: { draining: ['c'] }, policies: { cpu: { threshold: 0.1 } } });
    const steps = moves(enabled);
    expect(steps.length).toBeGreaterThan(0);
    expect(steps.map(([, , to]) => to)).not.toContain('c');
    expect(moves({ ...enabled, memory: {} }).map(([, , to]) => to)).toContain('c');
  });

  it('passes the cooldown only where evacuations may', () => {
    const hosts = disabled('a');
    const memory = { draining: ['a'], lastRelease: { planId: 'p', atMs: Date.parse('2026-01-01T11:59:00.000Z') } };
    expect(moves(sketch({ hosts, memory }))).toEqual([]);
    expect(moves(sketch({ hosts, memory, options: { evacuationIgnoresCooldown: true } }))).toHaveLength(1);
  });
});

describe('the preview of a drain', () => {
  const preview = (names: string[], more: Partial<Sketch> = {}) => previewDrain(decideInput(sketch(more)), names);

  it('says where each VM would go and which cannot, beyond the budget of a cycle', () => {
    const [host] = preview(['a']).hosts;
    expect(host?.moves.map(({ serverId, to }) => [serverId, to])).toEqual([
      ['v1', 'c'],
      ['v2', 'b'],
    ]);
    expect(host?.stuck).toMatchObject([{ serverId: 'locked', reason: { code: 'vm-locked' } }]);
    expect(host?.disabled).toBeNull();
  });

  it('sends no VM from one of the hosts to another one', () => {
    const { hosts } = preview(['a', 'b']);
    expect(hosts.map(({ host }) => host)).toEqual(['a', 'b']);
    expect(new Set(hosts.flatMap(({ moves }) => moves.map(({ to }) => to)))).toEqual(new Set(['c']));
  });

  it('tells what passes by itself from what does not', () => {
    const releases = { v1: [Date.parse('2026-01-01T11:59:00.000Z')] };
    const [host] = preview(['a'], { memory: { releases } }).hosts;
    expect(host?.waiting).toMatchObject([{ serverId: 'v1', reason: { code: 'vm-cooling-down' } }]);
    expect(host?.stuck.map(({ serverId }) => serverId)).toEqual(['locked']);
  });

  it('waits for the breaker of a host, which closes by itself', () => {
    const failed = ['11:58:00', '11:59:00', '11:59:30'].map((time) => Date.parse(`2026-01-01T${time}Z`));
    const given = (hostFailures: Record<string, number[]>): Partial<Sketch> => ({
      hosts: disabled('a'),
      memory: { draining: ['a'], hostFailures },
      options: { balance: false },
    });
    const broken = given({ b: failed, c: failed });
    const [host] = preview(['a'], broken).hosts;
    expect(host?.waiting).toMatchObject([
      { serverId: 'v1', reason: { code: 'host-broken' } },
      { serverId: 'v2', reason: { code: 'host-broken' } },
    ]);
    expect(decide(decideInput(sketch(broken))).evacuations).toMatchObject([
      { host: 'a', state: 'running', left: 3, waits: [{ code: 'host-broken', count: 2, serverName: 'v1' }] },
    ]);
    expect(moves(sketch(broken))).toEqual([]);
    expect(moves(sketch(given({ c: failed })))).toEqual([['v1', 'a', 'b']]);
  });

  it('names hosts that others disabled, hosts that are down, and hosts that it does not know', () => {
    const answer = preview(['a', 'b', 'x'], { hosts: { a: { disabled: true }, b: { down: true }, c: {} } });
    expect(answer.hosts[0]?.disabled).not.toBeNull();
    expect(answer.hosts[1]?.moves).toEqual([]);
    expect(answer.hosts[1]?.waiting.concat(answer.hosts[1].stuck)).toMatchObject([
      { serverId: 'v3', reason: { code: 'vm-source-down' } },
    ]);
    expect(answer.unknown).toEqual(['x']);
  });
});
