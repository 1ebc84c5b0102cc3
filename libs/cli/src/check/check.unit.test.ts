import type { EngineOptions, Policy, Snapshot } from '@kronos/contracts';
import { defaultEngineOptions } from '@kronos/contracts';
import { type Answer, assemble, hostNamesOf, matchAnswers, vmNamesOf } from '@kronos/observation';
import { answer, cloud, indexOf, options, policy, server } from '@kronos/observation/testing';
import { describe, expect, it } from 'vitest';
import { judgeAggregate } from './movable.ts';
import { judgeQueries } from './queries.ts';

const HOSTS = ['a', 'b', 'c'];
const engine: EngineOptions = { ...defaultEngineOptions, balance: true };
const units = { minUnit: 1, maxUnit: 64, stepSize: 1 };

type Given = {
  readonly policies?: readonly Policy[];
  readonly answers?: readonly Answer[];
  readonly more?: Parameters<typeof cloud>[0];
};

const hostAnswer = (label: string, values: readonly number[], query = 'host_cpu'): Answer =>
  answer(
    query,
    values.map((value, i) => [{ [label]: HOSTS[i] ?? '', job: 'node' }, value]),
  );
const healthyHosts = hostAnswer('host', [0.9, 0.2, 0.4]);
const healthyVms = answer('vm_cpu', [
  [{ uuid: '1', domain: 'instance-1' }, 0.3],
  [{ uuid: '2', domain: 'instance-2' }, 0.1],
]);
const twoServers = [server('1', 'a'), server('2', 'b')];

/** What the check reports for one aggregate with three hosts. */
function judge(given: Given) {
  const policies = given.policies ?? [policy('cpu')];
  const lists = cloud({ servers: twoServers, ...given.more });
  const index = indexOf(lists);
  const answers = matchAnswers({
    policies,
    answers: given.answers ?? [healthyHosts, healthyVms],
    stalenessMs: 300_000,
    hosts: hostNamesOf(lists),
    vms: vmNamesOf(index),
  });
  const snapshot: Snapshot = assemble({
    listings: new Map(),
    identity: {
      id: 'gpu-0',
      purpose: 'record',
      cycle: 0,
      intervalSeconds: 60,
      observedFrom: '2026-01-01T12:00:00.000Z',
      time: '2026-01-01T12:00:00.000Z',
    },
    aggregate: 'gpu',
    scope: ['gpu'],
    options,
    policies,
    balance: true,
    lists,
    index,
    capacity: {
      providers: new Map(
        HOSTS.map((host) => [
          `id-of-${host}`,
          { inventory: { VCPU: { capacity: 256, used: 4, ...units } }, traits: [] },
        ]),
      ),
      failures: new Map(),
    },
    answers,
    known: [],
    fates: new Map(),
  });
  const queries = judgeQueries({
    policies,
    answers,
    snapshots: [snapshot],
    hosts: hostNamesOf(lists),
    vms: vmNamesOf(index),
  });
  const aggregates = judgeAggregate(snapshot, engine, ['gpu', 'general']);
  const find = (what: string) => [...queries, ...aggregates].find((one) => one.what === what);
  return {
    all: [...queries, ...aggregates],
    hosts: find('policy cpu imbalance_query'),
    vms: find('policy cpu vm_profile_query'),
    aggregate: find('aggregate gpu'),
  };
}

describe('a configuration that works', () => {
  it('passes, with the hosts and VMs that matched, the range and the share of movable VMs', () => {
    const { all, hosts, vms, aggregate } = judge({});
    expect(all.map((one) => one.state)).toEqual(['ok', 'ok', 'ok']);
    expect(hosts?.text).toBe('3 series, 3 hosts matched, from 0.2 to 0.9');
    expect(vms?.text).toContain('2 of 2 VMs in scope have a value');
    expect(aggregate?.text).toContain('2 of 2 VMs may move (100 %)');
    expect(aggregate?.detail).toMatchObject({ hosts: 3, destinations: 3, vms: 2, movable: 2 });
  });
});

