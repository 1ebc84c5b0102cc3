import { serviceNames } from '@kronos/contracts';
import { type AggregateStatus, aggregateStatus } from './aggregate.ts';
import type { Facts, Heartbeat, StreamFacts } from './facts.ts';
import { type Alarm, judgeFacts } from './judge.ts';
import { isLate } from './serviceFindings.ts';

/** One instance of a service, as its newest heartbeat says. */
type ServiceStatus = Omit<Heartbeat, 'state'> & {
  /** `late`: its heartbeats have ceased. */
  readonly state: Heartbeat['state'] | 'late';
  readonly ready: boolean;
};

export type Status = {
  readonly timeMs: number;
  /** No alarm: nothing that somebody has to act on. */
  readonly well: boolean;
  /** Things to act on, and things to know. */
  readonly alarms: readonly Alarm[];
  readonly aggregates: readonly AggregateStatus[];
  readonly streams: readonly StreamFacts[];
  /** Null when their state is unknown. */
  readonly services: readonly ServiceStatus[] | null;
};

/** Everything that people are shown, from the facts alone. */
export function statusOf(facts: Facts): Status {
  const { nowMs, aggregates, streams, services } = facts;
  const alarms = judgeFacts(facts);
  return {
    timeMs: nowMs,
    well: alarms.every(({ severity }) => severity === 'info'),
    alarms,
    aggregates: aggregates.map((input) => aggregateStatus(input, nowMs)),
    streams,
    services: services.known
      ? services.heartbeats
          .map((one): ServiceStatus => {
            const late = one.state !== 'stopped' && isLate(one, nowMs);
            return {
              ...one,
              state: late ? 'late' : one.state,
              ready: !late && one.state === 'running' && one.failing.length === 0,
            };
          })
          .toSorted(
            (a, b) => serviceNames.indexOf(a.service) - serviceNames.indexOf(b.service) || b.storedAtMs - a.storedAtMs,
          )
      : null,
  };
}
