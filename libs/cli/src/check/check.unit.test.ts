import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '@kronos/config';
import type { Policy } from '@kronos/contracts';
import { matchAnswers } from '@kronos/observation';
import { answer, policy, service, unread } from '@kronos/observation/testing';
import { server } from '@kronos/openstack/testing';
import { describe, expect, it } from 'vitest';
import { healthyHosts, healthyVms, hostAnswer, judge } from '../../test/judged.ts';
import { check, formerNames } from './check.ts';
import type { CheckFinding } from './finding.ts';
import { judgeQueries } from './queries.ts';

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

describe('where nothing answers', () => {
  it('each service is named with the option that has its address', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'kronos-check-'));
    try {
      const nowhere = 'http://127.0.0.1:1';
      const policies = join(directory, 'policies.yaml');
      const file = join(directory, 'kronos.conf');
      writeFileSync(
        policies,
        'policies:\n  - { name: cpu, mode: spread, weight: 1, imbalance_query: up, vm_profile_query: up, vm_profile_label: uuid, threshold: 0.2 }\n',
      );
      writeFileSync(
        file,
        `[engine]\naggregates = gpu\npolicies_file = ${policies}\n[nats]\nservers = nats://127.0.0.1:1\n[nova]\nauth_url = ${nowhere}\nusername = u\npassword = p\nproject_name = p\nuser_domain_id = default\nproject_domain_id = default\nconnect_retries = 0\n[prometheus]\nurl = ${nowhere}\nmax_retries = 0\n`,
      );
      const found: CheckFinding[] = [];
      await check(file, {}, (one) => found.push(one));
      expect(found.filter(({ state }) => state === 'failed')).toMatchObject([
        { what: 'NATS', text: expect.stringContaining('[nats] servers') },
        { what: 'Keystone', remedy: expect.stringContaining('[nova] auth_url') },
        { what: 'Prometheus', remedy: expect.stringContaining('[prometheus] url') },
      ]);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

describe('former names of options', () => {
  it('are warned about, with the place and the name of today', () => {
    const loaded = loadConfig({
      file: 'k.conf',
      env: {},
      role: 'planner',
      readFile: () => '[engine]\naggregates = gpu\npause_after_move = 7\n',
      renamed: [{ from: 'engine.pause_after_move', to: 'engine.cooldown', since: '1.4.0' }],
    });
    expect(formerNames(loaded)).toMatchObject([
      {
        state: 'warning',
        code: 'former-name',
        what: '[engine] pause_after_move',
        text: 'k.conf:3: is the former name of [engine] cooldown, since Kronos 1.4.0',
        remedy: 'Write [engine] cooldown: Kronos 1.5.0 refuses the former name.',
      },
    ]);
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
    const answers = matchAnswers({ policies: [], answers: [], stalenessMs: 0, hosts: [], vms: [] });
    const found = judgeQueries({
      policies,
      answers,
      types: new Map(),
      snapshots: [],
      hosts: [],
      vms: [],
      suffix: ' (gpu)',
    });
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

describe('the query of what moves cost', () => {
  const check = (given: ReturnType<typeof answer>) => {
    const policies = [policy('cpu', { moveCostQuery: 'dirtied' })];
    const { all } = judge({ policies, answers: [healthyHosts, healthyVms, given] });
    return all.find(({ what }) => what === 'policy cpu move_cost_query');
  };
  it('passes with bytes per second, and says what a VM without a value counts as', () => {
    const finding = check(answer('dirtied', [[{ uuid: '1' }, 5e9]]));
    expect(finding).toMatchObject({ state: 'ok', detail: { vmsMatched: 1, vmsWithValue: 1, vmsInScope: 2 } });
    expect(finding?.text).toContain('1 of 2 VMs in scope have a value; a VM without a value counts as the VM that');
  });
  it('fails with values that are no rates, and with a label that names no VM', () => {
    expect(check(answer('dirtied', [[{ uuid: '1' }, -5]]))).toMatchObject({
      state: 'failed',
      code: 'vm-range',
      remedy: 'Give bytes per second: for a counter of bytes, its rate().',
    });
    expect(check(answer('dirtied', [[{ domain: 'instance-1' }, 5]]))).toMatchObject({
      state: 'failed',
      code: 'vm-label',
    });
  });
  it('warns without an answer: memory counts once', () => {
    expect(check(answer('dirtied', []))).toMatchObject({ state: 'warning', code: 'query-empty' });
  });
});

describe('a cloud that was not read', () => {
  it('blames no label: which hosts and VMs the series name is not known', () => {
    const policies = [policy('cpu')];
    const answers = [healthyHosts, healthyVms];
    const matched = matchAnswers({ policies, answers, stalenessMs: 300_000, hosts: [], vms: [] });
    const all = judgeQueries({ policies, answers: matched, types: new Map(), snapshots: [], hosts: [], vms: [] });
    expect(all.map(({ state, code }) => [state, code])).toEqual([
      ['skipped', 'cloud-unread'],
      ['skipped', 'cloud-unread'],
    ]);
    for (const { text, remedy } of all) expect([text, remedy]).toEqual([expect.stringContaining('was not read'), null]);
  });
});

describe('a cell that is down', () => {
  it('is the cause that each aggregate names, and nothing is said of hosts that Nova does not list', () => {
    const services = { ok: true, value: [service('c', { cellDown: true })] } as const;
    const { all } = judge({ lists: { hypervisors: unread, services } });
    expect(all.filter(({ what }) => what === 'aggregate gpu').map(({ code, text }) => [code, text])).toEqual([
      ['problem-hosts-of-down-cell', expect.stringContaining('the database of the cell of c: nothing is planned')],
      ['problem-hypervisors-unknown', expect.stringContaining('could not be read')],
    ]);
  });
});

describe('answers that are missing', () => {
  it('a query that Prometheus refuses: fails with its words', () => {
    const refused = answer('host_cpu', [], {
      instant: null,
      failure: {
        kind: 'refused',
        code: 'KRONOS_PROMETHEUS_BAD_QUERY',
        text: 'the result is a matrix, not an instant vector',
      },
    });
    expect(judge({ answers: [refused, healthyVms] }).hosts).toMatchObject({
      state: 'failed',
      code: 'query-refused',
      text: 'the result is a matrix, not an instant vector',
    });
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
