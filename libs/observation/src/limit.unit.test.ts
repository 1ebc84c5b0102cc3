import { expect, test } from 'vitest';
import { createLimiter } from './limit.ts';

test('no more than the limit run at a time, all of them run, in the order given', async () => {
  const limit = createLimiter(3);
  let running = 0;
  let most = 0;
  const order: number[] = [];
  const jobs = Array.from({ length: 20 }, (_, i) =>
    limit(async () => {
      order.push(i);
      running += 1;
      most = Math.max(most, running);
      for (let turn = 0; turn < (i % 4) + 1; turn++) await Promise.resolve();
      running -= 1;
      return i;
    }),
  );
  expect(await Promise.all(jobs)).toEqual(Array.from({ length: 20 }, (_, i) => i));
  expect(most).toBe(3);
  expect(order).toEqual(Array.from({ length: 20 }, (_, i) => i));
});

test('a job that fails gives its place back, and its error to its caller', async () => {
  const limit = createLimiter(1);
  const failing = limit(() => Promise.reject(new Error('no')));
  const next = limit(() => Promise.resolve('yes'));
  await expect(failing).rejects.toThrow('no');
  expect(await next).toBe('yes');
  expect(await limit(() => Promise.resolve('again'))).toBe('again');
});
