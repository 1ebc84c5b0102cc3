import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadConfig, parsePolicies } from '@kronos/config';
import { queriesOf } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { configText } from './configText.ts';
import { hostExporters, recognise, vmExporters } from './exporters.ts';
import { presetFiles } from './presets.ts';
import { type ProposalSources, policiesText, proposePolicies, thresholdFor } from './propose.ts';
import { proposeScope } from './scope.ts';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const [node] = hostExporters;
const [libvirt, libvirtd, ceilometer] = vmExporters;
if (node === undefined || libvirt === undefined || libvirtd === undefined || ceilometer === undefined)
  throw new Error('an exporter is missing');

describe('the scope of a cloud', () => {
  const hosts = new Set(['a', 'b', 'c', 'd', 'e', 'f']);

  it('takes aggregates with two hosts or more', () => {
    const scope = proposeScope(
      [
        { name: 'gpu', hosts: ['a', 'b'] },
        { name: 'general', hosts: ['c', 'd', 'e'] },
      ],
      hosts,
    );
    expect(scope).toEqual({ aggregates: ['general', 'gpu'], includeUnassigned: false, left: [] });
  });

  it('refuses aggregates that share a host with a larger one, that are too small, or have other hypervisors', () => {
    const scope = proposeScope(
      [
        { name: 'zone', hosts: ['a', 'b', 'c'] },
        { name: 'ssd', hosts: ['b', 'd'] },
        { name: 'one', hosts: ['e'] },
        { name: 'ironic', hosts: ['x', 'y'] },
      ],
      hosts,
    );
    expect(scope.aggregates).toEqual(['zone']);
    expect(scope.left).toEqual([
      { name: 'ssd', why: 'shares b with zone' },
      { name: 'one', why: '1 host: a move needs two' },
      { name: 'ironic', why: '0 hosts: a move needs two' },
    ]);
  });

  it('includes the hosts of no aggregate when there are at least two', () => {
    expect(proposeScope([{ name: 'gpu', hosts: ['a', 'b', 'c', 'd'] }], hosts).includeUnassigned).toBe(true);
    expect(proposeScope([{ name: 'gpu', hosts: ['a', 'b', 'c', 'd', 'e'] }], hosts).includeUnassigned).toBe(false);
  });
});

describe('recognising exporters', () => {
  it('finds those whose metrics are all there, and no others', () => {
    expect(recognise(hostExporters, new Set(node.metrics))).toEqual([node]);
    expect(recognise(hostExporters, new Set(['node_cpu_seconds_total']))).toEqual([]);
    expect(recognise(vmExporters, new Set(['ceilometer_cpu', 'libvirtd_domain_cpu_time']))).toEqual([
      libvirtd,
      ceilometer,
    ]);
  });
});

describe('policies', () => {
  const sources = (vm: ProposalSources['vm']): ProposalSources => ({ host: { exporter: node, label: 'instance' }, vm });
  const ofLibvirt: ProposalSources['vm'] = {
    exporter: libvirt,
    label: 'domain',
    type: 'nova_internal_name',
    hostLabel: 'instance',
    names: new Set(['libvirt_domain_info_memory_usage_bytes']),
  };

  it.each([
    ['a libvirt exporter', ofLibvirt],
    ['a VM exporter that does not name hosts', { ...ofLibvirt, exporter: ceilometer, hostLabel: null }],
    ['no VM exporter', null],
  ])('for %s are valid', (_, vm) => {
    const text = policiesText(
      proposePolicies(sources(vm), () => 0.4),
      ['test'],
    );
    const parsed = parsePolicies({ file: 'policies.yaml', text });
    expect(parsed.problems).toEqual([]);
    expect(parsed.policies.map((policy) => [policy.name, policy.threshold])).toEqual([
      ['cpu', 0.2],
      ['memory', 0.2],
    ]);
  });

  it('use resident memory where the exporter has it, else the memory of the domain', () => {
    const memoryOf = (names: readonly string[]) =>
      proposePolicies(sources({ ...ofLibvirt, names: new Set(names) }), () => null)[1]?.vmProfileQuery;
    expect(memoryOf(['libvirt_domain_memory_stats_rss_bytes', 'libvirt_domain_info_memory_usage_bytes'])).toContain(
      'libvirt_domain_memory_stats_rss_bytes',
    );
    expect(memoryOf(['libvirt_domain_info_memory_usage_bytes'])).toContain('libvirt_domain_info_memory_usage_bytes');
  });

  it('have a threshold of half the imbalance, within limits', () => {
    expect([null, 0, 0.1, 0.44, 0.5, 0.95].map(thresholdFor)).toEqual([0.2, 0.1, 0.1, 0.2, 0.25, 0.4]);
  });
});

