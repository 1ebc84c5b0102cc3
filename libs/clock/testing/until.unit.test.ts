import { expect, it } from 'vitest';
import { elapse, until } from './index.ts';

it('returns the first answer, however often it has to ask', async () => {
  const answers = [null, undefined, false, 0];
  expect(await until(() => answers.shift())).toBe(0);
  expect(answers).toEqual([]);
});

it('asks at least once, and says what did not come', async () => {
  expect(await until(async () => 'now', 0)).toBe('now');
  await expect(until(() => false, 0, 'the moon')).rejects.toThrow('waited 0 ms for the moon');
  await expect(
    until(
      () => null,
      0,
      async () => 'a leader; there is none',
    ),
  ).rejects.toThrow('for a leader; there is none');
  await expect(until(() => undefined, 0)).rejects.toThrow('() => undefined');
});

it('does not ask again when asking fails', async () => {
  let asked = 0;
  const look = () => {
    asked += 1;
    throw new Error('no answer');
  };
  await expect(until(look)).rejects.toThrow('no answer');
  expect(asked).toBe(1);
});

it('a wait for a time takes it, and needs a reason', async () => {
  const from = performance.now();
  await elapse(20, 'this is the test of it');
  expect(performance.now() - from).toBeGreaterThan(19);
  await expect(elapse(1, '')).rejects.toThrow('needs a reason');
});
