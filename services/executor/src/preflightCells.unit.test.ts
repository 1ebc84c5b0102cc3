import type { HostCell } from '@kronos/contracts';
import type { Migration, Server } from '@kronos/openstack';
import type { CellNeed } from '@kronos/rules';
import { describe, expect, it } from 'vitest';
import { cellsRefusal, readHostCells } from './preflightCells.ts';

const cell = (id: number): HostCell => ({ id, dedicatedCpus: 4, sharedCpus: 0, memoryMb: 8192, pages: [] });
const planned = { cells: [cell(0), cell(1)], ratios: { cpu: 1, memory: 1 } };
const pinned = (dedicatedCpus: number, hostCell: number | null = null): readonly CellNeed[] => [
  { hostCell, dedicatedCpus, sharedCpus: 0, memoryMb: 1024, pageSizeKb: null, smallPages: false },
];
const codeFor = (others: Parameters<typeof cellsRefusal>[1]['others'], own = pinned(3), allowUnknown = false) =>
  cellsRefusal(planned, { own, others }, { moveUnknownTopology: allowUnknown })?.code ?? 'fits';

it('a cell that is free takes the server; residents count on their own cells', () => {
  expect(codeFor([pinned(4, 0)])).toBe('fits');
  expect(codeFor([pinned(4, 0), pinned(2, 1)])).toBe('numa-fit');
});

it('what is on its way counts on every cell, because Nova chooses', () => {
  expect(codeFor([pinned(2)])).toBe('numa-fit');
  expect(codeFor([pinned(1)])).toBe('fits');
});

it('what is unknown is no room, unless unknown cells are allowed', () => {
  expect(codeFor(['unknown'])).toBe('numa-unknown');
  expect(codeFor(['unknown'], pinned(3), true)).toBe('fits');
  expect(cellsRefusal(planned, { own: 'unknown', others: [] }, { moveUnknownTopology: false })?.code).toBe(
    'numa-unknown',
  );
  expect(cellsRefusal(planned, { own: null, others: ['unknown'] }, { moveUnknownTopology: false })).toBeNull();
});

it('says what does not fit', () => {
  expect(cellsRefusal(planned, { own: pinned(5), others: [] }, { moveUnknownTopology: false })?.text).toBe(
    'no room for 5 dedicated CPUs and 1 GiB of memory in its NUMA cells',
  );
});

describe('what is read of a destination', () => {
  const NOW_MS = Date.UTC(2026, 0, 1, 12);
  const server = (id: string, host: string, more: Partial<Server> = {}): Server =>
    ({
      id,
      host,
      status: 'ACTIVE',
      taskState: null,
      cellDown: false,
      flavor: { vcpus: 2, ramMb: 1024, diskGb: 1, swapMb: 0, ephemeralGb: 0, name: 'pinned', extraSpecs: PINNED },
      imageProperties: undefined,
      ...more,
    }) as Server;
  const PINNED = { 'hw:cpu_policy': 'dedicated' };
  const row = (serverId: string, source: string, dest: string, more: Partial<Migration> = {}): Migration =>
    ({
      serverId,
      sourceCompute: source,
      destCompute: dest,
      type: 'migration',
      status: 'finished',
      createdAt: '2026-01-01T08:00:00Z',
      updatedAt: '2026-01-01T08:00:00Z',
      ...more,
    }) as Migration;
  /** The cells of the others on h2, by a cloud with these servers and rows. `arrives`: ends between two reads. */
  async function othersOn(
    servers: readonly Server[],
    rows: readonly Migration[],
    arrives: (server: Server) => Server = (each) => each,
  ) {
    let asked = servers;
    const nova: Parameters<typeof readHostCells>[2] = {
      listServers: async (filter) => asked.filter(({ host }) => host === filter?.host),
      async listUnfinishedMigrations() {
        asked = servers.map(arrives);
        return [...rows];
      },
      getServer: async (id) => asked.find((each) => each.id === id) ?? Promise.reject(new Error(`no server ${id}`)),
      getServerTopology: async () => ({
        nodes: [{ hostNode: 1, vcpus: 2, pinned: 2, memoryMb: 1024 }],
        pageSizeKb: null,
      }),
    };
    const signal = new AbortController().signal;
    const { others } = await readHostCells(server('own', 'h1'), 'h2', nova, { nowMs: NOW_MS, signal });
    return others.map((needs) => (Array.isArray(needs) ? needs.map(({ hostCell }) => hostCell) : needs));
  }

  it('counts residents on their cells, and what comes on every cell', async () => {
    const coming = server('coming', 'h1', { taskState: 'migrating' });
    const rows = [row('coming', 'h1', 'h2', { type: 'live-migration', status: 'running' })];
    expect(await othersOn([server('there', 'h2'), coming], rows)).toEqual([[1], [null]]);
  });

  it('counts a server that waits for its confirmation elsewhere: Nova keeps its cells on the source', async () => {
    const resized = server('resized', 'h3', { status: 'VERIFY_RESIZE' });
    expect(await othersOn([resized], [row('resized', 'h2', 'h3')])).toEqual([[null]]);
  });

  it('does not count a migration that Nova has abandoned', async () => {
    const rows = [row('idle', 'h1', 'h2', { type: 'live-migration', status: 'preparing' })];
    expect(await othersOn([server('idle', 'h1')], rows)).toEqual([null]);
  });

  it('counts a server that arrives while it reads', async () => {
    const coming = server('coming', 'h1', { taskState: 'migrating' });
    expect(await othersOn([coming], [], (each) => ({ ...each, host: 'h2', taskState: null }))).toEqual([[1]]);
  });
});
