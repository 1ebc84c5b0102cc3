import { describe, expect, it, vi } from 'vitest';
import { Queue } from './queue.ts';

const over = { value: undefined, done: true };

describe('a queue', () => {
  it('hands out what was pushed, in order, and counts what waits', async () => {
    const queue = new Queue<number>();
    expect(queue.length).toBe(0);
    for (const item of [1, 2, 3]) queue.push(item);
    expect(queue.length).toBe(3);
    expect(await queue.next()).toEqual({ value: 1, done: false });
    expect(queue.length).toBe(2);
    expect([await queue.next(), await queue.next()]).toEqual([
      { value: 2, done: false },
      { value: 3, done: false },
    ]);
    expect(queue.length).toBe(0);
  });

  it('hands an item to the one who waits longest, and keeps none of it', async () => {
    const queue = new Queue<number>();
    const [first, second] = [queue.next(), queue.next()];
    queue.push(1);
    queue.push(2);
    expect([await first, await second]).toEqual([
      { value: 1, done: false },
      { value: 2, done: false },
    ]);
    expect(queue.length).toBe(0);
  });

  it('hands out thousands in order while more come', async () => {
    const queue = new Queue<number>();
    const taken: number[] = [];
    for (let i = 0; i < 5000; i += 2) {
      queue.push(i);
      queue.push(i + 1);
      taken.push((await queue.next()).value as number);
      expect(queue.length).toBe(i / 2 + 1);
    }
    queue.end();
    for await (const item of queue) taken.push(item);
    expect(taken).toEqual(Array.from({ length: 5000 }, (_, i) => i));
  });

  it('tells of each item when it is taken, not when it is pushed', async () => {
    const take = vi.fn();
    const queue = new Queue<number>({ take });
    queue.push(1);
    expect(take).not.toHaveBeenCalled();
    await queue.next();
    expect(take).toHaveBeenCalledTimes(1);
    const waiting = queue.next();
    expect(take).toHaveBeenCalledTimes(1);
    queue.push(2);
    expect(take).toHaveBeenCalledTimes(2);
    await waiting;
  });
});

describe('the end of a queue', () => {
  it('comes after what is in it, and takes nothing more', async () => {
    const ended = vi.fn();
    const queue = new Queue<number>({ return: ended });
    queue.push(1);
    queue.end();
    queue.push(2);
    expect(await queue.next()).toEqual({ value: 1, done: false });
    expect(ended).not.toHaveBeenCalled();
    expect(await queue.next()).toEqual(over);
    expect(ended).toHaveBeenCalledTimes(1);
  });

  it('comes at once to those who wait', async () => {
    const queue = new Queue<number>();
    const waiting = queue.next();
    queue.end();
    queue.push(1);
    expect(await waiting).toEqual(over);
    expect(queue.length).toBe(0);
  });

  it('with an error throws it once, after what is in it', async () => {
    const queue = new Queue<number>();
    queue.push(1);
    queue.end(new Error('the stream is gone'));
    expect(await queue.next()).toEqual({ value: 1, done: false });
    await expect(queue.next()).rejects.toThrow('the stream is gone');
    expect(await queue.next()).toEqual(over);
  });

  it('with an error throws it to one who waits', async () => {
    const queue = new Queue<number>();
    const [first, second] = [queue.next(), queue.next()];
    queue.end(new Error('the stream is gone'));
    await expect(first).rejects.toThrow('the stream is gone');
    expect(await second).toEqual(over);
  });

  it('is the first one: an error after it is none', async () => {
    const queue = new Queue<number>();
    queue.end();
    queue.end(new Error('late'));
    expect(await queue.next()).toEqual(over);
  });
});

describe('an iteration that is left', () => {
  it('drops what is in the queue and its error, and tells of it once', async () => {
    const ended = vi.fn();
    const queue = new Queue<number>({ return: ended });
    for (const item of [1, 2, 3]) queue.push(item);
    queue.end(new Error('dropped'));
    for await (const item of queue) {
      expect(item).toBe(1);
      break;
    }
    expect(ended).toHaveBeenCalledTimes(1);
    expect(queue.length).toBe(0);
    expect(await queue.next()).toEqual(over);
  });

  it('ends what waits, and takes nothing more', async () => {
    const queue = new Queue<number>();
    const waiting = queue.next();
    expect(await queue.return()).toEqual(over);
    queue.push(1);
    expect([await waiting, queue.length]).toEqual([over, 0]);
  });
});
