import { DAY_MS } from '@kronos/contracts';
import { testLog } from '@kronos/projections/testing';
import { expect, it } from 'vitest';
import { memoryHistory } from '../testing/index.ts';
import { findHostFailures } from './hostFailures.ts';

it('the failures that a host was at fault for are those of the last day, and no others', async () => {
  const log = testLog();
  log.configured();
  const plan = log.released([
    { serverId: 'vm1', from: 'h1', to: 'h2' },
    { serverId: 'vm2', from: 'h1', to: 'h2' },
    { serverId: 'vm3', from: 'h1', to: 'h3' },
  ]);
  log.dispatched(plan);
  log.failed({ task: `${plan}-s1`, hostAtFault: 'h2' });
  log.failed({ task: `${plan}-s2` });
  log.failed({ task: `${plan}-s3`, hostAtFault: 'h3' });
  const history = memoryHistory(log.events, []);
  const told = async (host: string, untilMs: number) =>
    (await findHostFailures(history, host, untilMs)).map(({ data }) => data.serverId);
  expect(await told('h2', log.nowMs)).toEqual(['vm1']);
  expect(await told('h3', log.nowMs)).toEqual(['vm3']);
  expect(await told('h1', log.nowMs)).toEqual([]);
  expect(await told('h2', log.nowMs + 2 * DAY_MS)).toEqual([]);
});
