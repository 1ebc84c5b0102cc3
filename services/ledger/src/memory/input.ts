import type { Verification } from '@kronos/checkpoints';
import type { Clock } from '@kronos/clock';
import type { SinkOptions } from '@kronos/config';
import type { Actor } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import type { HttpServer, Instruments, Logger } from '@kronos/telemetry';
import type { Tracer } from '@opentelemetry/api';
import type { ArchiveOptions } from '../archive/archive.ts';

export type LedgerOptions = {
  /** Aggregates of the configuration. */
  readonly scope: readonly string[];
  readonly checkpointIntervalSeconds: number;
  readonly checkpointEvents: number;
  readonly maxClockSkewSeconds: number;
  readonly console: boolean;
  /** The directory of the archive; null: none. */
  readonly archive: ArchiveOptions | null;
  /** Where notifications are sent. */
  readonly sinks: ReadonlyMap<string, SinkOptions>;
};

export type LedgerInput = {
  readonly log: EventLog;
  readonly options: LedgerOptions;
  readonly by: Actor;
  readonly logger: Logger;
  readonly metrics: Instruments;
  readonly onScrape: (fn: () => void) => void;
  readonly http: HttpServer;
  readonly tracer: Tracer;
  /** Aborted when the service has to stop. */
  readonly stopping: AbortSignal;
  readonly clock: Clock;
  /** The own clock beside the NATS server's: its problem (null: none), and the difference in seconds. */
  readonly ownClock: { readonly problem: () => string | null; readonly skewSeconds: () => number };
  /** The log is folded, and the checkpoint that the fold started from is being verified. */
  readonly onVerification?: (verification: Verification) => void;
};