describe('an allocation policy', () => {
  const allocated = (allocation: string): Policy => ({
    ...policy('cpu'),
    allocation,
    imbalanceQuery: `allocated ${allocation}`,
    hostLabel: 'host',
    vmProfileQuery: `allocated ${allocation}`,
    vmProfileLabel: 'uuid',
    vmProfileLabelType: 'nova_instance_uuid',
    hostSizeQuery: allocation === 'instances' ? null : `total ${allocation}`,
  });
  const check = (allocation: string) => {
    const { all, aggregate } = judge({ policies: [allocated(allocation)], answers: [] });
    return { aggregate, finding: all.find(({ what }) => what === 'policy cpu allocation') };
  };
  it.each(['VCPU', 'instances'])('of %s passes without an answer from Prometheus', (allocation) => {
    const { aggregate, finding } = check(allocation);
    expect(finding).toMatchObject({ state: 'ok', detail: { hosts: 3, vmsInScope: 2, vmsWithValue: 2 } });
    expect(aggregate?.text).toContain('2 of 2 VMs may move (100 %)');
  });
  it('is skipped where Nova could not be read', () => {
    const policies = [allocated('VCPU')];
    const answers = { stalenessMs: 0, hosts: [], vms: [] };
    const found = judgeQueries({ policies, answers, snapshots: [], hosts: [], vms: [], suffix: ' (gpu)' });
    expect(found.map(({ what, state }) => [what, state])).toEqual([['policy cpu allocation (gpu)', 'skipped']]);
  });
  it('of a resource class that no host has fails, and says what to name', () => {
    const { finding } = check('MEMORY_MB');
    expect(finding).toMatchObject({ state: 'failed', code: 'allocation-unknown' });
    expect(finding?.text).toContain('Placement gives no MEMORY_MB for a, b, c');
    expect(finding?.remedy).toContain('such as VCPU or MEMORY_MB');
  });
});

describe('wrong labels', () => {
  it('of hosts: fails, names the labels that the series have, and proposes the one that names hosts', () => {
    const { hosts } = judge({ answers: [hostAnswer('instance', [0.9, 0.2, 0.4]), healthyVms] });
    expect(hosts).toMatchObject({ state: 'failed', code: 'host-label' });
    expect(hosts?.text).toContain('the series have: instance, job');
    expect(hosts?.remedy).toBe('Set host_label: instance (3 hosts match).');
  });

  it('of hosts: says that no label names a host, and what Nova calls one', () => {
    const foreign = answer('host_cpu', [[{ host: 'elsewhere' }, 0.5]]);
    const { hosts } = judge({ answers: [foreign, healthyVms] });
    expect(hosts).toMatchObject({ state: 'failed', code: 'host-label' });
    expect(hosts?.remedy).toContain('No label names a host of Nova (such as a)');
  });

  it('of VMs: fails, and proposes the label and its type', () => {
    const byDomain = answer('vm_cpu', [
      [{ domain: 'instance-1' }, 0.3],
      [{ domain: 'instance-2' }, 0.1],
    ]);
    const { vms, aggregate } = judge({ answers: [healthyHosts, byDomain] });
    expect(vms).toMatchObject({ state: 'failed', code: 'vm-label' });
    expect(vms?.remedy).toBe(
      'Set vm_profile_label: domain and vm_profile_label_type: nova_internal_name (2 VMs match).',
    );
    expect(aggregate).toMatchObject({ state: 'failed', code: 'nothing-can-move' });
  });
});

