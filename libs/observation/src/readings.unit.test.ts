import type { Policy } from '@kronos/contracts';
import { describe, expect, test } from 'vitest';
import { answer, at, policy, samples } from '../testing/given.ts';
import { matchAnswers, type QueryAnswer, questionsOf, readingsFor } from './readings.ts';

const stalenessMs = 300_000;
const cloudHosts = ['a', 'b', 'c', 'x'].map((host) => ({ serviceHost: host, hypervisorHostname: `${host}.example` }));
const cloudVms = ['1', '2', '9'].map((id) => ({ uuid: id, internalName: `instance-${id}`, displayName: `web` }));

const hostsWith = (states: Readonly<Record<string, 'up' | 'down' | 'unknown'>>) =>
  Object.entries(states).map(([name, state]) => ({
    name,
    service: { status: 'enabled' as const, state, forcedDown: false, disabledReason: null },
  }));
const allUp = hostsWith({ a: 'up', b: 'up', c: 'up' });
const running = [
  { id: '1', status: 'ACTIVE', host: 'a' },
  { id: '2', status: 'ACTIVE', host: 'b' },
];

type Values = Readonly<Record<string, number>>;
/** Series with one label each, by its value. */
const by = (label: string, values: Values) =>
  Object.entries(values).map(([name, value]) => [{ [label]: name }, value] as const);
const ofHosts = (values: Values) => answer('host_cpu', by('host', values));
const ofVms = (values: Values) => answer('vm_cpu', by('uuid', values));

const healthyVms = ofVms({ 1: 0.1, 2: 0.2 });
const healthyHosts = ofHosts({ a: 0.1, b: 0, c: 0.9 });

const matched = (policies: readonly Policy[], answers: readonly QueryAnswer[], hosts = cloudHosts) =>
  matchAnswers({ policies, answers, stalenessMs, hosts, vms: cloudVms });

const read = (
  answers: readonly QueryAnswer[],
  more: Parameters<typeof policy>[1] = {},
  hosts = allUp,
  servers = running,
) => readingsFor(matched([policy('cpu', more)], answers), hosts, servers);
const hostReading = (given: QueryAnswer, more: Parameters<typeof policy>[1] = {}, hosts = allUp) => {
  const [reading] = read([given, healthyVms], more, hosts).hostReadings;
  if (reading === undefined) throw new Error('no reading');
  return reading;
};
const vmReading = (given: QueryAnswer, more: Parameters<typeof policy>[1] = {}) => {
  const { vmReadings, notes } = read([healthyHosts, given], more);
  const [reading] = vmReadings;
  if (reading === undefined) throw new Error('no reading');
  return { reading, notes };
};

describe('the questions of a cycle', () => {
  test('are one per policy and kind', () => {
    const policies = [policy('cpu', { capacityQuery: 'cap', hostSizeQuery: 'size' }), policy('mem')];
    expect(questionsOf(policies).map((one) => one.query)).toEqual([
      'host_cpu',
      'vm_cpu',
      'cap',
      'size',
      'host_mem',
      'vm_mem',
    ]);
  });

  test('are asked once, also for several askers', () => {
    const policies = [policy('cpu', { capacityQuery: 'host_cpu' }), policy('busy', { imbalanceQuery: 'host_cpu' })];
    expect(questionsOf(policies)).toEqual([
      {
        query: 'host_cpu',
        uses: [
          { policy: 'cpu', use: 'imbalance' },
          { policy: 'cpu', use: 'capacity' },
          { policy: 'busy', use: 'imbalance' },
        ],
      },
      { query: 'vm_cpu', uses: [{ policy: 'cpu', use: 'vm_profile' }] },
      { query: 'vm_busy', uses: [{ policy: 'busy', use: 'vm_profile' }] },
    ]);
  });

  test('are none of disabled policies, and none without policies', () => {
    expect(questionsOf([policy('cpu', { enabled: false })])).toEqual([]);
    expect(questionsOf([])).toEqual([]);
  });

  test('that were not asked cannot be read', () => {
    expect(() => read([healthyHosts])).toThrow('vm_cpu');
  });
});

