import type { GroupPolicy } from '@kronos/contracts';
import { groupVerdict } from '@kronos/facts';
import { describe, expect, it } from 'vitest';
import { arrange } from '../draft/order.ts';
import { type ClusterFile, clusterOf, type PlanClusterOptions } from '../file/clusterFile.ts';
import { codeOfNumber } from '../reasons.ts';
import type { Cluster } from './cluster.ts';
import { Checker, NO_REPAIR, Room } from './constraints.ts';

/** Hosts a, b and c with room for 2 GiB each; v1 and v2 of 1 GiB on a, v3 on b. */
function cluster(policy: GroupPolicy | null, options: Partial<PlanClusterOptions> = {}, maxServerPerHost = 1): Cluster {
  const vm = (id: string, host: string) => ({ id, host, w: [0.1], memMb: 1024 });
  const file: ClusterFile = {
    policies: ['cpu'],
    weights: [1],
    hosts: ['a', 'b', 'c'].map((id) => ({ id, memFreeMb: 1024 })),
    vms: [vm('v1', 'a'), vm('v2', 'a'), vm('v3', 'b')],
    groups: policy === null ? [] : [{ id: 'g', policy, vms: ['v1', 'v3'], maxServerPerHost }],
  };
  return clusterOf(file, { maxMigrations: 5, ...options });
}

const [A, B, C] = [0, 1, 2];
const [V1, V2, V3] = [0, 1, 2];

/** The reason against a move in the start state; null when it is legal. */
function refusal(
  of: Cluster,
  vm: number,
  host: number,
  strict = false,
  room = new Room(of, { departuresFree: false }),
): string | null {
  const code = new Checker(of.vmHost, room, { strict }).refusal(vm, host);
  return code === 0 ? null : codeOfNumber(code);
}

describe('a group of anti-affinity', () => {
  it('refuses a host that holds as many members as it may', () => {
    expect(refusal(cluster('anti-affinity'), V1, B)).toBe('anti-affinity');
    expect(refusal(cluster('soft-anti-affinity'), V1, B)).toBe('anti-affinity');
  });

  it('allows a host that holds fewer', () => {
    expect(refusal(cluster('anti-affinity'), V1, C)).toBeNull();
    expect(refusal(cluster('anti-affinity', {}, 2), V1, B)).toBeNull();
  });

  it('does not limit a VM that is no member', () => {
    expect(refusal(cluster('anti-affinity'), V2, B)).toBeNull();
  });

  it('counts a member on every host where it may be', () => {
    const of = { ...cluster('anti-affinity'), alsoOn: new Map([[V3, [C]]]) };
    expect(refusal(of, V1, C)).toBe('anti-affinity');
    expect(refusal(of, V2, C)).toBeNull();
    const move = {
      vm: V1,
      from: A,
      to: C,
      phase: 'spread',
      parking: false,
      why: 'lowers-imbalance',
      repairs: NO_REPAIR,
    } as const;
    expect(arrange(of, [move]).blocked).toEqual([0]);
    expect(arrange({ ...of, alsoOn: new Map() }, [move]).blocked).toEqual([]);
  });
});

describe('a group of affinity', () => {
  it('refuses a host where not all others are, and lets one be gathered', () => {
    expect(refusal(cluster('affinity'), V1, C)).toBe('affinity');
    expect(refusal(cluster('affinity'), V1, B)).toBeNull();
    expect(refusal({ ...cluster('affinity'), alsoOn: new Map([[V3, [C]]]) }, V1, B)).toBe('affinity');
  });

  it('does not limit a VM that is no member', () => {
    expect(refusal(cluster('affinity'), V2, C)).toBeNull();
  });
});

describe('soft groups at a penalty', () => {
  const options = { softRules: 'penalty' } as const;

  it('refuse nothing', () => {
    expect(refusal(cluster('soft-anti-affinity', options), V1, B)).toBeNull();
    expect(refusal(cluster('soft-affinity', options), V1, C)).toBeNull();
  });

  it('refuse what they refuse as a veto where the caller is strict', () => {
    expect(refusal(cluster('soft-anti-affinity', options), V1, B, true)).toBe('anti-affinity');
    expect(refusal(cluster('soft-affinity', options), V1, C, true)).toBe('affinity');
  });

  it('leave hard groups as they are', () => {
    expect(refusal(cluster('anti-affinity', options), V1, B)).toBe('anti-affinity');
    expect(refusal(cluster('affinity', options), V1, C)).toBe('affinity');
  });
});

describe('the room on a host', () => {
  it('holds a VM where amounts and groups allow it', () => {
    expect(new Room(cluster('anti-affinity'), { departuresFree: true }).holds(V1, C)).toBe(true);
  });

  it('does not hold one that an anti-affinity group keeps out, unless that is only a penalty', () => {
    expect(new Room(cluster('anti-affinity'), { departuresFree: true }).holds(V1, B)).toBe(false);
    expect(
      new Room(cluster('soft-anti-affinity', { softRules: 'penalty' }), { departuresFree: true }).holds(V1, B),
    ).toBe(true);
  });

  it('does not hold one for which nothing is free', () => {
    const room = new Room(cluster(null), { departuresFree: true });
    room.arrive(V2, C);
    expect(room.holds(V1, C)).toBe(false);
    expect(room.holds(V1, B)).toBe(true);
  });

  it('is made by departures only where these count', () => {
    for (const departuresFree of [true, false]) {
      const of = cluster(null);
      const room = new Room(of, { departuresFree });
      room.move(V3, B, C);
      room.arrive(V2, B);
      expect([departuresFree, refusal(of, V1, B, false, room)]).toEqual([
        departuresFree,
        departuresFree ? null : 'capacity',
      ]);
    }
  });
});

describe('every small group', () => {
  const hosts = ['a', 'b', 'c'];
  /** The hosts of up to three other members. */
  const places = [1, 2, 3].flatMap((count) =>
    Array.from({ length: hosts.length ** count }, (_, one) =>
      Array.from({ length: count }, (_, i) => hosts[Math.floor(one / hosts.length ** i) % hosts.length] ?? ''),
    ),
  );
  const codes = {
    apart: 'anti-affinity',
    together: 'affinity',
    immovable: 'affinity-gathered',
    allowed: null,
  } as const;

  it.each([
    ['affinity', 1],
    ['soft-affinity', 1],
    ['anti-affinity', 1],
    ['anti-affinity', 2],
    ['soft-anti-affinity', 1],
  ] as const)('of %s with at most %d members on a host is judged as before a start', (policy, most) => {
    const seen = new Set<string>();
    for (const others of places) {
      const at = ['a', ...others];
      const of = clusterOf(
        {
          policies: ['cpu'],
          weights: [1],
          hosts: hosts.map((id) => ({ id, memFreeMb: 9999 })),
          vms: at.map((host, i) => ({ id: `v${i}`, host, w: [0.1], memMb: 1 })),
          groups: [{ id: 'g', policy, maxServerPerHost: most, vms: at.map((_, i) => `v${i}`) }],
        },
        { maxMigrations: 5 },
      );
      const on = (host: string) => others.filter((one) => one === host).length;
      for (const [h, to] of hosts.entries()) {
        if (to === 'a') continue;
        const counts = { there: on(to), placed: others.length, onSource: on('a') };
        const verdict = groupVerdict({ policy, most }, counts, { gathers: false });
        seen.add(verdict);
        if (verdict === 'unknown') throw new Error(`${policy} is known`);
        expect([...at, to, refusal(of, 0, h)]).toEqual([...at, to, codes[verdict]]);
      }
    }
    expect(seen.size).toBeGreaterThan(1);
  });
});
