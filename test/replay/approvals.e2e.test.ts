import type { LogEvent, LogEventOf } from '@kronos/contracts';
import type { MigrationRecord } from '@kronos/simcloud';
import { afterEach, expect, it } from 'vitest';
import { kronos } from '../../libs/cli/test/world.ts';
import { ended, openWorld, type World } from '../e2e/world.ts';

let world: World | null = null;
afterEach(async () => {
  await world?.close();
  world = null;
});

type Proposal = LogEventOf<'cycle.decided'> & { readonly data: { readonly plan: object } };
const proposals = (events: readonly LogEvent[]): Proposal[] =>
  events.filter((e): e is Proposal => e.type === 'cycle.decided' && e.data.release === 'proposed');
const started = (events: readonly LogEvent[]): string[] =>
  events.flatMap((e) => (e.type === 'migration.started' ? [e.data.taskId] : []));

it('a plan that waits is approved in part, rejected, left to expire, and approved whole; what starts is checked again', async () => {
  const at = await openWorld({
    speed: 20,
    env: { OS_ENGINE__APPROVAL: 'manual', OS_ENGINE__APPROVAL_TTL: '30', OS_ENGINE__COOLDOWN: '1' },
  });
  world = at;
  const cli = async (...words: string[]) => {
    const said = await kronos(words, { env: { KRONOS_CONFIG: at.stage.configFile }, nowMs: Date.now() });
    return { ...said, json: said.out === '' ? null : JSON.parse(said.out) };
  };
  const outcome = async (planId: string) => {
    const { json } = await cli('plan', 'show', planId, '--json');
    return json as { outcome: string; steps: { step: number; state: string; taskId: string; serverId: string }[] };
  };
  /** Waits for a new proposal, and returns it. */
  const next = async (before: number) => {
    await at.until(`proposal ${before + 1}`, (events) => proposals(events).length > before);
    const proposal = proposals(at.events).at(-1);
    const plan = proposal?.data.plan;
    if (plan === null || plan === undefined) throw new Error('no proposal');
    return plan;
  };
  const allEnded = (tasks: readonly string[]) => (events: readonly LogEvent[]) =>
    tasks.every((task) => ended(events).has(task));

  // Nothing moves before somebody answers.
  const first = await next(0);
  expect(first.steps.length).toBeGreaterThan(2);
  const { json: status } = await cli('status', '--json');
  expect(status.aggregates[0].waitsFor).toContain(`kronos approve ${first.id}`);
  expect(started(at.events)).toEqual([]);

  // Approved in part: the named steps and their dependencies move, nothing else.
  const chosen = first.steps.find((step) => step.dependsOn.length === 0);
  if (chosen === undefined) throw new Error('no step stands alone');
  expect(await cli('approve', first.id, '--step', String(chosen.step), '--json')).toMatchObject({
    status: 0,
    json: { effect: 'done' },
  });
  await at.until('the approved move', allEnded([chosen.taskId]));
  expect(started(at.events)).toEqual([chosen.taskId]);
  expect((await cli('approve', first.id, '--json')).status).not.toBe(0);
  const partly = await outcome(first.id);
  expect(partly.outcome).toBe('done');
  expect(partly.steps.filter(({ state }) => state === 'letGo')).toHaveLength(first.steps.length - 1);

  // Rejected: none of its steps moves, and the next cycle makes a new plan.
  const second = await next(1);
  expect((await cli('reject', second.id, '-m', 'not today', '--json')).json).toMatchObject({ effect: 'done' });
  expect((await outcome(second.id)).outcome).toBe('rejected');

  // Unanswered: it expires, and a later answer is refused.
  const third = await next(2);
  expect(third.id).not.toBe(second.id);
  const fourth = await next(3);
  expect((await outcome(third.id)).outcome).toBe('expired');
  const late = await kronos(['approve', third.id], { env: { KRONOS_CONFIG: at.stage.configFile }, nowMs: Date.now() });
  expect(late.status).toBeGreaterThan(0);
  expect(started(at.events)).toEqual([chosen.taskId]);

  // Approved as a whole. One VM was locked after the plan was made: its pre-flight check skips the move.
  const locked = fourth.steps.find((step) => step.dependsOn.length === 0 && step.serverId !== chosen.serverId);
  if (locked === undefined) throw new Error('no step stands alone');
  const act = { act: 'lockServer', server: locked.serverId };
  expect((await fetch(`${at.stage.cloudUrl}/acts`, { method: 'POST', body: JSON.stringify(act) })).status).toBe(200);
  expect((await cli('approve', fourth.id, '--json')).json).toMatchObject({ effect: 'done' });
  const tasks = fourth.steps.map(({ taskId }) => taskId);
  await at.until('all moves of the plan', allEnded(tasks));
  const refused = at.events.find((e) => e.type === 'migration.failed' && e.data.taskId === locked.taskId);
  expect(refused).toMatchObject({ data: { errorType: 'PreFlightError', started: false, retryPending: false } });
  const migrations: readonly MigrationRecord[] = await at.migrations();
  expect(migrations.filter(({ server }) => server === locked.serverId)).toEqual([]);
  const moved = at.events.filter((e) => e.type === 'migration.completed').length;
  expect(moved).toBeGreaterThan(1);
  expect(migrations.filter(({ status }) => status === 'completed')).toHaveLength(moved);
});
