import { describe, expect, it } from 'vitest';
import { clockWatch, leastSkew, skewProblem } from './skew.ts';

const SERVER = 1_000_000;
const reading = (beforeMs: number, afterMs: number) => ({
  beforeMs: SERVER + beforeMs,
  serverMs: SERVER,
  afterMs: SERVER + afterMs,
});

describe('a reading of the server clock', () => {
  it('proves a clock that is ahead or behind', () => {
    expect(leastSkew(reading(6000, 6010))).toBe(6000);
    expect(leastSkew(reading(-6010, -6000))).toBe(-6000);
  });

  it('proves nothing that a slow answer explains', () => {
    expect(leastSkew(reading(-30_000, 10))).toBe(0);
    expect(leastSkew(reading(-5, 30_000))).toBe(0);
    expect(leastSkew(reading(0, 0))).toBe(0);
  });

  it('is a problem only beyond the limit, and says in which direction', () => {
    expect(skewProblem(5000, 5000)).toBeNull();
    expect(skewProblem(-5000, 5000)).toBeNull();
    expect(skewProblem(5100, 5000)).toContain('5.1 s ahead of');
    expect(skewProblem(-2_700_000, 5000)).toContain('2700.0 s behind');
  });
});

describe('the watch of the own clock', () => {
  function own() {
    let wall = SERVER;
    let mono = 50;
    const watch = clockWatch({ read: () => ({ wall, mono }) }, 5000);
    return {
      watch,
      pass(ms: number) {
        wall += ms;
        mono += ms;
      },
      set(ms: number) {
        wall += ms;
      },
    };
  }

  it('trusts no clock that was never compared', () => {
    const { watch } = own();
    expect(watch.skewMs()).toBeNull();
    expect(watch.problem()).toContain('not been compared');
  });

  it('names a wrong clock, and is content with a right one', () => {
    const { watch, pass } = own();
    watch.see(reading(-600_000, -599_990));
    expect(watch.problem()).toContain('600.0 s behind');
    pass(60_000);
    expect(watch.problem()).toContain('behind');
    watch.see(reading(-2, 3));
    expect(watch.problem()).toBeNull();
  });

  it('notices at once that the clock was set, without another reading', () => {
    const { watch, set, pass } = own();
    watch.see(reading(-2, 3));
    pass(3_600_000);
    expect(watch.problem()).toBeNull();
    set(2_700_000);
    expect(watch.problem()).toContain('2700.0 s ahead');
    set(-2_700_000);
    expect(watch.problem()).toBeNull();
  });

  it('keeps what a good reading showed when a slow one proves nothing', () => {
    const { watch } = own();
    watch.see(reading(8000, 8010));
    watch.see(reading(-30_000, 20));
    expect(watch.problem()).toContain('ahead');
    // A slow one that proves a difference counts.
    watch.see(reading(-60_000, -20_000));
    expect(watch.problem()).toContain('20.0 s behind');
  });
});
