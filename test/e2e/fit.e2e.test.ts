import { demoPolicies, type ScenarioInput, type Sim, startSim } from '@kronos/simcloud';
import { afterEach, describe, expect, it } from 'vitest';
import { type DemoInstallation, openInstallation } from '../../libs/cli/src/demo/installation.ts';
import { runHere } from './command.ts';
import { configOfOwnCloud, ended, watch } from './world.ts';

/** Two hosts use 4 of 8 vCPUs each. A VM of 6 vCPUs fits on neither until one host gives its VM to the other. */
const SCENARIO: ScenarioInput = {
  hosts: [
    { name: 'c1', vcpus: 8, cpuRatio: 1 },
    { name: 'c2', vcpus: 8, cpuRatio: 1 },
  ],
  aggregates: [{ name: 'gpu', hosts: ['c1', 'c2'] }],
  flavors: [{ name: 'half', vcpus: 4, memoryMb: 1024, diskGb: 1 }],
  servers: [
    { name: 'one', host: 'c1', flavor: 'half' },
    { name: 'two', host: 'c2', flavor: 'half' },
  ],
};

describe('room for new VMs', () => {
  let sim: Sim | null = null;
  let kronos: DemoInstallation | null = null;
  afterEach(async () => {
    await kronos?.close();
    await sim?.close();
    kronos = sim = null;
  });

  it('is shown, proposed, approved and made by a live migration; the decision replays', async () => {
    sim = await startSim({ scenario: SCENARIO, speed: 10 });
    const cloud = sim;
    kronos = await openInstallation({
      config: (files) => configOfOwnCloud(cloud, files, 'gpu'),
      policies: demoPolicies,
      onExit: () => {},
      say: () => {},
    });
    const env = { KRONOS_CONFIG: kronos.configFile };
    const watched = watch(kronos);
    const run = (line: string) => runHere(line.split(' '), env);
    await watched.until('a first decision', (events) => events.some(({ type }) => type === 'cycle.decided'));

    expect((await run('fit --vcpus 6 --ram 1024')).text).toContain('1 fit after 1 move');
    const asked = await run('fit --vcpus 6 --ram 1024 --propose');
    expect(asked).toMatchObject({ status: 0, text: expect.stringContaining('waits for approval') });
    const planId = /^(gpu-capacity-\S+):/m.exec(asked.text)?.[1] ?? expect.fail(asked.text);
    const explained = await run(`explain plan ${planId}`);
    expect(explained).toMatchObject({ status: 0, text: expect.stringContaining('An operator asked for room') });

    expect(await run(`approve ${planId}`)).toMatchObject({ status: 0 });
    await watched.until('the end of the move', (events) => ended(events).size === 1);
    cloud.settle();
    expect(new Set([...cloud.cloud.servers.values()].map(({ host }) => host)).size).toBe(1);
    expect(await run('replay')).toMatchObject({ status: 0 });
  });
});
