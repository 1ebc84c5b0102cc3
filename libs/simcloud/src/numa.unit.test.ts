import { describe, expect, test } from 'vitest';
import { Cloud } from './cloud.ts';
import { parseScenario, type ScenarioInput } from './scenario.ts';

const START = Date.UTC(2026, 0, 1);
const cell = (id: number) => ({ id, dedicatedCpus: 4, sharedCpus: 4, memoryMb: 32_768, pages: { 1048576: 8 } });
const pinned = { name: 'pinned', vcpus: 4, memoryMb: 4096, diskGb: 1, extraSpecs: { 'hw:cpu_policy': 'dedicated' } };
const wide = { ...pinned, name: 'wide', extraSpecs: { ...pinned.extraSpecs, 'hw:numa_nodes': '2' } };
const pages = { ...pinned, name: 'pages', extraSpecs: { 'hw:mem_page_size': '1GB' } };
const isolated = {
  ...pinned,
  name: 'isolated',
  vcpus: 3,
  extraSpecs: { ...pinned.extraSpecs, 'hw:emulator_threads_policy': 'isolate' },
};
const plain = { name: 'plain', vcpus: 4, memoryMb: 4096, diskGb: 1 };

function cloudOf(more: Partial<ScenarioInput> = {}): Cloud {
  return new Cloud(
    parseScenario({
      hosts: ['h1', 'h2'].map((name) => ({ name, vcpus: 8, memoryMb: 65_536, cells: [cell(0), cell(1)] })),
      flavors: [pinned, wide, pages, isolated, plain],
      timing: { jitter: 0 },
      ...more,
    }),
    { startMs: START },
  );
}

/** Asks for a move; where the server is then, and why it is there. */
function move(cloud: Cloud, name: string, host: string): [host: string, why: string | null] {
  const { admin } = cloud;
  const caller = { userId: admin.id, projectId: admin.projectId, requestId: `req-${name}` };
  const { uuid } = cloud.server(name);
  cloud.liveMigrate(cloud.nowMs, caller, uuid, { host, force: false, async: true });
  cloud.advance(cloud.nowMs + 600_000);
  const failed = cloud.actions.get(uuid)?.find(({ requestId }) => requestId === caller.requestId);
  return [cloud.server(name).host, failed?.events.find(({ result }) => result === 'Error')?.details ?? null];
}

const callerOf = ({ admin }: Cloud) => ({ userId: admin.id, projectId: admin.projectId, requestId: 'req-cold' });

const on = (name: string, host: string, flavor: string) => ({ name, host, flavor });

/** A flavor of the cloud. */
const pinnedOf = (cloud: Cloud) => cloud.flavors.get('pinned') ?? { id: '', ...pinned };