describe('an answer about hosts', () => {
  test('is healthy when every host that is up has one value; 0 is a value', () => {
    expect(hostReading(healthyHosts)).toEqual({
      query: 'host_cpu',
      label: 'host',
      health: 'HEALTHY',
      text: '',
      values: { a: 0.1, b: 0, c: 0.9 },
      missing: [],
      unmatchedLabels: [],
    });
  });

  test('does not call the series of another aggregate unknown, and does not take them either', () => {
    const given = ofHosts({ a: 0.1, b: 0, c: 0.9, x: 0.5 });
    const reading = hostReading(given);
    expect(reading.values).toEqual({ a: 0.1, b: 0, c: 0.9 });
    expect(reading.unmatchedLabels).toEqual([]);
  });

  test('records labels that fit no host, with a note', () => {
    const given = answer('host_cpu', [...[...'abc'].map((host) => [{ host }, 0.5] as const), [{ host: 'db1' }, 0.5]]);
    const { hostReadings, notes } = read([given, healthyVms]);
    expect(hostReadings[0]).toMatchObject({ health: 'HEALTHY', unmatchedLabels: ['db1'] });
    expect(notes.map((one) => one.code)).toEqual(['host-label-unmatched']);
    expect(notes[0]?.text).toContain('db1');
  });

  test('takes no value from a label that fits several hosts', () => {
    const hosts = [...cloudHosts.slice(1), { serviceHost: 'a', hypervisorHostname: 'b.example' }];
    const given = ofHosts({ a: 0.1, 'b.example': 0.2, c: 0.3 });
    const [reading] = readingsFor(matched([policy('cpu')], [given, healthyVms], hosts), allUp, running).hostReadings;
    expect(reading).toMatchObject({
      health: 'PARTIAL',
      values: { a: 0.1, c: 0.3 },
      missing: ['b'],
      unmatchedLabels: ['b.example'],
    });
  });

  test('is PARTIAL when a host that is up has no value', () => {
    const given = ofHosts({ a: 0.1, b: 0.2 });
    const reading = hostReading(given);
    expect(reading).toMatchObject({ health: 'PARTIAL', missing: ['c'], values: { a: 0.1, b: 0.2 } });
    expect(reading.text).toContain('c');
  });

  test('is healthy when only hosts that are down have no value', () => {
    const given = ofHosts({ a: 0.1, b: 0.2 });
    expect(hostReading(given, {}, hostsWith({ a: 'up', b: 'up', c: 'down' })).health).toBe('HEALTHY');
  });

  test('is PARTIAL when a host of unknown state has no value: it may be up', () => {
    const given = ofHosts({ a: 0.1, b: 0.2 });
    expect(hostReading(given, {}, hostsWith({ a: 'up', b: 'up', c: 'unknown' })).health).toBe('PARTIAL');
  });

  test('two series for a host of another aggregate are not our error', () => {
    const given = answer('host_cpu', [
      ...[...'abc'].map((host) => [{ host }, 0.5] as const),
      [{ host: 'x', job: 'one' }, 0.5],
      [{ host: 'x', job: 'two' }, 0.5],
    ]);
    expect(hostReading(given).health).toBe('HEALTHY');
  });

  test('is STALE when a series that was there within the threshold is gone', () => {
    const reading = hostReading({ ...healthyHosts, instant: samples(by('host', { a: 0.1, b: 0.2 })) });
    expect(reading.health).toBe('STALE');
    expect(reading.text).toContain('c');
  });

  test('is not STALE for a series of another aggregate, or of a host that is down', () => {
    const given = answer('host_cpu', [...[...'abx'].map((host) => [{ host }, 0.5] as const), [{ host: 'c' }, 0.5]]);
    const gone = { ...given, instant: samples([...'ab'].map((host) => [{ host }, 0.5])) };
    expect(hostReading(gone, {}, hostsWith({ a: 'up', b: 'up', c: 'down' })).health).toBe('HEALTHY');
  });

  test('is STALE when a plain selector has a sample older than the threshold', () => {
    const seconds = at / 1000;
    const timestamps = samples(by('host', { a: seconds - 10, b: seconds - 299, c: seconds - 301 }));
    const reading = hostReading({ ...healthyHosts, timestamps });
    expect(reading).toMatchObject({ health: 'STALE', values: { a: 0.1, b: 0 } });
    expect(reading.text).toContain('c');
  });

  test('is ERROR when Prometheus refused the query', () => {
    const failure = { kind: 'refused', code: 'KRONOS_PROMETHEUS_BAD_QUERY', text: 'parse error' } as const;
    const reading = hostReading({ ...healthyHosts, instant: null, range: null, failure });
    expect(reading).toMatchObject({ health: 'ERROR', text: 'parse error' });
  });

  test('is PARTIAL when Prometheus itself warns that it may be incomplete', () => {
    const reading = hostReading({ ...healthyHosts, warnings: ['store 3 did not answer'] });
    expect(reading.health).toBe('PARTIAL');
    expect(reading.text).toContain('store 3 did not answer');
  });

  test('without the label says so', () => {
    const given = answer(
      'host_cpu',
      [...'abc'].map((instance) => [{ instance }, 0.5] as const),
    );
    const reading = hostReading(given);
    expect(reading.health).toBe('PARTIAL');
    expect(reading.text).toContain('no value of the label "host" is known to Nova; 3 of 3 series lack it');
  });

  test('keeps a value outside [0,1] as it is: the scores refuse it and name the host', () => {
    const given = ofHosts({ a: 1.5, b: 0.2, c: 0.3 });
    expect(hostReading(given)).toMatchObject({ health: 'HEALTHY', values: { a: 1.5 } });
  });
});

