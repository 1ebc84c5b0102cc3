import type { StoredEvent } from '@kronos/contracts';
import { expect, it } from 'vitest';
import { sampleTask } from '../testing/sample.ts';
import { suspectedEvent } from './events.ts';
import { Trials, triesOf } from './trials.ts';

const never = new AbortController().signal;

it('one has the turn, and those that Nova is at work for come first', async () => {
  const trials = new Trials();
  const order: string[] = [];
  const enter = async (name: string, started: boolean): Promise<void> => {
    const leave = await trials.turn({ started }, never);
    order.push(`${name} enters`);
    await new Promise((resolve) => setImmediate(resolve));
    order.push(`${name} leaves`);
    leave?.();
    leave?.();
  };
  await Promise.all([enter('a', false), enter('b', false), enter('c', true)]);
  expect(order).toEqual(['a enters', 'a leaves', 'c enters', 'c leaves', 'b enters', 'b leaves']);
});

it('a caller that stopped waiting does not get the turn', async () => {
  const trials = new Trials();
  const leave = await trials.turn({ started: false }, never);
  const stop = new AbortController();
  const stopped = trials.turn({ started: false }, never, stop.signal);
  const other = trials.turn({ started: false }, never);
  stop.abort();
  expect(await stopped).toBeNull();
  leave?.();
  expect(await other).not.toBeNull();
  expect(await trials.turn({ started: false }, stop.signal)).toBeNull();
});

it('the newest word on the log about an attempt counts', async () => {
  const origin = { by: { service: 'executor', instance: 'a', version: '0' }, correlationId: 'p', nowMs: 0 } as const;
  const task = sampleTask();
  async function* log(): AsyncGenerator<StoredEvent> {
    let sequence = 0;
    for (const [attempt, tries] of [
      [1, 1],
      [1, 2],
      [2, 1],
      [1, 0],
      [1, 1],
    ] as const) {
      sequence += 1;
      const nowMs = sequence * 1000;
      const event = suspectedEvent({ ...task, attempt }, { ...origin, nowMs }, { deliveries: 6, trial: 1, tries });
      yield { sequence, storedAt: nowMs, event };
    }
  }
  expect(await triesOf(log(), task.taskId, 1)).toEqual({ tries: 1, atMs: 5000 });
  expect(await triesOf(log(), task.taskId, 2)).toEqual({ tries: 1, atMs: 3000 });
  expect(await triesOf(log(), task.taskId, 3)).toMatchObject({ tries: 0 });
});
