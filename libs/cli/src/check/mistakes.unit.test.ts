import { answer } from '@kronos/observation/testing';
import { describe, expect, it } from 'vitest';
import { HOSTS, healthyHosts, healthyVms, hostAnswer, judge } from '../../test/judged.ts';
import { renderFinding } from '../commands/config.ts';

const plain = { out: () => {}, err: () => {}, steer: () => {}, colour: false, columns: 80, live: false };

/** The finding about the hosts' query of the policy, line by line. */
const read = (given: Parameters<typeof judge>[0]): string[] => {
  const { hosts } = judge(given);
  return hosts === undefined ? [] : renderFinding(plain, hosts).split(/\n +/);
};

describe('config check says what is wrong, where, and what to do', () => {
  it('nothing wrong', () => {
    expect(read({})).toEqual(['ok       policy cpu imbalance_query: 3 series, 3 hosts matched, from 0.2 to 0.9']);
  });

  it('wrong labels', () => {
    expect(read({ answers: [hostAnswer('instance', [0.9, 0.2, 0.4]), healthyVms] })).toEqual([
      'failed   policy cpu imbalance_query: 3 series, 0 hosts matched, from 0.2 to 0.9',
      'no value of the label host is a host; the series have: instance, job',
      '-> Set host_label: instance (3 hosts match).',
    ]);
  });

  it('wrong range', () => {
    expect(read({ answers: [hostAnswer('host', [90, 20, 40]), healthyVms] })).toEqual([
      'failed   policy cpu imbalance_query: 3 series, 3 hosts matched, from 20 to 90',
      '3 values are outside [0,1]: the scorer skips the policy',
      '-> The values look like percentages. Divide the query by 100.',
    ]);
  });

  it('small numbers outside of the range, which may be percentages or cores', () => {
    expect(read({ answers: [hostAnswer('host', [4.7, 1.2, 3]), healthyVms] })).toEqual([
      'failed   policy cpu imbalance_query: 3 series, 3 hosts matched, from 1.2 to 4.7',
      '3 values are outside [0,1]: the scorer skips the policy',
      '-> The values are no shares: divide percentages by 100, and amounts such as cores by the total of the host.',
    ]);
  });

  it('wrong type', () => {
    const counter = answer(
      'host_cpu',
      HOSTS.map((host, i) => [{ __name__: 'host_cpu', host }, 0.2 * i]),
    );
    expect(read({ answers: [counter, healthyVms], types: { host_cpu: 'counter' } })).toEqual([
      'failed   policy cpu imbalance_query: 3 series, 3 hosts matched, from 0 to 0.4',
      'host_cpu is a counter: it only grows, so its value is no share',
      '-> Take its rate, such as rate(host_cpu[5m]), and divide it by the total of the host.',
    ]);
  });

  it('missing exporter', () => {
    expect(read({ answers: [answer('host_cpu', []), healthyVms] })).toEqual([
      'failed   policy cpu imbalance_query: no series',
      '-> Prometheus has no series for the query. Check that the exporter is scraped and that the metric exists: host_cpu',
    ]);
  });

  it('one host without exporter', () => {
    expect(read({ answers: [hostAnswer('host', [0.9, 0.2]), healthyVms] })).toEqual([
      'failed   policy cpu imbalance_query: 2 series, 2 hosts matched, from 0.2 to 0.9',
      expect.stringMatching(/^aggregate gpu: PARTIAL: .*\bc\b/),
      '-> Run the exporter on every host of the aggregate, and check that Prometheus scrapes it.',
    ]);
  });

  it('two exporters at once', () => {
    const twice = answer(
      'host_cpu',
      HOSTS.flatMap((host): [Record<string, string>, number][] => [
        [{ host, job: 'node' }, 0.5],
        [{ host, job: 'telegraf' }, 0.4],
      ]),
    );
    expect(read({ answers: [twice, healthyVms] })).toEqual([
      'failed   policy cpu imbalance_query: 6 series, 3 hosts matched, from 0.4 to 0.5',
      '3 hosts have several series, a among them; they differ in job',
      '-> Two exporters report the same host. Select one of them, for instance with {job="node"}, or aggregate with max by (host).',
    ]);
  });
});

describe('two exporters of VMs at once', () => {
  const series = (uuid: string, job: string): [Record<string, string>, number] => [{ uuid, job }, 0.2];

  it('of one VM warns: it may be on its way from host to host', () => {
    const moving = answer('vm_cpu', [series('1', 'libvirt'), series('1', 'ceilometer'), series('2', 'libvirt')]);
    const { vms } = judge({ answers: [healthyHosts, moving] });
    expect(vms).toMatchObject({ state: 'warning', code: 'vm-series-duplicate' });
    expect(vms?.text).toContain('1 VM has several series, so none of them counts');
  });

  it('of every VM fails, and says which series to select', () => {
    const both = answer(
      'vm_cpu',
      ['1', '2'].flatMap((uuid) => [series(uuid, 'libvirt'), series(uuid, 'ceilometer')]),
    );
    const { vms, aggregate } = judge({ answers: [healthyHosts, both] });
    expect(vms).toMatchObject({ state: 'failed', code: 'vm-series-duplicate' });
    expect(vms?.text).toContain('2 VMs have several series, so none of them counts, 1 among them; they differ in job');
    expect(vms?.remedy).toContain('{job="libvirt"}');
    expect(aggregate).toMatchObject({ state: 'failed', code: 'nothing-can-move' });
  });
});
