import type { Clock } from '@kronos/clock';
import type { Regions } from '@kronos/connect';
import type { EventLog } from '@kronos/eventlog';
import type { LogState } from '@kronos/projections';
import type { Aside } from '../aside/aside.ts';
import type { WatchedStatus } from '../memory/alarms.ts';
import type { EventHistory } from '../memory/history.ts';
import type { NameKeeper } from './nameKeeper.ts';

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
