import type { PlanRecord, StepRecord } from '@kronos/replay';
import { expect, it } from 'vitest';
import { renderPlan, renderPlans } from './record.ts';

const quiet = () => undefined;
const terminal = { out: quiet, err: quiet, steer: quiet, colour: false, columns: 200, live: false };
const shell = { terminal, now: () => 0 };
const step = {
  step: 1,
  taskId: 'p-s1',
  phase: 'spread',
  serverId: 'v1',
  serverName: 'web',
  from: 'h1',
  to: 'h2',
  dependsOn: [],
  gain: 0.1,
  state: 'completed',
  note: '',
  endedAtMs: 0,
  ended: 'completed',
  attempt: 1,
  destination: 'h2',
} as unknown as StepRecord;
const planOf = (changed: Partial<StepRecord>): PlanRecord => ({
  id: 'p',
  aggregate: 'gpu',
  sequence: 1,
  decidedAtMs: 0,
  kind: 'cycle',
  outcome: 'done',
  releasedAtMs: 0,
  endedAtMs: 0,
  steps: [{ ...step, ...changed }],
  time: null,
  planner: 'search',
  plannerVersion: '4',
  combinedBefore: 0.3,
  combinedAfter: 0.1,
  lowerBound: null,
  shareOfPossible: 0.83,
  course: null,
  loads: null,
  hostsBefore: null,
});
const shown = (changed: Partial<StepRecord>): string =>
  renderPlans(shell, [planOf(changed)]) + renderPlan(shell, planOf(changed));

it('a plan that was carried out as planned says what it gained', () => {
  expect(shown({})).toMatch(/0\.3 -> 0\.1 +83 %/);
  expect(shown({})).toMatch(/0\.3 -> 0\.1, 83 % of/);
});

it.each<[string, Partial<StepRecord>]>([
  ['a move took an alternate', { destination: 'h3' }],
  ['a move failed', { state: 'failed', ended: 'failed' }],
  ['a move was cancelled', { state: 'cancelled', ended: 'failed' }],
  ['a person rejected a move', { state: 'rejected', ended: null, destination: null }],
  ['the window of a move had closed at the release', { state: 'outsideWindow', ended: null, destination: null }],
])('a plan of which %s claims nothing of what it promised', (_, changed) => {
  expect(shown(changed)).toMatch(/0\.3 \(planned 0\.1\)/);
  expect(shown(changed)).not.toMatch(/83 %|0\.3 -> 0\.1/);
});

it('a move that was cancelled is not counted as failed', () => {
  const failed = (changed: Partial<StepRecord>) => / 0 of 1 +1 /.test(renderPlans(shell, [planOf(changed)]));
  expect(failed({ state: 'failed', ended: 'failed' })).toBe(true);
  expect(failed({ state: 'cancelled', ended: 'failed' })).toBe(false);
  expect(renderPlan(shell, planOf({ state: 'cancelled', ended: 'failed' }))).toMatch(/ cancelled$/m);
});
