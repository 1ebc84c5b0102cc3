import type { Clock } from '@kronos/clock';
import type { Regions } from '@kronos/connect';
import type { EventLog } from '@kronos/eventlog';
import type { LogState } from '@kronos/projections';
import type { Aside } from '../aside/aside.ts';
import type { WatchedStatus } from '../memory/alarms.ts';
import type { EventHistory } from '../memory/history.ts';
import type { Lookups } from './lookups.ts';
import type { NameKeeper } from './nameKeeper.ts';
import type { Reads } from './reads.ts';
import type { runbookReader } from './runbook.ts';
import type { ApiAnswer, Operation } from './schemas.ts';

export type ApiInput = {
  readonly state: () => LogState;
  readonly history: EventHistory;
  readonly log: EventLog;
  readonly aside: Aside;
  /** Names of hosts and VMs in the newest snapshots. */
  readonly names: Pick<NameKeeper, 'find' | 'named' | 'skylines'>;
  /** Aggregates of the configuration. */
  readonly scope: readonly string[];
  readonly version: string;
  readonly clock: () => number;
  readonly monotonic: () => number;
  readonly after: Clock['after'];
  /** The status of the installation. */
  readonly status: () => Promise<WatchedStatus>;
  /** Other installations. */
  readonly regions: Pick<Regions, 'read'>;
};

/** Runs an act, within a limit of concurrent ones. */
export type Costly = <T>(act: () => Promise<T>) => Promise<T>;

/** A request: the placeholders of its path, and its query. */
export type EndpointCall = { readonly params: Readonly<Record<string, string>>; readonly query: URLSearchParams };
export type Handlers = { readonly [O in Operation]: (asked: EndpointCall) => ApiAnswer<O> | Promise<ApiAnswer<O>> };

/** The shared context of the endpoints' handlers. */
export type ApiContext = {
  readonly input: ApiInput;
  readonly lookups: Lookups;
  readonly reads: Reads;
  readonly runbook: ReturnType<typeof runbookReader>;
  /** Limits of concurrent requests: that read from the log, that make a decision again, and that run a what-if. */
  readonly limits: { readonly reading: Costly; readonly explaining: Costly; readonly simulating: Costly };
};
