import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deadlineMs, overdue, startWatch, type Watch, watched } from './deadline.ts';
import { defaultTaskOptions as options } from './options.ts';

const MINUTE = 60_000;
const GIB = 1024 ** 3;
const small = { ramMb: 2048, diskGb: 0 };

const progress = (remaining: number, total = 8 * GIB) => ({
  memoryTotalBytes: total,
  memoryProcessedBytes: total - remaining,
  memoryRemainingBytes: remaining,
  diskTotalBytes: 0,
  diskProcessedBytes: 0,
  diskRemainingBytes: 0,
});
const after = (...readings: readonly (readonly [at: number, remaining: number])[]): Watch =>
  readings.reduce((watch, [at, remaining]) => watched(watch, progress(remaining), at), startWatch(0));

describe('the deadline', () => {
  it.each([
    [{ ramMb: 2048, diskGb: 0 }, 10 * MINUTE],
    [{ ramMb: 16 * 1024, diskGb: 0 }, 16 * MINUTE],
    [{ ramMb: 16 * 1024, diskGb: 80 }, 96 * MINUTE],
  ])('grows with memory and local disk: %j', (size, expected) => {
    expect(deadlineMs(size, startWatch(0), options)).toBe(expected);
  });

  it('is twice what the bytes need at the pace seen, where that is more', () => {
    // An eighth in 3 minutes: 24 minutes for all, 48 minutes allowed.
    expect(deadlineMs(small, after([3 * MINUTE, 7 * GIB]), options)).toBe(48 * MINUTE);
  });

  it('counts no bytes of a disk of which Nova says nothing', () => {
    const reading = { ...progress(7 * GIB), diskTotalBytes: null, diskProcessedBytes: null, diskRemainingBytes: null };
    const watch = watched(startWatch(0), reading, 3 * MINUTE);
    expect(watch).toMatchObject({ totalBytes: 8 * GIB, best: { remainingBytes: 7 * GIB } });
  });

  it('does not recede while nothing new is copied', () => {
    const once = after([3 * MINUTE, 7 * GIB]);
    const later = after([3 * MINUTE, 7 * GIB], [30 * MINUTE, 7 * GIB], [40 * MINUTE, 8 * GIB]);
    expect(deadlineMs(small, later, options)).toBe(deadlineMs(small, once, options));
  });

  it('by pace ends at the hard limit; by size it may be longer', () => {
    expect(deadlineMs(small, after([60 * MINUTE, 8 * GIB - 1]), options)).toBe(options.hardTimeoutMs);
    const huge = { ramMb: 1024 * 1024, diskGb: 0 };
    expect(deadlineMs(huge, startWatch(0), options)).toBe(1024 * MINUTE);
  });

  describe('by former moves', () => {
    const usual = (highMs: number) => ({ expectedMs: 1, interval: { lowMs: 1, highMs } });

    it('is twice what nearly all of them needed, where that is more', () => {
      expect(deadlineMs(small, startWatch(0), options, usual(20 * MINUTE))).toBe(40 * MINUTE);
      const late = { watch: startWatch(0), since: 0 };
      expect(overdue({ ...late, usual: usual(20 * MINUTE) }, small, 40 * MINUTE - 1, options)).toBeNull();
      expect(overdue({ ...late, usual: usual(20 * MINUTE) }, small, 40 * MINUTE, options)).toMatchObject({
        limitMs: 40 * MINUTE,
      });
    });

    it('ends at the hard limit', () => {
      expect(deadlineMs(small, startWatch(0), options, usual(options.hardTimeoutMs))).toBe(options.hardTimeoutMs);
    });

    it('is that of the size where they were faster, where too few are known, and where none is', () => {
      for (const known of [usual(MINUTE), { expectedMs: 99 * MINUTE, interval: null }, null])
        expect(deadlineMs(small, startWatch(0), options, known)).toBe(10 * MINUTE);
    });
  });

  it('is never shorter than the size gives, whatever is reported', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(1e8), fc.nat(2 ** 40))), (readings) => {
        expect(deadlineMs(small, after(...readings), options)).toBeGreaterThanOrEqual(10 * MINUTE);
      }),
    );
  });
});

describe('overdue', () => {
  it('waits for the queue by its own limit, from the first look', () => {
    expect(overdue({ watch: null, since: 100 }, small, 100 + 30 * MINUTE - 1, options)).toBeNull();
    expect(overdue({ watch: null, since: 100 }, small, 100 + 30 * MINUTE, options)).toMatchObject({ cause: 'queue' });
  });

  it('sees no progress only where bytes are counted', () => {
    expect(overdue({ watch: startWatch(0), since: 0 }, { ramMb: 65_536, diskGb: 0 }, 30 * MINUTE, options)).toBeNull();
    const stuck = after([MINUTE, 6 * GIB], [20 * MINUTE, 6 * GIB]);
    expect(overdue({ watch: stuck, since: 0 }, { ramMb: 65_536, diskGb: 0 }, 30 * MINUTE, options)).toMatchObject({
      cause: 'no-progress',
      text: 'it made no progress for 600 s, 6.00 GiB remaining',
    });
  });

  it('counts disk as well as memory', () => {
    const both = (memory: number, disk: number) => ({
      ...progress(memory),
      diskTotalBytes: GIB,
      diskRemainingBytes: disk,
    });
    let watch = watched(startWatch(0), both(0, GIB), MINUTE);
    watch = watched(watch, both(0, GIB / 2), 9 * MINUTE);
    expect(overdue({ watch, since: 0 }, { ramMb: 65_536, diskGb: 0 }, 18 * MINUTE, options)).toBeNull();
  });

  it('waits up to the hard limit where told to, progress or not', () => {
    const wait = { ...options, onDeadline: 'wait' as const };
    const stuck = after([MINUTE, 6 * GIB]);
    expect(overdue({ watch: stuck, since: 0 }, small, options.hardTimeoutMs - 1, wait)).toBeNull();
    expect(overdue({ watch: stuck, since: 0 }, small, options.hardTimeoutMs, wait)).toMatchObject({
      cause: 'hard-timeout',
    });
  });
});
