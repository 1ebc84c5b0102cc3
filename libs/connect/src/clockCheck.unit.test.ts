import { systemClock } from '@kronos/clock';
import { expect, it } from 'vitest';
import { checkClock } from './clockCheck.ts';

const by = { service: 'planner', instance: 'one:1', version: '1.0.0' } as const;
/** A check against a server whose clock is that much (ms) ahead of this one. */
async function against(aheadMs: number) {
  const readClock = async () => {
    const now = systemClock.now();
    return { beforeMs: now, serverMs: now + aheadMs, afterMs: now };
  };
  const problems: (string | null)[] = [];
  const measured: number[] = [];
  const check = await checkClock({
    log: { readClock },
    by,
    clock: systemClock,
    metrics: { clockSkew: { set: (seconds: number) => measured.push(seconds) } },
    maxSkewMs: 5000,
    onProblem: (problem) => problems.push(problem),
  });
  check.stop();
  return { check, problems, measured };
}

it.each([30_000, -30_000])('a clock that differs by %d ms is not ready, and its difference is measured', async (ms) => {
  const { check, problems, measured } = await against(ms);
  expect(check.check()).toMatchObject({ ok: false });
  expect(check.skewSeconds()).toBeCloseTo(30, 0);
  expect(measured).toEqual([expect.closeTo(30, 0)]);
  expect(problems).toEqual([expect.stringMatching(/30\.0 s (behind|ahead of) the NATS server's/)]);
});

it('a clock that is right is ready, and measured too', async () => {
  const { check, problems } = await against(0);
  expect(check.check()).toEqual({ ok: true });
  expect(check.skewSeconds()).toBeCloseTo(0, 0);
  expect(problems).toEqual([]);
});
