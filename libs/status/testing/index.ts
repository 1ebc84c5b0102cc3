/** Facts for tests: an installation in which all is well, to which a test does one thing. */
import { serviceNames } from '@kronos/contracts';
import { type TestLog, testLog } from '@kronos/projections/testing';
import type { AggregateInput, Facts, Heartbeat, NewestSnapshot } from '../src/facts.ts';

const INTERVAL_SECONDS = 60;

export const heartbeat = (service: Heartbeat['service'], nowMs: number, more: Partial<Heartbeat> = {}): Heartbeat => ({
  service,
  instance: `${service}-1`,
  version: '1.0.0',
  state: 'running',
  failing: [],
  aggregates: ['gpu', 'cpu'],
  options: {},
  checkpoint: null,
  sinks: [],
  intervalSeconds: 10,
  timeMs: nowMs - 3000,
  storedAtMs: nowMs - 3000,
  ...more,
});

/** A policy that takes part and is balanced. */
export const wellPolicy: NewestSnapshot['policies'][number] = {
  policy: 'cpu',
  participates: true,
  reason: null,
  imbalance: 0.1,
  threshold: 0.2,
  detected: false,
  matchedHosts: 3,
  matchedServers: 9,
};

const newest = (nowMs: number, more: Partial<NewestSnapshot> = {}): NewestSnapshot => ({
  snapshotId: 'gpu-1',
  purpose: 'cycle',
  cycle: 1,
  intervalSeconds: INTERVAL_SECONDS,
  observedFrom: new Date(nowMs - 6000).toISOString(),
  timeMs: nowMs - 5000,
  storedAtMs: nowMs - 5000,
  hosts: 3,
  servers: 9,
  combined: 0.1,
  policies: [wellPolicy],
  outOfService: [],
  problems: [],
  ...more,
});

/** A log on which the aggregate `gpu` is decided and moves may run. */
export function runningLog(): TestLog {
  const log = testLog();
  log.configured({ dryRun: false, cooldownSeconds: 600 });
  log.decided();
  return log.pass(10);
}

/** All is well, except for what the test changes. */
export function wellFacts(
  log: TestLog = runningLog(),
  change: {
    readonly facts?: Partial<Facts>;
    readonly newest?: Partial<NewestSnapshot> | null;
    readonly input?: Partial<AggregateInput>;
    /** Instances instead of one of each service. */
    readonly heartbeats?: readonly Heartbeat[];
  } = {},
): Facts {
  const { nowMs } = log;
  return {
    nowMs,
    maxClockSkewMs: 5000,
    nats: { state: 'ok' },
    streams: [{ stream: 'KRONOS_LOG', messages: 10, bytes: 10, maxBytes: 100, discard: 'new' }],
    services: {
      known: true,
      heartbeats: change.heartbeats ?? serviceNames.map((service) => heartbeat(service, nowMs)),
    },
    aggregates: [
      {
        aggregate: 'gpu',
        state: log.state('gpu'),
        newest: change.newest === null ? null : newest(nowMs, change.newest),
        beforeMoves: null,
        undecidedSinceMs: null,
        lastDecision: null,
        ...change.input,
      },
    ],
    ...change.facts,
  };
}
