import { describe, expect, it } from 'vitest';
import { limit, sleepWith, systemClock, within } from './index.ts';

/** Timers that fire when the test says so. */
function timers() {
  const open = new Set<() => void>();
  const after = (_: number, act: () => void) => {
    open.add(act);
    return () => open.delete(act) as unknown as undefined;
  };
  const fire = () => {
    const acts = [...open];
    open.clear();
    for (const act of acts) act();
  };
  return { after, fire, open };
}

describe('sleep', () => {
  it('ends with its timer', async () => {
    const { after, fire } = timers();
    const slept = sleepWith(after)(10);
    fire();
    await expect(slept).resolves.toBeUndefined();
  });

  it('ends as soon as a signal aborts, and leaves no timer behind', async () => {
    const { after, open } = timers();
    const stop = new AbortController();
    const slept = sleepWith(after)(10, new AbortController().signal, stop.signal);
    stop.abort();
    await slept;
    expect(open.size).toBe(0);
  });

  it('does not begin when a signal has aborted', async () => {
    const { after, open } = timers();
    await sleepWith(after)(10, AbortSignal.abort());
    expect(open.size).toBe(0);
  });
});

describe('a limit', () => {
  it('aborts its signal when the time is over', () => {
    const { after, fire } = timers();
    const { signal } = limit({ after }, 10);
    fire();
    expect((signal.reason as Error).name).toBe('TimeoutError');
  });

  it('does nothing once it is cleared', () => {
    const { after, fire } = timers();
    const { signal, clear } = limit({ after }, 10);
    clear();
    fire();
    expect(signal.aborted).toBe(false);
  });
});

describe('within', () => {
  it('brings what came in time, and leaves no timer behind', async () => {
    const { after, open } = timers();
    await expect(within({ after }, Promise.resolve(7), 10, () => new Error('late'))).resolves.toBe(7);
    expect(open.size).toBe(0);
  });

  it('throws the error for what came late', async () => {
    const { after, fire } = timers();
    const waited = within({ after }, new Promise(() => undefined), 10, () => new Error('late'));
    fire();
    await expect(waited).rejects.toThrow('late');
  });
});

it('the clocks of the machine go on', async () => {
  const { wall, mono } = systemClock.read();
  // biome-ignore lint/plugin: it is what is tested
  await systemClock.sleep(1);
  expect(systemClock.monotonic()).toBeGreaterThan(mono);
  expect(systemClock.now()).toBeGreaterThanOrEqual(wall);
});
