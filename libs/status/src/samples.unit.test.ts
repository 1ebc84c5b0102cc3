import { describe, expect, it } from 'vitest';
import { runningLog } from '../testing/index.ts';
import { mixedSinceMs } from './samples.ts';

/** A log with two plans of one move each; the moves end 100 s after their releases, and the plans with them. */
function movedTwice(apartSeconds: number) {
  const log = runningLog();
  const move = (serverId: string) => {
    const releasedMs = log.nowMs;
    const plan = log.released([{ serverId, from: 'h1', to: 'h2' }]);
    log.dispatched(plan, 1);
    log.started({ task: `${plan}-s1` });
    log.pass(100).completed({ task: `${plan}-s1` });
    return { releasedMs, endedMs: log.nowMs };
  };
  const first = move('a');
  log.pass(apartSeconds);
  return { log, first, second: move('b') };
}

const seenAt = (log: ReturnType<typeof runningLog>, timeMs: number) =>
  mixedSinceMs(log.state('gpu'), { timeMs, intervalSeconds: 60 });

describe('the newest snapshot mixes samples', () => {
  it('for five minutes after a move, of the moves that were no further apart than a snapshot without them', () => {
    const apart = movedTwice(600);
    expect(seenAt(apart.log, apart.second.endedMs + 300_000)).toBe(apart.second.releasedMs);
    expect(seenAt(apart.log, apart.second.endedMs + 301_000)).toBeNull();
    const close = movedTwice(200);
    expect(seenAt(close.log, close.second.endedMs + 60_000)).toBe(close.first.releasedMs);
  });

  it('of an open plan since its first move ended, and not when it is older', () => {
    const log = runningLog();
    expect(seenAt(log, log.nowMs)).toBeNull();
    const plan = log.released(['a', 'b'].map((serverId) => ({ serverId, from: 'h1', to: 'h2' })));
    log.dispatched(plan, 2);
    log.started({ task: `${plan}-s1` });
    log.pass(100).completed({ task: `${plan}-s1` });
    const endedMs = log.nowMs;
    expect(seenAt(log, endedMs + 60_000)).toBe(endedMs);
    expect(seenAt(log, endedMs - 1000)).toBeNull();
  });
});
