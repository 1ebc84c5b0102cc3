import type { Course, StoredEvent } from '@kronos/contracts';
import { testLog } from '@kronos/projections/testing';
import { plansOf } from '@kronos/replay';
import { expect, it } from 'vitest';
import { renderPlan } from './plan.ts';

const course: Course = {
  reaches: true,
  moves: 31,
  costGib: 124,
  cycles: 4,
  seconds: 2400,
  after: { combined: 0.1, policies: [] },
};

it('shows what is left of the course when the plan was made', async () => {
  const log = testLog();
  log.configured();
  log.decided('dryRun', [{ serverId: 'a', from: 'h1', to: 'h2' }], { course });
  async function* events(): AsyncGenerator<StoredEvent> {
    yield* log.events;
  }
  const [plan] = await plansOf(events(), {});
  if (plan === undefined) throw new Error('no plan');
  const terminal = { out() {}, err() {}, steer() {}, colour: false, columns: 100, live: false };
  await expect(renderPlan({ terminal, now: () => log.nowMs }, plan)).toMatchFileSnapshot(
    '../../test/golden/outputs/plan-show-course.golden.txt',
  );
});
