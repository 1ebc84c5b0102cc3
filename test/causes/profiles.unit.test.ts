/** Hosts that differ, and values of VMs that do not add up, through the real scorer and planner. */
import { afterEach, describe, expect, it } from 'vitest';
import { openSite, POLICIES, type Site } from './site.ts';

let site: Site | null = null;
afterEach(() => {
  site?.end();
  site = null;
});

describe('values of VMs that do not add up to their hosts', () => {
  it.each([
    [
      'a unit that is 1024 times too small',
      'vm_cpu_cores / 16',
      'vm_cpu_cores / 16 / 1024',
      /Multiply vm_profile_query by 1000/,
    ],
    ['shares of the guests', 'vm_cpu_cores / 16', 'vm_cpu_cores / 2', /Multiply vm_profile_query by the vCPUs/],
    ['a second division by the size', 'vm_cpu_cores / 16', 'vm_cpu_cores / 256', /Remove one division/],
  ])('are one alarm with the likely cause: %s', async (_, right, wrong, remedy) => {
    site = await openSite({ policies: POLICIES.replace(right, wrong) });
    const alarms = await site.alarms();
    expect(alarms.map(({ code, about }) => [code, about])).toEqual([['policy-profile-sum', 'policy cpu in compute']]);
    expect(alarms[0]?.text).toMatch(
      /add up to [\d.e-]+, and the host's value is [\d.]+ \(over all hosts [\d.e-]+ times\)/,
    );
    expect(alarms[0]?.remedy).toMatch(remedy);
  });

  it('are the same alarm while the samples of a move arrive', async () => {
    site = await openSite({
      policies: POLICIES.replace('vm_cpu_cores / 16', 'vm_cpu_cores / 2'),
      config: (config) => ({
        ...config,
        engine: { ...config.engine, dryRun: false, evacuateDisabledHosts: true },
      }),
    });
    site.act({ act: 'setHost', host: 'cmp1', disabled: true });
    const seen: string[][] = [];
    for (let minute = 0; minute < 12; minute++) {
      await site.run(60_000);
      seen.push((await site.alarms()).map(({ code }) => code));
    }
    expect([...site.sim.cloud.servers.values()].filter(({ host }) => host === 'cmp1')).toEqual([]);
    expect(seen).toEqual(seen.map(() => ['policy-profile-sum']));
  });

  it('say nothing where they do', async () => {
    site = await openSite();
    expect(await site.alarms()).toEqual([]);
    expect(await site.notes()).toEqual([]);
  });
});

describe('hosts that differ without host_size_query', () => {
  it('are scaled by what Placement says, and status names the resource class', async () => {
    site = await openSite({
      scenario: (input) => ({
        ...input,
        hosts: (input.hosts ?? []).map((host, i) => (i === 0 ? { ...host, vcpus: 64 } : host)),
      }),
    });
    const notes = await site.notes();
    expect(notes.filter(({ code }) => code === 'policy-sizes-assumed').map(({ text }) => text)).toEqual([
      'hosts differ in VCPU from 16 to 64: the values of VMs are scaled by it',
      'hosts differ in VCPU from 16 to 64: the values of VMs are scaled by it',
    ]);
  });

  it('are named by a policy in silence', async () => {
    site = await openSite({
      policies: POLICIES.replaceAll('    threshold:', '    resource_class: VCPU\n    threshold:'),
      scenario: (input) => ({
        ...input,
        hosts: (input.hosts ?? []).map((host, i) => (i === 0 ? { ...host, vcpus: 64 } : host)),
      }),
    });
    expect((await site.notes()).filter(({ code }) => code === 'policy-sizes-assumed')).toEqual([]);
  });
});
