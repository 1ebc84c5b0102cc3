import { startSim } from '@kronos/simcloud';
import { type CloudUnderTest, cloudContract, services, slow } from './index.ts';

const SPEED = 20;
/** Of the hosts of the second cell alone. */
const NEW = 'CUSTOM_CELL2';

const start = async (): Promise<CloudUnderTest> => {
  const hosts = ['cmp1', 'cmp2', 'cmp3', 'cmp4', 'cmp5', 'cmp6'];
  const sim = await startSim({
    speed: SPEED,
    scenario: {
      name: 'contract',
      hosts: [...hosts.map((name) => ({ name })), { name: 'cmp101', cell: 'cell2', traits: [NEW] }],
      crossCellResize: true,
      flavors: [
        { name: 'bed.small', vcpus: 2, memoryMb: 4096, diskGb: 1 },
        { name: 'larger', vcpus: 4, memoryMb: 8192, diskGb: 1 },
        { name: 'foreign', vcpus: 2, memoryMb: 4096, diskGb: 1, extraSpecs: { [`trait:${NEW}`]: 'required' } },
        { name: 'diskless', vcpus: 2, memoryMb: 4096, diskGb: 0 },
      ],
      // 1.5 s of copying, and 1.5 s until `completed`: a busy machine sees both.
      timing: { copyFloorMs: 30_000, completedMs: 30_000 },
      scrapeSeconds: 0.1,
      users: [
        { name: 'admin', password: 'secret', roles: ['admin'] },
        { name: 'person', password: 'of their own', roles: ['operator'] },
      ],
      applicationCredentials: [{ id: 'contract', name: 'contract', secret: 'hidden' }],
    },
  });
  return {
    name: 'simcloud',
    identity: sim.urls.identity,
    prometheus: sim.urls.prometheus,
    username: 'admin',
    password: 'secret',
    project: 'admin',
    hosts: ['cmp1', 'cmp2', 'cmp3', 'cmp4', 'cmp5', 'cmp6'],
    foreignHost: 'cmp101',
    imageRef: sim.cloud.imageId,
    flavorRef: '1',
    largerFlavorRef: '2',
    foreignFlavorRef: '3',
    disklessFlavorRef: '4',
    patienceMs: 60_000,
    // A look takes some milliseconds of CPU, and may miss a status.
    lookEveryMs: 40,
    applicationCredential: { id: 'contract', secret: 'hidden' },
    person: { username: 'person', password: 'of their own' },
    takeRole: async (taken) => {
      sim.act({ act: 'setRoles', user: 'person', roles: taken ? [] : ['operator'] });
    },
    fault: async (server, fault) => {
      const kinds = {
        fail: 'fail',
        error: 'error',
        hang: 'hang',
        refuse: 'pre-check',
        break: 'error-after-switchover',
        snapshot: 'snapshot',
        spawn: 'spawn',
        confirm: 'confirm',
        revert: 'revert',
      } as const;
      // A deleted server has no faults to mend.
      if (fault === null && !sim.cloud.servers.has(server)) return;
      if (fault === 'slow') sim.act({ act: 'faultServer', server, fault: { kind: 'slow', seconds: 2 * SPEED } });
      else sim.act({ act: 'faultServer', server, fault: fault === null ? null : { kind: kinds[fault] } });
    },
    power: async (server, powerState) => {
      sim.act({ act: 'setServer', server, powerState });
    },
    refuse: async (host, refuses) => {
      sim.act({ act: 'faultHost', host, fault: refuses ? { kind: 'refuse' } : null });
    },
    hook: async (host, refuses) => {
      sim.act({ act: 'faultHost', host, fault: refuses ? { kind: 'hook' } : null });
    },
    stop: async (host, stopped) => {
      sim.act({ act: 'setHost', host, up: !stopped });
    },
    kill: async (host) => {
      sim.act({ act: 'killHost', host });
    },
    start: async (host) => {
      sim.act({ act: 'startHost', host });
    },
    holdScheduler: async (held) => {
      sim.cloud.schedulerHeld = held;
    },
    crossCells: async (allowed) => {
      sim.cloud.crossCell = allowed;
    },
    reachForeignCell: async (reachable) => {
      sim.act({ act: 'setCell', cell: 'cell2', reachable });
    },
    fill: async (host, full) => {
      sim.act({ act: 'setHost', host, full });
    },
    reset: async () => {
      sim.act({ act: 'mendAll' });
      sim.cloud.crossCell = true;
      sim.cloud.schedulerHeld = false;
      // A server that was deleted while it changed cells needs more than one deletion.
      while (sim.cloud.servers.size > 0)
        for (const server of [...sim.cloud.servers.keys()]) sim.act({ act: 'deleteServer', server });
      for (const consumer of [...sim.cloud.allocations.keys()]) sim.cloud.dropAllocation(sim.clock.now(), consumer);
      for (const group of [...sim.cloud.groups.keys()]) sim.act({ act: 'deleteGroup', group });
      for (const aggregate of [...sim.cloud.aggregates.values()])
        sim.act({ act: 'deleteAggregate', aggregate: aggregate.name });
      for (const host of [...sim.cloud.hosts.keys()])
        sim.act({ act: 'setHost', host, disabled: false, forcedDown: false, up: true, full: false });
    },
    close: () => sim.close(),
  };
};

cloudContract('the simulated cloud', start, [...services, ...slow]);
