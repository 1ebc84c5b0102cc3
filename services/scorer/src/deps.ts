import type { SnapshotMark, StoredSnapshot } from '@kronos/checkpoints';
import type { Clock } from '@kronos/clock';
import type { CallInProgress } from '@kronos/connect';
import type { Actor, Policy } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import type {
  CellReaderDeps,
  CellsSettings,
  EndedMigrations,
  HistoryReader,
  ReadOptions,
  ServerSource,
} from '@kronos/observation';
import type { Neutron, Nova, Placement } from '@kronos/openstack';
import type { Prometheus } from '@kronos/prometheus';
import type { Instruments, Logger } from '@kronos/telemetry';
import type { Tracer } from '@opentelemetry/api';
import type { Seen } from './seen.ts';

export interface ScorerDeps {
  readonly log: Pick<EventLog, 'putSnapshot' | 'getSnapshot'>;
  /** The log that a snapshot states, by the newest snapshot before it. Absent: snapshots state none. */
  readonly logMark?: (before: StoredSnapshot | null) => Promise<SnapshotMark>;
  readonly nova: Nova;
  /** The source of the servers; absent: every server is read each time. */
  readonly servers?: ServerSource;
  readonly placement: Placement;
  readonly neutron: Neutron;
  /** Null in the rules-only mode. */
  readonly prometheus: Prometheus | null;
  /** Null where no aggregate has a forecast. */
  readonly history?: HistoryReader | null;
  /** Null where no aggregate waits for moves of others. */
  readonly ended?: EndedMigrations | null;
  readonly seen: Seen;
  /** The calls to OpenStack and Prometheus that are under way. Absent: not known. */
  readonly calls?: () => readonly CallInProgress[];
  readonly settings: ScorerSettings;
  readonly by: Actor;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly tracer: Tracer;
  readonly metrics: Instruments;
}

export interface ScorerSettings {
  /** All aggregates in scope, the pool of unassigned hosts by its name on the wire. */
  readonly scope: readonly string[];
  /** The policies of an aggregate; one list for all aggregates that share a file. */
  readonly policiesOf: (aggregate: string) => readonly Policy[];
  /** `balance` of an aggregate. */
  readonly balances: (aggregate: string) => boolean;
  /** `forecast` of an aggregate. */
  readonly forecasts: (aggregate: string) => boolean;
  readonly intervalMs: number;
  readonly stalenessMs: number;
  readonly queryDeadlineMs: number;
  /** Calls to OpenStack, and queries of Prometheus, at a time. */
  readonly concurrency: number;
  readonly observe: ReadOptions;
  /** NUMA cells of hosts, from a file; null: from the exporter. */
  readonly hostCells: CellReaderDeps['file'];
  /** Metrics of each host, too. */
  readonly hostMetrics: boolean;
  readonly cells: CellsSettings;
}
