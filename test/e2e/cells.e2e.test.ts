import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { demoPolicies, type ScenarioInput, type Sim, startSim } from '@kronos/simcloud';
import { afterEach, describe, expect, it } from 'vitest';
import { type DemoInstallation, openInstallation } from '../../libs/cli/src/demo/installation.ts';
import { runHere } from './command.ts';
import { configOfOwnCloud, ended, watch } from './world.ts';

const SCENARIO: ScenarioInput = {
  crossCellResize: true,
  hosts: [
    { name: 'o1', cell: 'cell1' },
    { name: 'o2', cell: 'cell1' },
    { name: 'n1', cell: 'cell2', traits: ['CUSTOM_NEW'] },
    { name: 'n2', cell: 'cell2', traits: ['CUSTOM_NEW'] },
  ],
  aggregates: [
    { name: 'old', hosts: ['o1', 'o2'] },
    { name: 'new', hosts: ['n1', 'n2'] },
  ],
  flavors: [
    { name: 'small', vcpus: 1, memoryMb: 1024, diskGb: 1 },
    { name: 'big', vcpus: 4, memoryMb: 4096, diskGb: 1 },
    {
      name: 'new.big',
      vcpus: 4,
      memoryMb: 4096,
      diskGb: 1,
      extraSpecs: { 'trait:CUSTOM_NEW': 'required' },
    },
  ],
  servers: [
    { name: 'runs', host: 'o1', flavor: 'small' },
    { name: 'stopped', host: 'o1', flavor: 'small', status: 'SHUTOFF' },
    { name: 'grows', host: 'o2', flavor: 'big' },
    { name: 'returns', host: 'o1', flavor: 'small' },
    { name: 'sriov', host: 'o2', flavor: 'small', ports: [{ vnicType: 'direct' }] },
    { name: 'locked', host: 'o2', flavor: 'small', locked: true },
    { name: 'there', host: 'n1', flavor: 'small' },
  ],
};

const CELLS = `[cells]
aggregates = cell1:old, cell2:new
networks_shared = true
confirm = manual
verify_seconds = 0
max_concurrent_resizes = 4
max_outbound_per_host = 4
max_inbound_per_host = 4
`;

describe('moves between cells', () => {
  let sim: Sim | null = null;
  let kronos: DemoInstallation | null = null;
  afterEach(async () => {
    await kronos?.close();
    await sim?.close();
    kronos = sim = null;
  });

  async function open() {
    sim = await startSim({ scenario: SCENARIO, speed: 10 });
    const cloud = sim;
    kronos = await openInstallation({
      config: (files) => configOfOwnCloud(cloud, files, 'old, new', CELLS),
      policies: demoPolicies,
      onExit: () => {},
      say: () => {},
    });
    const { configFile, directory } = kronos;
    return {
      sim,
      watched: watch(kronos),
      directory,
      run: (line: string) => runHere(line.split(' '), { KRONOS_CONFIG: configFile }),
    };
  }
  const server = (of: Sim, name: string) => {
    of.settle();
    const found = [...of.cloud.servers.values()].find((one) => one.name === name);
    if (found === undefined) throw new Error(`there is no server ${name}`);
    const { host, vmState, flavor } = found;
    return { host, vmState, flavor: flavor.name };
  };

  it('are planned, approved, confirmed by a person and reverted by a person; what cannot move is named', async () => {
    const { sim, watched, run, directory } = await open();
    await watched.until('decisions', (events) => events.filter((e) => e.type === 'cycle.decided').length >= 2);

    const map = join(directory, 'flavors.yaml');
    await writeFile(map, 'big: new.big\n');
    const planned = await run(`cells plan --from old --to new --flavor-map ${map} --comment clear`);
    expect(planned.status, planned.text).toBe(0);
    expect(planned.text).toMatch(/sriov \(.*\) stays on o2: .*PCI device.*\n/);
    expect(planned.text).toMatch(/locked \(.*\) stays on o2: The VM is locked/);
    expect(planned.text).toMatch(/4 VMs from old to new, waits for approval/);
    const plan = watched.events.findLast((e) => e.type === 'plan.proposed')?.data;
    if (plan === undefined) throw new Error('there is no plan');
    expect(planned.text).toContain(`kronos approve ${plan.planId}`);
    expect(plan.steps.map(({ serverName, cell }) => [serverName, cell?.method])).toEqual(
      expect.arrayContaining([
        ['runs', 'migrate'],
        ['stopped', 'migrate'],
        ['grows', 'resize'],
        ['returns', 'migrate'],
      ]),
    );
    const taskOf = (name: string): string =>
      plan.steps.find(({ serverName }) => serverName === name)?.taskId ?? `no step of ${name}`;
    expect((await run('cells status')).text).toContain('waits for approval');

    const approved = await run(`approve ${plan.planId}`);
    expect(approved.status, approved.text).toBe(0);
    await watched.until('four servers in VERIFY_RESIZE', (events) =>
      ['runs', 'stopped', 'grows', 'returns'].every((name) =>
        events.some((e) => e.type === 'migration.verified' && e.data.taskId === taskOf(name)),
      ),
    );
    expect((await run('cells status')).text).toContain(`kronos cells confirm|revert ${taskOf('runs')}`);
    expect((await run(`cells confirm ${taskOf('runs')} ${taskOf('stopped')} ${taskOf('grows')}`)).status).toBe(0);
    expect((await run(`cells revert ${taskOf('returns')}`)).status).toBe(0);
    await watched.until('the end of the moves', (events) =>
      plan.steps.every(({ taskId }) => ended(events).has(taskId)),
    );
    expect(server(sim, 'runs')).toMatchObject({ host: expect.stringMatching(/^n/), vmState: 'active' });
    expect(server(sim, 'stopped')).toMatchObject({ host: expect.stringMatching(/^n/), vmState: 'stopped' });
    expect(server(sim, 'grows')).toMatchObject({ host: expect.stringMatching(/^n/), flavor: 'new.big' });
    expect(server(sim, 'returns')).toMatchObject({ host: 'o1', vmState: 'active' });
    expect(server(sim, 'sriov').host).toBe('o2');
    const shown = await run(`plan show ${plan.planId}`);
    expect(shown.text).toMatch(/a plan between cells/);
    expect((await run('cells status')).text).toContain('No plan between cells');
    const explained = await run(`explain plan ${plan.planId}`);
    expect(explained.status, explained.text).toBe(0);
    expect(explained.text).toMatch(/step \d: grows: An operator asked for the VM to leave its cell/);
    expect(explained.text).not.toContain('Run again');
    const returned = await run('explain vm returns');
    expect(returned.status, returned.text).toBe(0);
    expect(returned.text).toMatch(
      /plan between cells .*moves it from o1 to n\d.*approved.*asked to revert.*was cancelled/s,
    );
    expect((await run('explain vm locked')).text).toMatch(/it stays: the VM is locked/);
    const replayed = await run('replay --json');
    expect(replayed.status, replayed.text).toBe(0);
    const { cycles } = JSON.parse(replayed.text) as {
      cycles: { sequence: number; snapshotId: string; verdict: string }[];
    };
    expect(cycles.find(({ snapshotId }) => snapshotId === plan.snapshotId)).toMatchObject({ verdict: 'identical' });
  });
});
