import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { choose, runCells } from './cells.ts';

describe('whatever breaks, at whatever point: one final result per task, one migration per attempt, no cap exceeded', () => {
  /**
   * A few, and a kill at the requests of a move between cells. `KRONOS_FAULT_CELLS=sample` runs those that `.ci/run` runs with
   * `run.ts`; `all` runs every cell, a number or text fewer.
   */
  const { KRONOS_FAULT_CELLS: wanted } = process.env;
  const stages = ['in POST', 'in confirm', 'in revert'];
  const cells =
    wanted === undefined
      ? [
          ...choose('6'),
          ...stages.flatMap((at) =>
            choose(`, between cells: ${at}, 1 executor`).filter(({ fault }) => fault === 'executor killed'),
          ),
        ]
      : choose(wanted);
  const results = new Map<string, PromiseWithResolvers<readonly string[]>>();
  for (const { name } of cells) results.set(name, Promise.withResolvers());

  let run: Promise<void>;

  beforeAll(() => {
    const workers = Number(process.env.KRONOS_FAULT_WORKERS ?? 4);
    run = runCells(cells, workers, ({ name }, { breaches }) => results.get(name)?.resolve(breaches)).catch(
      (error: unknown) => {
        for (const { reject } of results.values()) reject(error);
      },
    );
  });
  // After the last cell the executors and the servers end.
  afterAll(() => run);

  it.each(cells.map(({ name }) => name))('%s', { timeout: 900_000 }, async (name) => {
    expect(await results.get(name)?.promise).toEqual([]);
  });
});
