import { type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { allCells, type Cell, runCell } from './cells.ts';
import { Fleet } from './fleet.ts';

/** A few by default; `KRONOS_FAULT_CELLS=all`, a number, or a part of the names. */
function chosen(): readonly Cell[] {
  const wanted = process.env.KRONOS_FAULT_CELLS ?? '24';
  const cells = allCells();
  if (wanted === 'all') return cells;
  if (/^\d+$/.test(wanted)) return cells.slice(0, Number(wanted));
  return cells.filter((cell) => cell.name.includes(wanted));
}

/** Cells that run side by side: they mostly wait. Each lane has a nats-server of its own, which the faults may kill. */
const LANES = Number(process.env.KRONOS_FAULT_LANES ?? 4);

describe('whatever breaks, at whatever point: one final result per task, one migration per attempt, no cap exceeded', () => {
  const cells = chosen();
  const results = new Map<string, Promise<readonly string[]>>();
  let fleet: Fleet;
  let servers: NatsServer[] = [];

  beforeAll(async () => {
    fleet = new Fleet(LANES + 2);
    servers = await Promise.all(Array.from({ length: LANES }, () => startNatsServer()));
    const waiting = [...cells];
    const finished = new Map<string, (found: readonly string[]) => void>();
    for (const cell of cells) results.set(cell.name, new Promise((resolve) => finished.set(cell.name, resolve)));
    for (const nats of servers) void lane(nats);
    async function lane(nats: NatsServer): Promise<void> {
      for (let cell = waiting.shift(); cell !== undefined; cell = waiting.shift()) {
        const found = await runCell(cell, nats, fleet).then(
          (result) => result.breaches,
          (error: unknown) => [error instanceof Error ? error.message : String(error)],
        );
        finished.get(cell.name)?.(found);
      }
    }
  });
  afterAll(async () => {
    await fleet.close();
    await Promise.all(servers.map((server) => server.stop()));
  });

  it.each(cells.map(({ name }) => name))('%s', { timeout: 900_000 }, async (name) => {
    expect(await results.get(name)).toEqual([]);
  });
});