describe('kronos.conf', () => {
  const found = {
    scope: { aggregates: ['general', 'gpu'], includeUnassigned: true, left: [{ name: 'ssd', why: 'shares b' }] },
    cloud: 'prod',
    cloudsFile: null,
    region: null,
    prometheusUrl: 'http://prometheus:9090',
    prometheusAccess: [],
    natsUrl: 'nats://nats:4222',
    policiesFile: '/etc/kronos/policies.yaml',
  };

  it('is valid, moves nothing, and names what was left out', () => {
    const text = configText(found);
    const policies = [...presetFiles().values()][0] ?? '';
    const { config } = loadConfig({
      file: 'kronos.conf',
      env: {},
      role: 'check',
      readFile: (path) => (path === 'kronos.conf' ? text : policies),
    });
    expect(config.engine).toMatchObject({
      aggregates: ['general', 'gpu'],
      includeUnassignedHosts: true,
      dryRun: true,
      balance: true,
    });
    expect(text).toContain('# Left out: ssd (shares b)');
  });

  it('offers options that are taken as they stand there', () => {
    const offered = configText({ ...found, policiesFile: null }).replaceAll(/^# ([a-z_]+ = )/gm, '$1');
    const topology = '- hosts: "*"\n  cells: [{ id: 0, dedicated_cpus: 1, shared_cpus: 1, memory_mb: 1, pages: {} }]\n';
    const { config } = loadConfig({
      file: 'kronos.conf',
      env: {},
      role: 'check',
      readFile: (path) => (path === 'kronos.conf' ? offered : topology),
    });
    expect(config.engine).toMatchObject({
      failoverHosts: 1,
      foreignMoves: 'ignore',
      optOut: ['kronos:exclude', 'flavor:database'],
      moveUnknownTopology: true,
    });
    expect(config.nova).toMatchObject({
      cells: [{ cell: 'cell1' }, { cell: 'cell2' }],
      hostTopology: '/etc/kronos/host-topology.yaml',
      cpuCompatibility: 'ignore',
      movableDevices: ['pci-device'],
      sriovPorts: 'read',
    });
    expect(config.nats.monitoring).toEqual(['http://nats-1:8222']);
    expect(config.prometheus.headers).toBeDefined();
  });

  it('has the access to Prometheus that was given', () => {
    const text = configText({
      ...found,
      policiesFile: null,
      prometheusUrl: null,
      prometheusAccess: ['auth = keystone'],
    });
    const { config } = loadConfig({ file: 'kronos.conf', env: {}, role: 'check', readFile: () => text });
    expect(config.prometheus).toMatchObject({ url: null, auth: 'keystone' });
  });

  it('configures rules only where no exporter was recognised', () => {
    const text = configText({ ...found, policiesFile: null });
    const { config } = loadConfig({ file: 'kronos.conf', env: {}, role: 'check', readFile: () => text });
    expect(config.engine.balance).toBe(false);
  });
});

describe('presets', () => {
  it('in deploy/policies are those that kronos init writes (npm run generate)', () => {
    const files = presetFiles();
    for (const [path, text] of files)
      expect(existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : null, path).toBe(text);
    const there = readdirSync(join(root, 'deploy/policies')).map((file) => `deploy/policies/${file}`);
    expect(there.filter((file) => file.endsWith('.yaml')).sort()).toEqual([...files.keys()].sort());
  });

  it('are the default of the Helm chart', () => {
    const values = parse(readFileSync(join(root, 'deploy/helm/kronos/values.yaml'), 'utf8'));
    const preset = presetFiles().get('deploy/policies/node-exporter+libvirt-exporter.yaml') ?? '';
    expect(parse(values.config.policies)).toEqual(parse(preset));
  });

  it.each([...presetFiles()])('%s counts no counter without its rate: counters begin anew', (path, text) => {
    const counters = /(_total|_cpu_time|ceilometer_cpu|_swap_in_bytes|_seconds)\b(?!_)/;
    const rated = /rate\([^()]*\[\d+m\]\)/g;
    const counted = parsePolicies({ file: path, text })
      .policies.flatMap(queriesOf)
      .flatMap(({ query }) =>
        query
          .replace(rated, '')
          // The number of series of CPUs, not their values.
          .replace(/count by \(\w+\) \((label_replace\()?node_cpu_seconds_total/g, '')
          .match(counters),
      );
    expect(counted.filter((found) => found !== null)).toEqual([]);
  });

  it('that read guests give no value to a host whose exporter of VMs does not answer: unknown is not calm', () => {
    for (const name of ['guests', 'balloon']) {
      const path = `deploy/policies/node-exporter+libvirt-exporter+${name}.yaml`;
      const { policies } = parsePolicies({ file: path, text: presetFiles().get(path) ?? '' });
      const triggers = policies.flatMap(({ triggerQuery = null }) => (triggerQuery === null ? [] : [triggerQuery]));
      expect(triggers).not.toEqual([]);
      for (const query of triggers)
        expect(query).toMatch(/ or 0 \* max by \(instance\) \(label_replace\(libvirt_up == 1,/);
    }
  });

  it.each([...presetFiles()])('%s is a valid policies.yaml', (path, text) => {
    const parsed = parsePolicies({ file: path, text });
    expect(parsed.problems).toEqual([]);
    expect(parsed.policies).toHaveLength(2);
  });
});
