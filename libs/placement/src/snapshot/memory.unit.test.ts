import { describe, expect, it } from 'vitest';
import { memoryOf } from '../../testing/index.ts';
import { decisionMs, emptyMemory, memoryText } from './memory.ts';

describe('the moment of a decision', () => {
  const time = '2026-01-05T00:01:00.000Z';

  it('is the time of its snapshot', () => {
    expect(decisionMs({ time }, { lastDecidedMs: null })).toBe(Date.parse(time));
    expect(decisionMs({ time }, { lastDecidedMs: Date.parse('2026-01-05T00:00:00.000Z') })).toBe(Date.parse(time));
  });

  it('is never before the snapshot of the last decision', () => {
    const lastDecidedMs = Date.parse('2026-01-05T00:01:00.500Z');
    expect(decisionMs({ time }, { lastDecidedMs })).toBe(lastDecidedMs);
  });
});

it('the form of digests has times as texts, and every fact of the memory', () => {
  const text = {
    ...{ paused: { at: '2026-01-05T00:00:01.000Z', by: 'ada' }, unreadable: null },
    lastDecidedTime: '2026-01-05T00:00:02.000Z',
    lastRelease: { planId: 'p1', at: '2026-01-05T00:00:03.000Z' },
    lastRefusal: { planId: 'p2', at: '2026-01-05T00:00:04.000Z', how: 'rejected' },
    waitingPlan: { planId: 'p3', proposedAt: '2026-01-05T00:00:05.000Z', approvalTtlSeconds: 900 },
    lastMoveEndAt: '2026-01-05T00:00:06.000Z',
    releases: { v1: ['2026-01-05T00:00:07.000Z'] },
    quarantines: { v2: [{ cause: 'operator', at: '2026-01-05T00:00:08.000Z', errorType: null, seconds: -1 }] },
    hostFailures: { h1: ['2026-01-05T00:00:09.000Z'] },
    refusals: [
      { serverId: 'v3', host: 'h2', at: '2026-01-05T00:00:10.000Z', text: 'no valid host', shape: 's', mark: 'm' },
    ],
    ownMoves: { v4: { from: 'h1', to: 'h2', at: '2026-01-05T00:00:11.000Z', migrationId: 7 } },
    inFlight: [
      {
        ...{ taskId: 'p1-s1', serverId: 'v5', from: 'h1', destination: 'h3', resources: { VCPU: 1 } },
        ...{ weights: {}, ramMb: 1024, startedAt: '2026-01-05T00:00:12.000Z', cell: true },
      },
    ],
    draining: ['h4'],
    copyBytesPerSecond: 1e9,
    movePaces: { others: 2000, pairs: { h1: { h2: 1000 } } },
    waits: {
      open: { since: '2026-01-05T00:00:13.000Z', until: '2026-01-05T00:00:14.000Z', plannedMs: 5 },
      days: [{ day: 20_458, savedMs: 6 }],
    },
    noise: { cpu: 0.01 },
    sustained: { cpu: 2 },
  };
  const memory = { ...emptyMemory, ...memoryOf(text) };
  expect(JSON.stringify(memory)).not.toMatch(/\d{4}-\d\d-\d\dT/);
  expect(memoryText(memory)).toEqual(text);
});
