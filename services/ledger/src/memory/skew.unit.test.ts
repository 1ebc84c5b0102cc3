import type { StoredEvent } from '@kronos/contracts';
import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { skewWatch } from './skew.ts';

const NOW = 1_800_000_000_000;

/** An event of the planner whose own time differs from the server's stamp by this many seconds. */
function event(seconds: number, storedAt = NOW): StoredEvent {
  const log = testLog('gpu', storedAt + seconds * 1000);
  log.decided();
  const [stored] = log.events;
  if (stored === undefined) throw new Error('no event');
  return { ...stored, storedAt };
}

describe('the watch of clocks', () => {
  it('names a writer whose time differs too much, in either direction, once', () => {
    const watch = skewWatch(5);
    expect(watch.see(event(6), NOW)).toEqual({ writer: 'planner planner-1', seconds: 6, atMs: NOW });
    expect(watch.see(event(7), NOW)).toBeNull();
    expect(watch.skewed(NOW)).toMatchObject([{ seconds: 7 }]);
    expect(watch.largest(NOW)).toBe(7);
    const slow = skewWatch(5);
    expect(slow.see(event(-3600), NOW)).toBeNull();
    expect(slow.see(event(-3600, NOW + 10_000), NOW)).toEqual({
      writer: 'planner planner-1',
      seconds: -3600,
      atMs: NOW + 10_000,
    });
    expect(slow.see(event(-3601, NOW + 11_000), NOW)).toBeNull();
    expect(slow.largest(NOW)).toBe(3601);
  });

  it('takes events that waited for NATS together for what they are', () => {
    const watch = skewWatch(5);
    watch.see(event(-0.1, NOW - 60_000), NOW);
    // Made 30, 22, 14 and 6 s before all of them got through.
    for (const late of [-30, -22, -14, -6]) expect(watch.see(event(late), NOW)).toBeNull();
    for (const late of [-14, -14]) expect(watch.see(event(late, NOW + 100), NOW)).toBeNull();
    expect(watch.skewed(NOW)).toEqual([]);
    expect(watch.largest(NOW)).toBe(0.1);
  });

  it('stays quiet below the limit', () => {
    const watch = skewWatch(5);
    expect(watch.see(event(4.9), NOW)).toBeNull();
    expect(watch.skewed(NOW)).toEqual([]);
    expect(watch.largest(NOW)).toBe(4.9);
  });

  it('forgives a writer whose next event is right, and names it again when it is wrong again', () => {
    const watch = skewWatch(5);
    watch.see(event(9), NOW);
    watch.see(event(0), NOW);
    expect(watch.skewed(NOW)).toEqual([]);
    expect(watch.see(event(9), NOW)).not.toBeNull();
  });

  it('forgets a writer that is silent for a quarter of an hour', () => {
    const watch = skewWatch(5);
    watch.see(event(9), NOW);
    expect(watch.skewed(NOW + 15 * 60_000)).toHaveLength(1);
    expect(watch.skewed(NOW + 15 * 60_000 + 1)).toEqual([]);
    expect(watch.largest(NOW + 15 * 60_000 + 1)).toBe(0);
  });

  it('does not judge by old events or by those that cannot be read', () => {
    const watch = skewWatch(5);
    expect(watch.see(event(9, NOW - 16 * 60_000), NOW)).toBeNull();
    const log = testLog();
    log.unreadable();
    for (const stored of log.events) expect(watch.see({ ...stored, storedAt: NOW }, NOW)).toBeNull();
    expect(watch.largest(NOW)).toBe(0);
  });
});
