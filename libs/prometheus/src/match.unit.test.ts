import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type HostNames, matchHosts, matchVms, type VmNames } from './match.ts';
import { isPlainSelector } from './selector.ts';

const host = (serviceHost: string, hypervisorHostname = serviceHost): HostNames => ({
  serviceHost,
  hypervisorHostname,
});

describe('matchHosts', () => {
  const hosts = [host('cmp1', 'cmp1.example'), host('cmp2', 'cmp2.example')];

  it.each([
    ['cmp1', 'cmp1'],
    ['cmp2.example', 'cmp2'],
    ['cmp1:9100', 'cmp1'],
    ['cmp2.example:9100', 'cmp2'],
  ])('takes %s for %s', (label, expected) => {
    expect(matchHosts([label], hosts)).toEqual({ byLabel: new Map([[label, expected]]), unknown: [], ambiguous: [] });
  });

  it.each(['cmp3', 'cmp', 'CMP1', 'cmp1.example.org', 'cmp1:', 'cmp1:x', ''])('takes %j for none', (label) => {
    expect(matchHosts([label], hosts)).toEqual({ byLabel: new Map(), unknown: [label], ambiguous: [] });
  });

  it('prefers the service host to another host of that hypervisor hostname, and the whole to the part before the port', () => {
    const crossed = [host('a', 'b'), host('b', 'c'), host('a:1', 'x')];
    expect(matchHosts(['b', 'a:1'], crossed).byLabel).toEqual(
      new Map([
        ['b', 'b'],
        ['a:1', 'a:1'],
      ]),
    );
  });

  it('reports a label that fits two hosts, by hypervisor hostname or after removing the port', () => {
    const twins = [host('a', 'same'), host('b', 'same'), host('c', 'd'), host('d', 'e')];
    expect(matchHosts(['same', 'd:1'], twins)).toEqual({
      byLabel: new Map(),
      unknown: [],
      ambiguous: ['same', 'd:1'],
    });
  });

  it('matches an IPv6 address with its port', () => {
    expect(matchHosts(['[fe80::1]:9100'], [host('[fe80::1]')]).byLabel.size).toBe(1);
  });

  it('every label is matched, unknown or ambiguous, and exactly one of these', () => {
    const name = fc.constantFrom('a', 'b', 'c', 'a:1', 'b:1', 'a:2');
    const cloud = fc.array(
      fc.tuple(name, name).map(([s, h]) => host(s, h)),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(fc.array(name), cloud, (labels, all) => {
        const result = matchHosts(labels, all);
        const sorted = [...result.byLabel.keys(), ...result.unknown, ...result.ambiguous].sort();
        expect(sorted).toEqual([...new Set(labels)].sort());
        for (const found of result.byLabel.values()) expect(all.map((one) => one.serviceHost)).toContain(found);
      }),
    );
  });
});

describe('matchVms', () => {
  const vm = (uuid: string, internalName: string | null, displayName: string | null): VmNames => ({
    uuid,
    internalName,
    displayName,
  });
  const vms = [vm('AB-1', 'instance-1', 'web'), vm('ab-2', 'instance-2', 'web'), vm('ab-3', null, null)];

  it('matches by uuid without regard to case', () => {
    expect(matchVms(['ab-1', 'AB-2', 'no'], vms, 'nova_instance_uuid')).toEqual({
      byLabel: new Map([
        ['ab-1', 'AB-1'],
        ['AB-2', 'ab-2'],
      ]),
      unknown: ['no'],
      ambiguous: [],
    });
  });

  it('matches by internal name exactly', () => {
    expect(matchVms(['instance-2', 'Instance-1'], vms, 'nova_internal_name')).toEqual({
      byLabel: new Map([['instance-2', 'ab-2']]),
      unknown: ['Instance-1'],
      ambiguous: [],
    });
  });

  it('has no data for any of the VMs that share a name', () => {
    expect(matchVms(['web'], vms, 'nova_display_name')).toEqual({
      byLabel: new Map(),
      unknown: [],
      ambiguous: ['web'],
    });
  });
});

describe('isPlainSelector', () => {
  it.each([
    'up',
    ' host_cpu:ratio ',
    'up{job="nova"}',
    'up{job="nova", host=~"cmp.*",}',
    "up{job!='nova', host!~`x`}",
    '{__name__="up"}',
    '{"my.metric", job="x"}',
    '{"my label"="x"}',
    'up{}',
    '(up)',
    '((up{a="}"}))',
    'up # comment',
    'up{a="b\\"} + 1"}',
  ])('holds for %s', (text) => {
    expect(isPlainSelector(text)).toBe(true);
  });

  it.each([
    '',
    '1',
    'NaN',
    'Inf',
    '{}',
    'up + 1',
    'sum(up)',
    'sum by (host) (up)',
    'up[5m]',
    'up offset 5m',
    'up @ start()',
    'rate(up[5m])',
    '(up) * (up)',
    'up{a="b"',
    'up{a=}',
    'up{a}',
    'up{,}',
    'up{a="b" c="d"}',
    'up up',
    '"up"',
    '()',
  ])('does not hold for %s', (text) => {
    expect(isPlainSelector(text)).toBe(false);
  });
});
