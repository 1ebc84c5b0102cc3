import type { LogEvent } from '@kronos/contracts';
import { expect, it } from 'vitest';
import { Recollection } from './recollection.ts';

const MS = Date.UTC(2026, 0, 1);
const STEP = { step: 1, taskId: 'agg-1-s1', serverId: 'vm', from: 'h1', to: 'h2', resources: {}, dependsOn: [] };

it.each([
  [[], 1],
  [['plan.rejected'], 0],
  [['plan.withdrawn'], 0],
] as const)('an approval after %j releases %d tasks of a plan that waited for it', (ends, released) => {
  const recollection = new Recollection();
  const apply = (type: string, data: object): void =>
    recollection.apply({ type, aggregate: 'agg', time: new Date(MS).toISOString(), data } as unknown as LogEvent, MS);
  apply('planner.configured', { options: { approvalTtlSeconds: 600 } });
  const plan = { id: 'agg-1', steps: [STEP] };
  apply('cycle.decided', { snapshotId: 'agg-1', snapshotTime: new Date(MS).toISOString(), release: 'proposed', plan });
  for (const type of ends) apply(type, { planId: 'agg-1', steps: null });
  apply('plan.approved', { planId: 'agg-1', steps: null });
  expect(recollection.memory('agg').inFlight).toHaveLength(released);
});
