import { describe, expect, test } from 'vitest';
import { Cloud } from './cloud.ts';
import type { Server } from './model.ts';
import { parseScenario } from './scenario.ts';

const START = Date.UTC(2026, 0, 1);
const END = START + 600_000;

/** Cases that the suite of test/contract cannot time on a real cloud: a deletion and a dead compute at an exact moment. */
function world(): { cloud: Cloud; v: Server; until: (taskState: string | null, vmState?: string) => number } {
  const cloud = new Cloud(
    parseScenario({
      hosts: [{ name: 'old' }, { name: 'new', cell: 'cell2' }],
      flavors: [{ name: 'small', vcpus: 2, memoryMb: 4096, diskGb: 10 }],
      timing: { jitter: 0 },
      crossCellResize: true,
      servers: [{ name: 'v', host: 'old', flavor: 'small' }],
    }),
    { startMs: START },
  );
  const v = cloud.server('v');
  const until = (taskState: string | null, vmState = v.vmState as string): number => {
    while (v.taskState !== taskState || v.vmState !== vmState) {
      const at = cloud.nextAtMs();
      if (at === null) throw new Error(`nothing more happens, and v is ${v.vmState} ${v.taskState}`);
      cloud.advance(at);
    }
    return cloud.nowMs;
  };
  cloud.coldMigrate(START, caller(cloud), v.uuid, 'new');
  return { cloud, v, until };
}

const caller = ({ admin }: Cloud) => ({ userId: admin.id, projectId: admin.projectId, requestId: 'req-1' });
const held = (cloud: Cloud) => [...cloud.allocations.values()].map(({ host }) => host);

describe('a move that nobody confirms', () => {
  type Meanwhile = { readonly sourceUp: boolean; readonly reset?: true };
  const moved = (resizeConfirmWindow: number, dest: 'near' | 'new', meanwhile: Meanwhile) => {
    const cloud = new Cloud(
      parseScenario({
        hosts: [{ name: 'old' }, { name: 'near' }, { name: 'new', cell: 'cell2' }],
        flavors: [{ name: 'small', vcpus: 2, memoryMb: 4096, diskGb: 10 }],
        crossCellResize: true,
        resizeConfirmWindow,
        servers: [{ name: 'v', host: 'old', flavor: 'small' }],
      }),
      { startMs: START },
    );
    const v = cloud.server('v');
    cloud.coldMigrate(START, caller(cloud), v.uuid, dest);
    cloud.advance(START + 120_000);
    cloud.setHost(cloud.nowMs, 'old', { up: meanwhile.sourceUp });
    if (meanwhile.reset === true) cloud.setServer(cloud.nowMs, 'v', { vmState: 'error' });
    cloud.advance(END);
    const seen = [v.vmState, cloud.migrations[0]?.status];
    cloud.setHost(cloud.nowMs, 'old', { up: true });
    cloud.advance(END + 120_000);
    return [...seen, v.vmState, v.host, held(cloud)];
  };

  test('Nova confirms within a cell after its window, once both computes are up', () => {
    const confirmed = ['active', 'near', ['near']];
    expect(moved(300, 'near', { sourceUp: true })).toEqual(['active', 'confirmed', ...confirmed]);
    expect(moved(300, 'near', { sourceUp: false })).toEqual(['resized', 'finished', ...confirmed]);
  });

  test('Nova gives up the row of a server whose state somebody has reset', () => {
    expect(moved(300, 'near', { sourceUp: true, reset: true }).slice(0, 2)).toEqual(['error', 'error']);
    expect(moved(0, 'near', { sourceUp: true, reset: true }).slice(0, 2)).toEqual(['error', 'finished']);
  });

  test('waits for a person without a window, and between cells', () => {
    expect(moved(0, 'near', { sourceUp: true }).slice(0, 3)).toEqual(['resized', 'finished', 'resized']);
    expect(moved(300, 'new', { sourceUp: true }).slice(0, 3)).toEqual(['resized', 'finished', 'resized']);
  });
});

describe('a server deleted while it changes cells', () => {
  test('is gone, and holds nothing, while its source still has it', () => {
    const { cloud, v } = world();
    cloud.deleteServer(START + 3000, v.uuid);
    expect(v.taskState).toBe('resize_prep');
    cloud.advance(END);
    expect([cloud.servers.size, held(cloud), cloud.migrations[0]?.status]).toEqual([0, [], 'error']);
  });

  test('comes back without an allocation when the new cell is about to take over, and takes two deletions', () => {
    const { cloud, v, until } = world();
    cloud.deleteServer(until('resize_migrated'), v.uuid);
    expect(cloud.servers.size).toBe(0);
    cloud.advance(END);
    expect([cloud.server('v').vmState, v.host, held(cloud)]).toEqual(['resized', 'new', ['old']]);
    cloud.deleteServer(END, v.uuid);
    expect(cloud.server('v').vmState).toBe('error');
    cloud.deleteServer(END, v.uuid);
    expect(cloud.servers.size).toBe(0);
  });

  test('is gone when its old cell had carried the deletion out before', () => {
    const { cloud, v, until } = world();
    cloud.serverFaults.set(v.uuid, { kind: 'slow', seconds: 60 });
    cloud.deleteServer(until('resize_migrated'), v.uuid);
    cloud.advance(END);
    expect([cloud.servers.size, held(cloud)]).toEqual([0, []]);
  });
});

describe('a compute that dies during a move between cells', () => {
  test('as the destination leaves the server in ERROR in its old cell', () => {
    const { cloud, v, until } = world();
    cloud.killHost(until('resize_migrated'), 'new');
    cloud.advance(END);
    expect([v.vmState, v.host, held(cloud), cloud.migrations[0]?.status]).toEqual(['error', 'old', ['old'], 'error']);
  });

  test('as the source of a revert leaves it in ERROR there', () => {
    const { cloud, v, until } = world();
    cloud.endResize(until(null, 'resized'), caller(cloud), v.uuid, 'revertResize');
    cloud.killHost(cloud.nowMs, 'old');
    cloud.advance(END);
    expect([v.vmState, v.taskState, cloud.migrations[0]?.status]).toEqual(['error', null, 'error']);
  });

  test('stops a move while it reports nothing, and lets it go on', () => {
    const { cloud, v, until } = world();
    cloud.setHost(until('resize_migrating'), 'old', { up: false });
    cloud.advance(END);
    expect(v.taskState).toBe('resize_migrating');
    cloud.setHost(END, 'old', { up: true });
    until(null, 'resized');
    expect(v.host).toBe('new');
  });
});

describe('ids of migrations', () => {
  test('are counted per cell, and the row that is left after a confirmation is the one of the new cell', () => {
    const { cloud, v, until } = world();
    cloud.endResize(until(null, 'resized'), caller(cloud), v.uuid, 'confirmResize');
    until(null, 'active');
    cloud.coldMigrate(cloud.nowMs, caller(cloud), v.uuid, 'old');
    until(null, 'resized');
    // The first cell counts on where it was: 1 left with the server, 2 is the copy of what the other cell has as 1.
    expect(cloud.migrations.map(({ rows }) => rows.map(({ cell, id }) => `${cell} ${id}`))).toEqual([
      ['cell2 1', 'cell1 2'],
      ['cell2 2', 'cell1 3'],
    ]);
  });
});
