import { describe, expect, it, vi } from 'vitest';
import { Channel } from './channel.ts';

const over = { value: undefined, done: true };

describe('a channel', () => {
  it('hands out what was pushed, in order, and counts what waits', async () => {
    const channel = new Channel<number>();
    expect(channel.length).toBe(0);
    for (const item of [1, 2, 3]) channel.push(item);
    expect(channel.length).toBe(3);
    expect(await channel.next()).toEqual({ value: 1, done: false });
    expect(channel.length).toBe(2);
    expect([await channel.next(), await channel.next()]).toEqual([
      { value: 2, done: false },
      { value: 3, done: false },
    ]);
    expect(channel.length).toBe(0);
  });

  it('hands an item to the one who waits longest, and keeps none of it', async () => {
    const channel = new Channel<number>();
    const [first, second] = [channel.next(), channel.next()];
    channel.push(1);
    channel.push(2);
    expect([await first, await second]).toEqual([
      { value: 1, done: false },
      { value: 2, done: false },
    ]);
    expect(channel.length).toBe(0);
  });

  it('hands out thousands in order while more come', async () => {
    const channel = new Channel<number>();
    const taken: number[] = [];
    for (let i = 0; i < 5000; i += 2) {
      channel.push(i);
      channel.push(i + 1);
      taken.push((await channel.next()).value as number);
      expect(channel.length).toBe(i / 2 + 1);
    }
    channel.end();
    for await (const item of channel) taken.push(item);
    expect(taken).toEqual(Array.from({ length: 5000 }, (_, i) => i));
  });

  it('tells of each item when it is taken, not when it is pushed', async () => {
    const take = vi.fn();
    const channel = new Channel<number>({ take });
    channel.push(1);
    expect(take).not.toHaveBeenCalled();
    await channel.next();
    expect(take).toHaveBeenCalledTimes(1);
    const waiting = channel.next();
    expect(take).toHaveBeenCalledTimes(1);
    channel.push(2);
    expect(take).toHaveBeenCalledTimes(2);
    await waiting;
  });
});

describe('the end of a channel', () => {
  it('comes after what is in it, and takes nothing more', async () => {
    const ended = vi.fn();
    const channel = new Channel<number>({ return: ended });
    channel.push(1);
    channel.end();
    channel.push(2);
    expect(await channel.next()).toEqual({ value: 1, done: false });
    expect(ended).not.toHaveBeenCalled();
    expect(await channel.next()).toEqual(over);
    expect(ended).toHaveBeenCalledTimes(1);
  });

  it('comes at once to those who wait', async () => {
    const channel = new Channel<number>();
    const waiting = channel.next();
    channel.end();
    channel.push(1);
    expect(await waiting).toEqual(over);
    expect(channel.length).toBe(0);
  });

  it('with an error throws it once, after what is in it', async () => {
    const channel = new Channel<number>();
    channel.push(1);
    channel.end(new Error('the stream is gone'));
    expect(await channel.next()).toEqual({ value: 1, done: false });
    await expect(channel.next()).rejects.toThrow('the stream is gone');
    expect(await channel.next()).toEqual(over);
  });

  it('with an error throws it to one who waits', async () => {
    const channel = new Channel<number>();
    const [first, second] = [channel.next(), channel.next()];
    channel.end(new Error('the stream is gone'));
    await expect(first).rejects.toThrow('the stream is gone');
    expect(await second).toEqual(over);
  });

  it('is the first one: an error after it is none', async () => {
    const channel = new Channel<number>();
    channel.end();
    channel.end(new Error('late'));
    expect(await channel.next()).toEqual(over);
  });
});

describe('an iteration that is left', () => {
  it('drops what is in the channel and its error, and tells of it once', async () => {
    const ended = vi.fn();
    const channel = new Channel<number>({ return: ended });
    for (const item of [1, 2, 3]) channel.push(item);
    channel.end(new Error('dropped'));
    for await (const item of channel) {
      expect(item).toBe(1);
      break;
    }
    expect(ended).toHaveBeenCalledTimes(1);
    expect(channel.length).toBe(0);
    expect(await channel.next()).toEqual(over);
  });

  it('ends what waits, and takes nothing more', async () => {
    const channel = new Channel<number>();
    const waiting = channel.next();
    expect(await channel.return()).toEqual(over);
    channel.push(1);
    expect([await waiting, channel.length]).toEqual([over, 0]);
  });
});
