import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { actionReason } from './actionReason.ts';
import { MicroversionUnsupported } from './errors.ts';
import { faultText } from './fault.ts';
import { flavorResources } from './flavor.ts';
import { atLeastMicroversion, compareVersions, negotiate } from './microversion.ts';
import type { Flavor, InstanceActionEvent } from './novaTypes.ts';

const flavor = (extraSpecs: Record<string, string> = {}, more: Partial<Flavor> = {}): Flavor => ({
  name: 'f',
  vcpus: 8,
  ramMb: 4096,
  rootGb: 20,
  ephemeralGb: 0,
  swapMb: 0,
  extraSpecs,
  ...more,
});
const claim = (
  extraSpecs: Record<string, string>,
  more: Partial<Flavor> = {},
  options: Partial<Parameters<typeof flavorResources>[1]> = {},
): Record<string, number> => flavorResources(flavor(extraSpecs, more), { bootFromVolume: false, ...options });
const base = { MEMORY_MB: 4096, DISK_GB: 20 };

describe('flavorResources', () => {
  it('claims VCPU, MEMORY_MB and DISK_GB', () => {
    expect(claim({})).toEqual({ VCPU: 8, ...base });
  });

  it('claims root, ephemeral and swap rounded up to whole GB, and no root when it boots from a volume', () => {
    expect(claim({}, { ephemeralGb: 5, swapMb: 1025 })).toMatchObject({ DISK_GB: 27 });
    expect(claim({}, { ephemeralGb: 5, swapMb: 1 }, { bootFromVolume: true })).toMatchObject({ DISK_GB: 6 });
  });

  it('leaves out what is 0', () => {
    expect(claim({}, {}, { bootFromVolume: true })).toEqual({ VCPU: 8, MEMORY_MB: 4096 });
  });

  it.each([
    [{ 'hw:cpu_policy': 'shared' }, { VCPU: 8 }],
    [{ 'hw:cpu_policy': 'dedicated' }, { PCPU: 8 }],
    [{ 'hw:cpu_policy': 'dedicated', 'hw:emulator_threads_policy': 'isolate' }, { PCPU: 9 }],
    [{ 'hw:cpu_policy': 'dedicated', 'hw:emulator_threads_policy': 'share' }, { PCPU: 8 }],
    [
      { 'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '0-2,^1' },
      { PCPU: 2, VCPU: 6 },
    ],
    [
      { 'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '^0-1' },
      { PCPU: 6, VCPU: 2 },
    ],
    [
      { 'hw:cpu_policy': 'mixed', 'hw:cpu_realtime': 'yes', 'hw:cpu_realtime_mask': '4-7' },
      { PCPU: 4, VCPU: 4 },
    ],
    [
      { 'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '0', 'hw:emulator_threads_policy': 'isolate' },
      { PCPU: 2, VCPU: 7 },
    ],
    [{ 'hw:mem_encryption': 'True' }, { VCPU: 8, MEM_ENCRYPTION_CONTEXT: 1 }],
    [{ 'hw:mem_encryption': 'false' }, { VCPU: 8 }],
    [{ 'hw:pmem': '6GB, 6GB ,my-pmem' }, { VCPU: 8, CUSTOM_PMEM_NAMESPACE_6GB: 2, CUSTOM_PMEM_NAMESPACE_MY_PMEM: 1 }],
  ])('with %j claims %j', (specs, expected) => {
    expect(claim(specs)).toEqual({ ...base, ...expected });
  });

  it('takes the CPU policy of the image where the flavor has none', () => {
    const imageProperties = { hw_cpu_policy: 'dedicated' };
    expect(claim({}, {}, { imageProperties })).toEqual({ ...base, PCPU: 8 });
    expect(claim({ 'hw:cpu_policy': 'shared' }, {}, { imageProperties })).toEqual({ ...base, VCPU: 8 });
  });

  it.each([
    [{ 'resources:VCPU': '2' }, { ...base, VCPU: 2 }],
    [{ 'resources:PCPU': '3' }, { ...base, PCPU: 3 }],
    [{ 'resources:MEMORY_MB': '0', 'resources:DISK_GB': '0' }, { VCPU: 8 }],
    [{ 'resources:VGPU': '1' }, { ...base, VCPU: 8, VGPU: 1 }],
    [
      { 'resources1:VGPU': '1', 'resources2:VGPU': '2', resources_x: '1' },
      { ...base, VCPU: 8, VGPU: 3 },
    ],
    [
      { 'resources_a:VCPU': '2', 'resources_b:VCPU': '2' },
      { ...base, VCPU: 4 },
    ],
    [
      { 'resources:CUSTOM_BAREMETAL': '1', 'resources:NONSENSE': '4', 'resources:VGPU': 'many' },
      { ...base, VCPU: 8, CUSTOM_BAREMETAL: 1 },
    ],
  ])('with %j claims %j in their place', (specs, expected) => {
    expect(claim(specs)).toEqual(expected);
  });

  it('claims what Nova 31 itself computed for these', () => {
    const cases: {
      flavor: Flavor;
      bootFromVolume: boolean;
      imageProperties: Record<string, string>;
      claims: object;
    }[] = JSON.parse(readFileSync(new URL('flavor.golden.json', import.meta.url), 'utf8'));
    expect(cases).toHaveLength(60);
    for (const { flavor: one, claims, ...options } of cases)
      expect(flavorResources(one, options), JSON.stringify(one)).toEqual(claims);
  });

  it('never claims more or less CPUs than the flavor has, whatever is pinned', () => {
    const masks = fc.uniqueArray(fc.integer({ min: 0, max: 7 }), { minLength: 1, maxLength: 7 });
    fc.assert(
      fc.property(masks, (cpus) => {
        const { PCPU = 0, VCPU = 0 } = claim({ 'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': cpus.join(',') });
        expect(PCPU).toBe(cpus.length);
        expect(PCPU + VCPU).toBe(8);
      }),
    );
  });
});

describe('microversions', () => {
  it('compare by number and not by text', () => {
    expect(compareVersions('2.9', '2.10')).toBeLessThan(0);
    expect(compareVersions('2.100', '2.99')).toBeGreaterThan(0);
    expect(compareVersions('2.60', '2.60')).toBe(0);
    expect(compareVersions('1.99', '2.0')).toBeLessThan(0);
    expect(atLeastMicroversion('2.100', '2.99')).toBe(true);
  });

  const version = fc.integer({ min: 1, max: 120 }).map((minor) => `2.${minor}`);
  it('a negotiated one is known to both sides, and there is one whenever the ranges meet', () => {
    const sorted = fc
      .tuple(version, version)
      .map(([a, b]) => (compareVersions(a, b) <= 0 ? [a, b] : [b, a]) as [string, string]);
    fc.assert(
      fc.property(sorted, sorted, ([min, max], [lowest, highest]) => {
        const meet = compareVersions(lowest, max) <= 0 && compareVersions(min, highest) <= 0;
        if (!meet) {
          expect(() => negotiate('nova', 'x', { min, max }, { lowest, highest })).toThrow(MicroversionUnsupported);
          return;
        }
        const chosen = negotiate('nova', 'x', { min, max }, { lowest, highest });
        for (const floor of [min, lowest]) expect(compareVersions(chosen, floor)).toBeGreaterThanOrEqual(0);
        for (const ceiling of [max, highest]) expect(compareVersions(chosen, ceiling)).toBeLessThanOrEqual(0);
      }),
    );
  });
});

describe('faultText', () => {
  it.each([
    ['{"conflictingRequest": {"code": 409, "message": "busy"}}', 'busy'],
    ['{"error": {"code": 401, "message": "no", "title": "Unauthorized"}}', 'no'],
    [
      '{"errors": [{"status": 400, "title": "Bad Request", "detail": "The server could not comply.\\n\\n Invalid class  "}]}',
      'The server could not comply. Invalid class',
    ],
    ['{"errors": [{"title": "Not Found"}]}', 'Not Found'],
    ['{"message": "plain"}', 'plain'],
    ['<html><head><title>502</title></head><body><h1>502 Bad Gateway</h1></body></html>', '502 Bad Gateway'],
    ['', 'no reason given'],
    ['x'.repeat(500), `${'x'.repeat(300)}...`],
  ])('of %j', (body, expected) => {
    expect(faultText(body)).toBe(expected);
  });
});

describe('actionReason', () => {
  const event = (name: string, more: Partial<InstanceActionEvent>): InstanceActionEvent => ({
    event: name,
    startedAt: '2026-01-01T00:00:00.000Z',
    finishedAt: '2026-01-01T00:00:05.000Z',
    result: 'Success',
    traceback: null,
    host: null,
    details: null,
    ...more,
  });

  it('is undefined while nothing failed', () => {
    expect(
      actionReason({ message: null, events: [event('compute_pre_live_migration', {}), event('x', { result: null })] }),
    ).toBeUndefined();
  });

  it('is what the event says that failed first, not what wraps it', () => {
    const inner = {
      result: 'Error',
      finishedAt: '2026-01-01T00:00:03.000Z',
      details: 'Unacceptable CPU info',
      host: 'cmp2',
    };
    const outer = { result: 'Error', details: 'No valid host was found. ', host: 'controller' };
    const events = [
      event('compute_check_can_live_migrate_destination', inner),
      event('conductor_live_migrate_instance', outer),
    ];
    expect(actionReason({ message: 'Error', events })).toEqual({
      text: 'Unacceptable CPU info',
      event: 'compute_check_can_live_migrate_destination',
      host: 'cmp2',
    });
    expect(actionReason({ message: 'Error', events: events.toReversed() })?.text).toBe('Unacceptable CPU info');
  });

  it('below 2.84 is the last line of the traceback, else the message', () => {
    const traceback = '  File "x.py", line 1\n    raise\nnova.exception.NoValidHost: No valid host was found.\n';
    expect(actionReason({ message: 'Error', events: [event('e', { result: 'Error', traceback })] })?.text).toBe(
      'nova.exception.NoValidHost: No valid host was found.',
    );
    expect(actionReason({ message: 'Error', events: [event('e', { result: 'Error' })] })).toEqual({
      text: 'Error',
      event: 'e',
      host: undefined,
    });
    expect(actionReason({ message: 'Error', events: [] })).toEqual({
      text: 'Error',
      event: undefined,
      host: undefined,
    });
  });
});

describe('the error codes', () => {
  it('are each in the README, and no other', () => {
    const codes = (path: string): string[] => [
      ...new Set(readFileSync(new URL(path, import.meta.url), 'utf8').match(/KRONOS_OPENSTACK_[A-Z_]+[A-Z]/g) ?? []),
    ];
    expect(codes('../README.md').sort()).toEqual(codes('./errors.ts').sort());
  });
});