describe('wrong range', () => {
  it.each([
    [[90, 20, 40], 'Divide the query by 100.'],
    [[9e9, 2e9, 4e9], 'bytes'],
    [[0.5, -0.1, 0.2], 'never negative'],
  ])('of hosts, %j: fails with the change of the query', (values, remedy) => {
    const { hosts, aggregate } = judge({ answers: [hostAnswer('host', values), healthyVms] });
    expect(hosts).toMatchObject({ state: 'failed', code: 'host-range' });
    expect(hosts?.remedy).toContain(remedy);
    expect(aggregate).toMatchObject({ state: 'failed', code: 'policies-skipped' });
  });

  it('of VMs: fails when no value is left', () => {
    const bytes = answer('vm_cpu', [
      [{ uuid: '1' }, 4e9],
      [{ uuid: '2' }, 8e9],
    ]);
    const { vms } = judge({ answers: [healthyHosts, bytes] });
    expect(vms).toMatchObject({ state: 'failed', code: 'vm-range' });
    expect(vms?.text).toContain('2 of 2 values are outside [0,1]');
  });

  it('of some VMs: warns', () => {
    const mixed = answer('vm_cpu', [
      [{ uuid: '1' }, 1.5],
      [{ uuid: '2' }, 0.5],
    ]);
    expect(judge({ answers: [healthyHosts, mixed] }).vms).toMatchObject({ state: 'warning', code: 'vm-range' });
  });
});

describe('answers that are missing', () => {
  it('a query that Prometheus refuses: fails with its words', () => {
    const refused = answer('host_cpu', [], {
      instant: null,
      failure: { kind: 'refused', text: 'the result is a matrix, not an instant vector' },
    });
    expect(judge({ answers: [refused, healthyVms] }).hosts).toMatchObject({
      state: 'failed',
      code: 'query-refused',
      text: 'the result is a matrix, not an instant vector',
    });
  });

  it('no exporter at all: fails and says that there is no series', () => {
    const { hosts } = judge({ answers: [answer('host_cpu', []), healthyVms] });
    expect(hosts).toMatchObject({ state: 'failed', code: 'query-empty', text: 'no series' });
    expect(hosts?.remedy).toContain('exporter');
  });

  it('one host without exporter: fails and names the host', () => {
    const { hosts } = judge({ answers: [hostAnswer('host', [0.9, 0.2]), healthyVms] });
    expect(hosts).toMatchObject({ state: 'failed', code: 'host-health' });
    expect(hosts?.text).toMatch(/aggregate gpu: PARTIAL: .*\bc\b/);
    expect(hosts?.remedy).toContain('every host');
  });

  it('VMs without a sample: a warning with a fallback, an error with skip', () => {
    const none = answer('vm_cpu', []);
    const skip = judge({ answers: [healthyHosts, none] });
    expect(skip.vms).toMatchObject({ state: 'failed', code: 'query-empty' });
    expect(skip.aggregate).toMatchObject({ state: 'failed', code: 'nothing-can-move' });
    const policies = [policy('cpu', { vmProfileFallback: 'flavor_vcpu_ratio' })];
    const fallback = judge({ policies, answers: [healthyHosts, none] });
    expect(fallback.vms).toMatchObject({ state: 'warning', code: 'query-empty' });
    expect(fallback.aggregate).toMatchObject({ state: 'ok' });
  });
});

describe('two exporters at once', () => {
  it('fails, names the labels in which they differ, and proposes a selector', () => {
    const twice = answer(
      'host_cpu',
      HOSTS.flatMap((host): [Record<string, string>, number][] => [
        [{ host, job: 'node' }, 0.5],
        [{ host, job: 'telegraf' }, 0.4],
      ]),
    );
    const { hosts } = judge({ answers: [twice, healthyVms] });
    expect(hosts).toMatchObject({ state: 'failed', code: 'host-series-duplicate' });
    expect(hosts?.text).toContain('they differ in job');
    expect(hosts?.remedy).toContain('{job="node"}');
  });
});

describe('a cloud in which nothing can move for now', () => {
  it('warns with the counts', () => {
    const servers = [server('1', 'a', { locked: true }), server('2', 'b', { taskState: 'rebooting' })];
    const { aggregate } = judge({ more: { servers } });
    expect(aggregate).toMatchObject({ state: 'warning', code: 'nothing-movable' });
    expect(aggregate?.detail).toMatchObject({ movable: 0, 'vm-locked': 1, 'vm-busy': 1 });
  });

  it('does nothing about a cloud in which some VMs may move', () => {
    const servers = [server('1', 'a', { locked: true }), server('2', 'b')];
    expect(judge({ more: { servers } }).aggregate).toMatchObject({ state: 'ok' });
  });
});