describe('an answer about VMs', () => {
  test('gives values by server, mapped by uuid, internal name or display name', () => {
    const given = (label: string, values: readonly string[]) =>
      answer(
        'vm_cpu',
        values.map((value, i) => [{ [label]: value }, (i + 1) / 10]),
      );
    const byUuid = vmReading(given('uuid', ['1', '2', '9']));
    expect(byUuid.reading).toMatchObject({ health: 'HEALTHY', values: { 1: 0.1, 2: 0.2 }, unmatchedLabels: 0 });
    const byName = vmReading(given('domain', ['instance-2', 'instance-77']), {
      vmProfileLabel: 'domain',
      vmProfileLabelType: 'nova_internal_name',
    });
    expect(byName.reading).toMatchObject({ values: { 2: 0.1 }, unmatchedLabels: 1, ambiguousLabels: 0 });
  });

  test('a label that fits several VMs is no data for any of them, and is counted', () => {
    const { reading, notes } = vmReading(answer('vm_cpu', [[{ name: 'web' }, 0.4]]), {
      vmProfileLabel: 'name',
      vmProfileLabelType: 'nova_display_name',
    });
    expect(reading).toMatchObject({ values: {}, ambiguousLabels: 1, unmatchedLabels: 0 });
    expect(notes.map((one) => one.code)).toEqual(['vm-label-ambiguous']);
  });

  test('is healthy when VMs have no sample: they take the fallback', () => {
    const { reading } = vmReading(ofVms({ 1: 0.1 }));
    expect(reading).toMatchObject({ health: 'HEALTHY', text: '', values: { 1: 0.1 } });
  });

  test('two series for one VM are no value for it, and no error of the answer', () => {
    const { reading, notes } = vmReading(
      answer('vm_cpu', [
        [{ uuid: '1', host: 'a', job: 'x' }, 0.1],
        [{ uuid: '1', host: 'a', job: 'y' }, 0.2],
        [{ uuid: '2' }, 0.3],
      ]),
    );
    expect(reading).toMatchObject({ health: 'HEALTHY', values: { 2: 0.3 }, unused: { outside: 0, duplicates: 1 } });
    expect(reading.values).toEqual({ 2: 0.3 });
    expect(notes.map((one) => one.code)).toEqual(['vm-series-duplicate']);
  });

  test('of two series of a VM that was migrated, the one of the host that Nova has it on counts', () => {
    const { reading, notes } = vmReading(
      answer('vm_cpu', [
        [{ uuid: '1', host: 'b' }, 0.2],
        [{ uuid: '1', host: 'a' }, 0.1],
        [{ uuid: '2', instance: 'a:9100' }, 0.4],
        [{ uuid: '2', instance: 'b:9100' }, 0.3],
      ]),
    );
    expect(reading).toMatchObject({ health: 'HEALTHY', values: { 1: 0.1, 2: 0.3 } });
    expect(reading.unused).toBeUndefined();
    expect(notes).toEqual([]);
  });

  test('of a VM that was migrated, the age of the series of its old host does not count', () => {
    const given = answer('vm_cpu', [
      [{ uuid: '1', host: 'b' }, 0.2],
      [{ uuid: '1', host: 'a' }, 0.1],
      [{ uuid: '2', host: 'b' }, 0.3],
    ]);
    const aged = (old: number, fresh: number) =>
      vmReading({
        ...given,
        timestamps: samples([
          [{ uuid: '1', host: 'b' }, at / 1000 - old],
          [{ uuid: '1', host: 'a' }, at / 1000 - fresh],
          [{ uuid: '2', host: 'b' }, at / 1000],
        ]),
      }).reading;
    expect(aged(301, 0)).toMatchObject({ health: 'HEALTHY', values: { 1: 0.1, 2: 0.3 } });
    expect(aged(0, 301)).toMatchObject({ health: 'STALE', values: { 2: 0.3 } });
  });

  test('of two series of which one names no host, none counts: it may be of either', () => {
    const { reading } = vmReading(
      answer('vm_cpu', [
        [{ uuid: '1', host: 'a' }, 0.1],
        [{ uuid: '1' }, 0.2],
        [{ uuid: '2' }, 0.3],
      ]),
    );
    expect(reading.values).toEqual({ 2: 0.3 });
  });

  test('with a warning is PARTIAL, and the warning is quoted', () => {
    const { reading } = vmReading({
      ...ofVms({ 1: 0.1 }),
      warnings: ['some replicas of the store gateway are unavailable'],
    });
    expect(reading).toMatchObject({ health: 'PARTIAL', cause: 'warning', values: { 1: 0.1 } });
    expect(reading.text).toContain('store gateway');
  });

  test('says how many values are outside of [0,1], and how far', () => {
    const { reading } = vmReading(ofVms({ 1: 4.7, 2: -1 }));
    expect(reading).toMatchObject({ values: {}, unused: { outside: 2, lowest: -1, highest: 4.7, duplicates: 0 } });
  });

  describe('about what moves cost', () => {
    const costs = (values: Values) =>
      read([healthyHosts, healthyVms, answer('dirtied', by('uuid', values))], { moveCostQuery: 'dirtied' });

    test('are bytes per second, beside the shares of the VMs', () => {
      const { moveCostReadings, vmReadings, notes } = costs({ 1: 5e9, 2: 0 });
      expect(moveCostReadings).toMatchObject([{ query: 'dirtied', health: 'HEALTHY', values: { 1: 5e9, 2: 0 } }]);
      expect(vmReadings.map(({ query }) => query)).toEqual(['vm_cpu']);
      expect(notes).toEqual([]);
    });

    test('below 0 are missing, with a note', () => {
      const { moveCostReadings, notes } = costs({ 1: -1, 2: 3 });
      expect(moveCostReadings[0]?.values).toEqual({ 2: 3 });
      expect(notes.map(({ code }) => code)).toEqual(['move-cost-out-of-range']);
    });

    test('that could not be had are noted, and hinder no policy', () => {
      const failure = { kind: 'unreachable', code: 'KRONOS_HTTP_UNREACHABLE', text: 'no answer' } as const;
      const { moveCostReadings, vmReadings, notes } = read(
        [healthyHosts, healthyVms, answer('dirtied', [], { instant: null, failure })],
        { moveCostQuery: 'dirtied' },
      );
      expect(moveCostReadings).toMatchObject([{ health: 'UNREACHABLE', values: {} }]);
      expect(vmReadings).toMatchObject([{ health: 'HEALTHY' }]);
      expect(notes.map(({ code }) => code)).toEqual(['move-cost-unknown']);
    });

    test('are not asked for where no policy has the query', () => {
      expect(read([healthyHosts, healthyVms]).moveCostReadings).toEqual([]);
    });
  });

  test('a value that is no share of a host is missing, with a note', () => {
    const { reading, notes } = vmReading(ofVms({ 1: 12, 2: 0 }));
    expect(reading).toMatchObject({ health: 'HEALTHY', values: { 2: 0 } });
    expect(notes.map((one) => one.code)).toEqual(['vm-value-out-of-range']);
    expect(notes[0]?.text).toContain('1 (12)');
  });

  test('is STALE when a VM that runs has lost its series, and not when one that stopped has', () => {
    const gone = { ...healthyVms, instant: samples(by('uuid', { 1: 0.1 })) };
    expect(vmReading(gone).reading.health).toBe('STALE');
    const stopped = [
      { id: '1', status: 'ACTIVE', host: 'a' },
      { id: '2', status: 'SHUTOFF', host: 'b' },
    ];
    expect(read([healthyHosts, gone], {}, allUp, stopped).vmReadings[0]?.health).toBe('HEALTHY');
  });
});

describe('readings', () => {
  test('are one per query and label, also when policies share the query', () => {
    const policies = [
      policy('cpu', { capacityQuery: 'host_cpu' }),
      policy('busy', { imbalanceQuery: 'host_cpu', hostLabel: 'node', vmProfileQuery: 'vm_cpu' }),
    ];
    const { hostReadings, vmReadings } = readingsFor(matched(policies, [healthyHosts, healthyVms]), allUp, running);
    expect(hostReadings.map(({ query, label, health }) => [query, label, health])).toEqual([
      ['host_cpu', 'host', 'HEALTHY'],
      ['host_cpu', 'node', 'PARTIAL'],
    ]);
    expect(vmReadings).toHaveLength(1);
  });

  test('are none without policies', () => {
    const none = { hostReadings: [], vmReadings: [], moveCostReadings: [], notes: [] };
    expect(readingsFor(matched([], []), allUp, running)).toEqual(none);
  });
});