describe('NUMA cells', () => {
  test('a destination without room in one cell refuses, although the whole host has room', () => {
    const servers = [on('v', 'h1', 'pinned'), on('a', 'h2', 'isolated'), on('b', 'h2', 'isolated')];
    expect(move(cloudOf({ servers: servers.slice(0, 2) }), 'v', 'h2')).toEqual(['h2', null]);
    const [host, why] = move(cloudOf({ servers }), 'v', 'h2');
    expect(host).toBe('h1');
    expect(why).toMatch(/^No valid host was found\. $/);
  });

  test('the compute refuses what the scheduler does not see, in the words of Nova', () => {
    const servers = [
      on('v', 'h1', 'pages'),
      on('a', 'h2', 'pages'),
      on('b', 'h2', 'pages'),
      on('c', 'h2', 'pages'),
      on('d', 'h2', 'pages'),
    ];
    const [host, why] = move(cloudOf({ servers }), 'v', 'h2');
    expect(host).toBe('h1');
    expect(why).toContain('Requested instance NUMA topology cannot fit the given host NUMA topology.');
    expect(move(cloudOf({ servers, numaFilter: true }), 'v', 'h2')[1]).toMatch(/^No valid host was found\. There are/);
  });

  test('a server on two cells takes one cell each, the emptiest first, and frees them when it leaves', () => {
    const cloud = cloudOf({ servers: [on('w', 'h1', 'wide'), on('p', 'h2', 'pinned')] });
    expect(cloud.cellsFor('h1', pinnedOf(cloud))).toBeNull();
    const host = (free: number) => ({ name: 'h2', cells: [{ ...cell(0), dedicatedCpus: free }, cell(1)] });
    expect(move(cloud, 'w', 'h2')[0]).toBe('h1');
    const larger = cloudOf({
      hosts: [{ name: 'h1', cells: [cell(0), cell(1)] }, host(6)],
      servers: [on('w', 'h1', 'wide')],
    });
    expect(larger.cellsFor('h2', larger.server('w').flavor)?.map(({ id, pinned: cpus }) => [id, cpus])).toEqual([
      [0, 2],
      [1, 2],
    ]);
    expect(move(larger, 'w', 'h2')).toEqual(['h2', null]);
    expect(larger.cellsFor('h1', pinnedOf(larger))?.[0]?.id).toBe(0);
    const packing = cloudOf({ servers: [on('p', 'h1', 'plain'), on('q', 'h1', 'pages')], packNumaCells: true });
    expect(packing.cellsFor('h1', packing.server('q').flavor)?.[0]?.id).toBe(0);
  });

  test('a server that no cells take is not there', () => {
    const cloud = cloudOf({ servers: [on('a', 'h1', 'pinned'), on('b', 'h1', 'pinned')] });
    expect(() => cloud.createServer(START, on('c', 'h1', 'pinned'))).toThrow('the NUMA cells of h1 do not take it');
    expect([...cloud.servers.values()].map(({ name }) => name)).toEqual(['a', 'b']);
  });

  test('a cold migration claims cells of its destination, and is refused where they are full', () => {
    const cold = (others: number): Cloud => {
      const full = Array.from({ length: others }, (_, i) => on(`other-${i}`, 'h2', 'pages'));
      const cloud = cloudOf({ servers: [on('v', 'h1', 'pages'), ...full] });
      cloud.coldMigrate(START, callerOf(cloud), cloud.server('v').uuid, 'h2');
      cloud.advance(START + 600_000);
      return cloud;
    };
    const moved = cold(1);
    expect(moved.server('v').host).toBe('h2');
    const held = moved.allocations.get(moved.server('v').uuid);
    expect([held?.host, held?.resources.cells?.map(({ id }) => id)]).toEqual(['h2', [1]]);
    expect(cold(4).server('v').host).toBe('h1');
  });

  test('the source of a cold migration keeps its cells until the move is confirmed, and a row that nobody ends keeps none', () => {
    const waiting = (): Cloud => {
      const cloud = cloudOf({ servers: [on('v', 'h1', 'pinned'), on('w', 'h1', 'pinned')] });
      cloud.coldMigrate(START, callerOf(cloud), cloud.server('v').uuid, 'h2');
      cloud.advance(START + 600_000);
      return cloud;
    };
    const free = (cloud: Cloud): boolean => cloud.cellsFor('h1', pinnedOf(cloud)) !== null;
    const cloud = waiting();
    expect([cloud.server('v').vmState, free(cloud)]).toEqual(['resized', false]);
    cloud.endResize(cloud.nowMs, callerOf(cloud), cloud.server('v').uuid, 'confirmResize');
    cloud.advance(cloud.nowMs + 600_000);
    expect(free(cloud)).toBe(true);
    // After a reset of the state Placement counts the row for ever, and the compute does not.
    const reset = waiting();
    expect(() => reset.setServer(reset.nowMs, 'v', { vmState: 'active' })).toThrow('server v waits in VERIFY_RESIZE');
    reset.setServer(reset.nowMs, 'v', { vmState: 'error' });
    expect([reset.hosts.get('h1')?.consumers.size, free(reset)]).toEqual([2, true]);
    // Nor while the server goes back there live: that is another move.
    reset.setServer(reset.nowMs, 'v', { vmState: 'active' });
    const back = { host: 'h1', force: false, async: true };
    reset.liveMigrate(reset.nowMs, callerOf(reset), reset.server('v').uuid, back);
    expect([reset.server('v').taskState, free(reset)]).toEqual(['migrating', true]);
    reset.deleteServer(reset.nowMs, 'v');
    expect(free(reset)).toBe(true);
  });

  test('guests that have seen more of a CPU than a host has do not go there', () => {
    const hosts = [
      { name: 'old', traits: [] },
      { name: 'new', traits: ['HW_CPU_X86_AVX512F'] },
    ];
    const cloud = cloudOf({ hosts, servers: [on('v', 'old', 'plain'), on('w', 'new', 'plain')] });
    expect(move(cloud, 'w', 'old')).toEqual(['new', expect.stringContaining('No valid host')]);
    expect(move(cloud, 'v', 'new')).toEqual(['new', null]);
    // It was started on the old one.
    expect(move(cloud, 'v', 'old')).toEqual(['old', null]);
  });
});
