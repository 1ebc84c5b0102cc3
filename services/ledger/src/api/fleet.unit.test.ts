import { planTime } from '@kronos/projections';
import { testLog } from '@kronos/projections/testing';
import { expect, it } from 'vitest';
import { fleetLine } from './fleet.ts';

const GPU = 'gpu';
const line = (log: ReturnType<typeof testLog>) =>
  fleetLine({ state: log.state(), decisions: [], runs: [], seen: undefined, inScope: true, paces: [] }, log.nowMs);

it('an aggregate with moves in flight says how long they take: those that have ended no longer count', () => {
  const log = testLog(GPU);
  log.configured();
  expect(line(log).movesTime).toBeNull();
  const planId = log.released([
    { serverId: 'vm1', from: 'h1', to: 'h2', ramMb: 8192 },
    { serverId: 'vm2', from: 'h1', to: 'h3' },
  ]);
  const [own] = log.state().plans.values();
  const steps = (own?.tasks ?? []).flatMap((id) => log.state().tasks.get(id)?.step ?? []);
  expect(line(log).movesTime).toEqual(planTime(log.state(), steps, []));
  log.started({ task: `${planId}-s1` });
  log.pass(60).completed({ task: `${planId}-s1` });
  expect(line(log).movesTime).toEqual(planTime(log.state(), steps.slice(1), []));
  log.started({ task: `${planId}-s2` });
  log.pass(60).completed({ task: `${planId}-s2` });
  expect(line(log).movesTime).toBeNull();
});

it('a move that waits for a person in its new cell has no time left that is known', () => {
  const log = testLog(GPU);
  log.configured();
  const planId = log.cellsProposed([{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
  log.approved(planId);
  log.started({ task: `${planId}-s1` });
  expect(line(log).movesTime).not.toBeNull();
  log.pass(60).verifying({ task: `${planId}-s1` });
  expect(line(log)).toMatchObject({ movesInFlight: 1, movesTime: null });
});
