import { DAY_MS } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { decideInput, type Sketch } from '../../testing/index.ts';
import { type AdviceInput, advise } from './advise.ts';

const calm: Sketch = {
  policies: { cpu: { threshold: 0.2 } },
  hosts: { a: {}, b: {}, c: {} },
  vms: { one: { host: 'a', w: { cpu: 0.1 } }, two: { host: 'b', w: { cpu: 0.1 } } },
};
const quiet: AdviceInput['history'] = { observedMs: 0, policies: [], moves: [] };
const ofNova = (metadata: Record<string, string> = {}, ratios: Record<string, number> = { a: 4, b: 4, c: 4 }) => ({
  metadata,
  ratios: Object.fromEntries(Object.entries(ratios).map(([host, VCPU]) => [host, { VCPU }])),
  leaked: [],
});

type More = Partial<Pick<AdviceInput, 'history' | 'settings'>>;
const adviceOf = (sketch: Sketch, more: More = {}) =>
  advise({ ...decideInput(sketch), history: quiet, settings: null, ...more });
const codesOf = (sketch: Sketch, more: More = {}) => adviceOf(sketch, more).map(({ code }) => code);

describe('advice', () => {
  it('is none where nothing is to be changed', () => {
    expect(codesOf(calm, { settings: ofNova() })).toEqual([]);
  });

  it('names hosts without metrics, with the policies that miss them', () => {
    const input = decideInput(calm);
    const snapshot = {
      ...input.snapshot,
      hostReadings: input.snapshot.hostReadings.map((one) => ({ ...one, missing: ['b', 'c'] })),
    };
    expect(advise({ ...input, snapshot, history: quiet, settings: null })).toMatchObject([
      { code: 'host-without-metrics', text: 'Prometheus has no value of cpu for 2 hosts', hosts: ['b', 'c'] },
    ]);
  });

  it('names what an evacuated VM still claims of its former host, with the command that frees it', () => {
    const leak = { serverId: 'one', serverName: 'db', host: 'a', of: 'b', providerId: 'p-b' };
    const leaked = [{ ...leak, resources: { VCPU: 4, MEMORY_MB: 8192 } }];
    const [advice, ...others] = adviceOf(calm, { settings: { ...ofNova(), leaked } });
    expect(others).toEqual([]);
    expect(advice).toMatchObject({
      code: 'allocation-leaked',
      text: 'Placement has 8192 MEMORY_MB, 4 VCPU of db (one) on b, and the VM is on a: b takes less than it could',
      hosts: ['b'],
    });
    expect(advice?.remedy).toContain('openstack resource provider allocation unset --provider p-b one');
  });

  describe("on Nova's weights", () => {
    const packing: Sketch = { ...calm, policies: { cpu: { mode: 'pack', capacityQuery: 'cpu', threshold: 0.2 } } };
    const remedies = (sketch: Sketch, metadata: Record<string, string>) =>
      adviceOf(sketch, { settings: ofNova(metadata) }).map(({ code, remedy }) => [code, remedy.split('. ')[0]]);

    it('gives the metadata to set where Nova works against the mode', () => {
      expect(remedies(calm, { cpu_weight_multiplier: '-1.0' })).toEqual([
        ['nova-stacks', 'openstack aggregate set --property cpu_weight_multiplier=1.0 agg'],
      ]);
      expect(remedies(packing, { ram_weight_multiplier: '-2' })).toEqual([
        ['nova-spreads', 'openstack aggregate set --property cpu_weight_multiplier=-1.0 agg'],
      ]);
      expect(remedies(packing, {})[0]?.[1]).toContain(
        'cpu_weight_multiplier=-1.0 --property ram_weight_multiplier=-1.0',
      );
    });

    it('gives no advice where both agree', () => {
      expect(remedies(calm, { cpu_weight_multiplier: '2', ram_weight_multiplier: '1' })).toEqual([]);
      expect(remedies(packing, { cpu_weight_multiplier: '-1', ram_weight_multiplier: '-1' })).toEqual([]);
    });

    it('gives no advice where they could not be read', () => {
      expect(codesOf(packing)).toEqual([]);
    });
  });

  describe('on allocation ratios', () => {
    const unit = { minUnit: null, maxUnit: null, stepSize: null };
    const hosts = (load: number, share: number): Sketch['hosts'] =>
      Object.fromEntries(
        ['a', 'b', 'c'].map((name) => [
          name,
          {
            score: { cpu: load },
            set: { inventory: { VCPU: { ...unit, capacity: 100, used: 100 * share } } },
          },
        ]),
      );
    const found = (load: number, share: number) =>
      adviceOf({ ...calm, hosts: hosts(load, share), vms: {} }, { settings: ofNova() });

    it('finds hosts that differ', () => {
      const advice = adviceOf(calm, { settings: ofNova({}, { a: 4, b: 16, c: 4 }) });
      expect(advice).toMatchObject([{ code: 'ratios-differ', hosts: ['b'] }]);
      expect(advice[0]?.text).toContain('4 on 2, 16 on 1');
    });

    it('finds a ratio under which hosts would be overloaded, and gives the one that fits', () => {
      // Half is allocated and the hosts are at 80 %: all allocated, they would be at 160 %.
      expect(found(0.8, 0.5)).toMatchObject([
        { code: 'ratio-too-high', policy: 'cpu', remedy: expect.stringContaining('cpu_allocation_ratio = 2 in') },
      ]);
    });

    it('finds a ratio under which Nova refuses VMs on idle hosts', () => {
      expect(found(0.2, 0.9)).toMatchObject([
        { code: 'ratio-too-low', policy: 'cpu', remedy: expect.stringContaining('cpu_allocation_ratio = 14.4 in') },
      ]);
    });

    it('gives no advice where the load fits, or from few allocations', () => {
      expect(found(0.5, 0.6)).toEqual([]);
      expect(found(0.9, 0.2)).toEqual([]);
      expect(found(0.2, 0.5)).toEqual([]);
    });
  });

  describe('on thresholds', () => {
    const past = (one: Partial<AdviceInput['history']['policies'][number]>, observedMs = 7 * DAY_MS) =>
      adviceOf(calm, {
        history: {
          ...quiet,
          observedMs,
          policies: [{ policy: 'cpu', threshold: 0.2, highest: 0.5, aboveMs: DAY_MS, aboveAfterPlansMs: 0, ...one }],
        },
      });

    it('finds one that was never reached', () => {
      expect(past({ highest: 0.05, aboveMs: 0 })).toMatchObject([
        { code: 'threshold-never-reached', policy: 'cpu', remedy: expect.stringContaining('below 0.05') },
      ]);
    });

    it('finds one that was always exceeded, and tells whether plans would reach it', () => {
      expect(past({ aboveMs: 7 * DAY_MS })[0]).toMatchObject({
        code: 'threshold-always-exceeded',
        remedy: expect.stringContaining('release them'),
      });
      expect(past({ aboveMs: 7 * DAY_MS, aboveAfterPlansMs: 7 * DAY_MS })[0]?.remedy).toContain('raise the threshold');
    });

    it('gives no advice on one that is reached at times, was changed since, or has a short history', () => {
      expect(past({})).toEqual([]);
      expect(past({ threshold: 0.3, highest: 0.05, aboveMs: 0 })).toEqual([]);
      expect(past({ highest: 0.05, aboveMs: 0 }, DAY_MS / 2)).toEqual([]);
    });
  });

  describe('on moves', () => {
    const moved = (...moves: [string, string][]) =>
      adviceOf(calm, {
        history: {
          ...quiet,
          moves: moves.map(([from, to], i) => ({ serverId: 'one', serverName: 'web', from, to, atMs: i })).reverse(),
        },
      });

    it('lists VMs that moved back and forth', () => {
      expect(moved(['a', 'b'], ['b', 'a'], ['a', 'b'])).toMatchObject([
        {
          code: 'moves-taken-back',
          text: expect.stringContaining('(2 times)'),
          servers: [{ serverId: 'one', serverName: 'web', backs: 2 }],
        },
      ]);
    });

    it('leaves out VMs that moved on', () => {
      expect(moved(['a', 'b'], ['b', 'c'], ['c', 'a'])).toEqual([]);
      expect(moved()).toEqual([]);
    });
  });

  describe('on VMs that never move', () => {
    const withVm = (set: NonNullable<Sketch['vms'][string]['set']>, more: Partial<Sketch> = {}) =>
      adviceOf({ ...calm, ...more, vms: { one: { host: 'a', w: { cpu: 0.1 }, set } } });

    it('names the reason', () => {
      expect(withVm({ locked: true })).toMatchObject([
        { code: 'never-moves', text: expect.stringContaining('(vm-locked)'), servers: [{ serverId: 'one' }] },
      ]);
      expect(withVm({ optedOutBy: 'kronos:exclude' })[0]?.text).toContain('(vm-opted-out)');
      expect(withVm({ extraSpecs: { 'hw:tpm_version': '2.0' } })[0]?.text).toContain('(vm-vtpm)');
    });

    it('finds a VM that no other host could take even if it were empty', () => {
      expect(withVm({ resources: { VCPU: 2_000_000 } })[0]?.text).toMatch(/\((capacity|unit-limit)\)/);
      const zones = {
        hosts: { a: { zone: 'x' }, b: { zone: 'y' }, c: { zone: 'y' } },
        options: { restrictToAz: true },
      };
      expect(withVm({ availabilityZone: 'x' }, zones)[0]?.text).toContain('(other-zone)');
    });

    it('leaves out what passes by itself: a busy VM, full, disabled or failed hosts', () => {
      expect(withVm({ taskState: 'migrating' })).toEqual([]);
      const full = { free: { VCPU: 0 } };
      expect(withVm({ resources: { VCPU: 1 } }, { hosts: { a: {}, b: full, c: { down: true } } })).toEqual([]);
      expect(withVm({}, { hosts: { a: { down: true }, b: { disabled: true } } })).toEqual([]);
    });
  });
});
