import { describe, expect, test } from 'vitest';
import { Cloud, capacity } from './cloud.ts';
import { parseScenario } from './scenario.ts';
import { demoCloud } from './scenarios/demo.ts';
import { generate } from './scenarios/generate.ts';
import { instant } from './series.ts';

describe('a scenario', () => {
  const host = { name: 'h1' };
  test.each([
    [{ hosts: [] }, /^hosts: /],
    [{ hosts: [{ name: 'h1', vcpus: -1 }] }, /^hosts\[0\]\.vcpus: /],
    [{ hosts: [host], foo: 1 }, /foo/],
    [{ hosts: [host, host] }, /^hosts\[1\]: the name h1 is taken/],
    [{ hosts: [host], aggregates: [{ name: 'a', hosts: ['h2'] }] }, /^aggregates\[0\]\.hosts: there is no host h2/],
    [{ hosts: [host], servers: [{ name: 'v', host: 'h2', flavor: 'f' }] }, /^servers\[0\]\.host: there is no host h2/],
    [
      { hosts: [host], servers: [{ name: 'v', host: 'h1', flavor: 'f' }] },
      /^servers\[0\]\.flavor: there is no flavor f/,
    ],
  ])('that is wrong is refused with the place: %j', (input, message) => {
    expect(() => parseScenario(input)).toThrow(message);
  });
});

describe('the demo', () => {
  const cloud = new Cloud(demoCloud(), { startMs: Date.UTC(2026, 0, 1) });

  test('has 12 hosts and 150 servers, one host disabled, one server locked, two opted out', () => {
    const servers = [...cloud.servers.values()];
    expect([cloud.hosts.size, servers.length]).toEqual([12, 150]);
    expect([...cloud.hosts.values()].filter((host) => host.disabled).map((host) => host.name)).toEqual(['compute-12']);
    expect(servers.filter((server) => server.locked).length).toBe(1);
    const out = servers.filter((server) => server.tags.includes('kronos:exclude') || server.metadata['kronos:exclude']);
    expect(out.length).toBe(2);
    expect(new Set(servers.map((server) => server.name)).size).toBe(150);
  });

  test('is badly balanced in both policies, within the sizes of hosts and flavors', () => {
    for (const metric of ['host_cpu_utilisation', 'host_mem_utilisation']) {
      const values = instant(cloud, metric, cloud.nowMs).map((sample) => sample.value);
      expect(Math.max(...values) - Math.min(...values)).toBeGreaterThan(0.5);
      expect(Math.max(...values)).toBeLessThan(0.95);
    }
    for (const server of cloud.servers.values()) {
      expect(server.demand.cpuCores).toBeLessThanOrEqual(server.flavor.vcpus);
      expect(server.demand.memoryMb).toBeLessThanOrEqual(server.flavor.memoryMb);
    }
    for (const host of cloud.hosts.values())
      for (const key of ['vcpus', 'memoryMb', 'diskGb'] as const)
        expect(host.used[key]).toBeLessThan(capacity(host, key));
  });
});

describe('a generated cloud', () => {
  test.each([
    [3, 10],
    [10, 200],
    [100, 5000],
  ])('of %i hosts and %i servers fits, and is the same for the same seed', (hosts, vms) => {
    const scenario = generate({ hosts, vms, seed: 3, zones: 2, varying: 0.2 });
    expect([scenario.hosts.length, scenario.servers.length]).toEqual([hosts, vms]);
    expect(generate({ hosts, vms, seed: 3, zones: 2, varying: 0.2 })).toEqual(scenario);
    expect(generate({ hosts, vms, seed: 4, zones: 2, varying: 0.2 })).not.toEqual(scenario);
    const cloud = new Cloud(scenario, { startMs: 0 });
    for (const host of cloud.hosts.values())
      for (const key of ['vcpus', 'memoryMb', 'diskGb'] as const)
        expect(host.used[key]).toBeLessThanOrEqual(capacity(host, key));
    const values = instant(cloud, 'host_cpu_utilisation', 0).map((sample) => sample.value);
    expect(Math.max(...values)).toBeLessThanOrEqual(1);
    for (const group of cloud.groups.values()) {
      const on = group.members.map((member) => cloud.servers.get(member)?.host);
      expect(group.members.length).toBeGreaterThan(0);
      if (group.policy.includes('anti')) expect(new Set(on).size).toBe(on.length);
      else expect(new Set(on).size).toBe(1);
    }
  });
});
