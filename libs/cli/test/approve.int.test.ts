import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliWorld, openCliWorld } from './world.ts';

describe('an answer without an id', () => {
  let world: CliWorld;
  let plan = '';
  beforeAll(async () => {
    // One plan of `general` waits at the end. Commands are judged by the server's time: it is now there, too.
    const startMs = Math.floor(Date.now() / 60_000) * 60_000;
    world = await openCliWorld({ seed: 4, cycles: 1, commands: 0, startMs });
    const plans = JSON.parse((await world.kronos('plans --since all -a general -o json')).out) as { id: string }[];
    plan = plans.at(-1)?.id ?? '';
  });
  afterAll(() => world?.close());

  it('requires the id where nobody can answer, and names it', async () => {
    for (const line of ['approve', 'approve --json']) {
      const { status, out, err } = await world.kronos(line);
      expect([status, out]).toEqual([2, '']);
      expect(err).toContain(`kronos approve ${plan} releases it`);
    }
  });

  it('shows the plan and releases nothing without a yes', async () => {
    for (const answer of ['', 'n', 'no', 'what?']) {
      const { status, out, err } = await world.kronos('approve', { answer });
      expect(status).toBe(1);
      expect(out).toContain(`${plan} of general: waits for approval`);
      expect(err).toBe('Release this plan? [y/N] ');
      expect(out).toContain('Nothing was released.');
    }
    expect((await world.kronos('tasks -a general')).out).toBe(
      'No task is in flight. kronos tasks --ended lists those of the last day.\n',
    );
  });

  it('is the same for reject', async () => {
    const { status, out, err } = await world.kronos('reject --json');
    expect([status, out]).toEqual([2, '']);
    expect(err).toContain('reject without a plan id needs a terminal');
    expect(err).toContain(`kronos reject ${plan} rejects it`);
    const refused = await world.kronos('reject', { answer: 'n' });
    expect([refused.status, refused.err]).toEqual([1, 'Reject this plan? [y/N] ']);
    expect(refused.out).toContain(`${plan} of general: waits for approval`);
    expect(refused.out).toContain('Nothing was rejected.');
  });

  it('releases the steps that were named, after a yes', async () => {
    const { status, out, err } = await world.kronos('approve --step 1', { answer: 'y' });
    expect(err).toBe('Release step 1 of this plan? [y/N] ');
    expect(status).toBe(0);
    expect(out).toContain('general: approved: 1 task released');
    const tasks = JSON.parse((await world.kronos('tasks -a general -o json')).out) as object[];
    expect(tasks).toEqual([expect.objectContaining({ planId: plan, status: 'waiting' })]);
  });

  it('says when no plan waits', async () => {
    const { status, err } = await world.kronos('approve', { answer: 'y' });
    expect([status, err]).toEqual([2, expect.stringContaining('no plan waits for approval')]);
  });
});
