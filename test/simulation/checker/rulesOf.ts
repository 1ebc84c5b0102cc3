import type { Cloud } from '@kronos/simcloud';
import type { Drawn, Setting } from '../options.ts';
import { openingsOf } from '../windows.ts';
import type { Rules } from './book.ts';

/** The rules of a run, from what its seed has drawn. */
export function rulesOf(drawn: Drawn, { windows }: Setting, cloud: Cloud): Rules {
  return {
    maxConcurrentMigrations: drawn.maxConcurrent,
    maxOutboundPerHost: drawn.maxOutbound,
    maxInboundPerHost: drawn.maxInbound,
    maxConcurrentPerGroup: drawn.maxPerGroup,
    cooldownMs: drawn.cooldownSeconds * 1000,
    instanceCooldownMs: drawn.instanceCooldownSeconds * 1000,
    quarantineMs: drawn.quarantineSeconds * 1000,
    intervalMs: drawn.intervalSeconds * 1000,
    // From time to time a slow planner tries a decision with more work, which may end late.
    decidedWithinMs: (drawn.decideIntervals > 0 ? 6 : 4) * drawn.intervalSeconds * 1000,
    settleMs: drawn.settleSeconds * 1000,
    approvalTtlMs: drawn.approval === 'manual' ? drawn.approvalTtlSeconds * 1000 : null,
    postWindowMs: 10_000,
    planTtlMs: drawn.planTtlSeconds * 1000,
    ackWaitMs: drawn.ackWaitSeconds * 1000,
    checkpointMs: drawn.checkpointSeconds * 1000,
    maxSkewMs: 5_000,
    openings: windows === null ? null : openingsOf(windows, (uuid) => cloud.servers.get(uuid)?.name ?? null),
    cellsKnown: drawn.numa === 'known',
  };
}
