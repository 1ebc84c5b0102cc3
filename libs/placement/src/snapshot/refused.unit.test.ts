import { completeEngineOptions } from '@kronos/contracts';
import { markOf, REFUSAL_KEPT_MS, shapeOf } from '@kronos/facts';
import { describe, expect, it } from 'vitest';
import { decideInput, SKETCH_TIME } from '../../testing/index.ts';
import { checkMove } from '../cluster/constraints.ts';
import type { Memory } from './memory.ts';
import { observe } from './observe.ts';

const NOW = Date.parse(SKETCH_TIME);
const large = { set: { extraSpecs: { 'hw:numa_nodes': '2' } } };
const {
  snapshot,
  memory: before,
  options,
} = decideInput({
  policies: { cpu: { threshold: 0.1 } },
  hosts: { a: {}, b: {}, c: {} },
  options: { moveUnknownTopology: true },
  vms: {
    one: { host: 'a', w: { cpu: 0.1 }, ...large },
    other: { host: 'a', w: { cpu: 0.1 }, ...large },
    small: { host: 'a', w: { cpu: 0.1 } },
    there: { host: 'b', w: { cpu: 0.1 } },
  },
});
const [one] = snapshot.servers;
const b = snapshot.hosts.find(({ name }) => name === 'b');
if (one === undefined || b === undefined) throw new Error('the snapshot has no such server or host');
const shape = shapeOf(one);
const mark = markOf(b, snapshot.servers);

const refusal = (more: Partial<NonNullable<Memory['refusals']>[number]> = {}) => ({
  serverId: 'one',
  host: 'b',
  atMs: NOW - 60_000,
  text: 'Requested instance NUMA topology cannot fit',
  shape: null,
  mark: null,
  ...more,
});
const toB = (vm: string, ...refusals: NonNullable<Memory['refusals']>): string => toBIn(snapshot, vm, ...refusals);
const toBIn = (seen: typeof snapshot, vm: string, ...refusals: NonNullable<Memory['refusals']>): string => {
  const memory = { ...before, refusals };
  const { cluster } = observe(seen, memory, completeEngineOptions(options), NOW);
  const found = checkMove(cluster, vm, 'b');
  return 'ok' in found ? 'legal' : found.code;
};

describe('a destination that Nova refused', () => {
  it('acts: it is no destination for that server, nor for others of its shape', () => {
    expect([toB('one', refusal()), toB('other', refusal())]).toEqual(['refused-before', 'refused-before']);
    expect(toB('other', refusal({ serverId: 'gone', shape, mark }))).toBe('refused-before');
  });

  it('refuses: servers of another shape, and other hosts, are not concerned', () => {
    expect(toB('small', refusal())).toBe('legal');
    expect(toB('one', refusal({ host: 'c' }))).toBe('legal');
    expect(shapeOf({ ...one, imageProperties: { hw_numa_nodes: '4' } })).not.toBe(shape);
    // Of a server that is gone before any decision saw the refusal, the shape is unknown.
    expect(toB('other', refusal({ serverId: 'gone' }))).toBe('legal');
  });

  it('does nothing once a day has passed, or once the servers of the host have changed', () => {
    const old = { atMs: NOW - REFUSAL_KEPT_MS };
    expect(toB('one', refusal(old))).toBe('legal');
    expect(toB('one', refusal({ shape, mark: 'as it was before' }))).toBe('legal');
    const emptied = snapshot.servers.filter(({ id }) => id !== 'there');
    expect(markOf(b, emptied)).not.toBe(mark);
    expect(markOf({ ...b, hypervisorVersion: b.hypervisorVersion + 1 }, snapshot.servers)).not.toBe(mark);
    expect(markOf({ ...b, traits: ['HW_CPU_X86_AVX2'] }, snapshot.servers)).not.toBe(mark);
  });

  it('acts while a server counts on the host that only moved from it, or is to come: its own host is none of the aggregate’s', () => {
    const guest = { ...one, id: 'guest', host: 'b', alsoOn: ['elsewhere'] };
    const seen = (more: object) => ({ ...snapshot, servers: [...snapshot.servers, { ...guest, ...more }] });
    expect(toBIn(seen({ listedOn: 'elsewhere' }), 'one', refusal({ shape, mark }))).toBe('refused-before');
    expect(toBIn(seen({}), 'one', refusal({ shape, mark }))).toBe('legal');
  });

  it('acts while the traits of the host cannot be read: nothing shows that it has changed', () => {
    const hosts = snapshot.hosts.map((host) => (host === b ? { ...b, traits: null } : host));
    expect(markOf({ ...b, traits: null }, snapshot.servers)).toBeNull();
    expect(toBIn({ ...snapshot, hosts }, 'one', refusal({ shape, mark }))).toBe('refused-before');
  });
});
