import type { EventLog, LogView } from '@kronos/eventlog';
import type { Identity } from '@kronos/openstack';
import type { Following } from '@kronos/operator';
import type { LogState } from '@kronos/projections';
import type { Logger } from '@kronos/telemetry';
import type { DrainAnswer } from './command.ts';

/** The dependencies of acting: `[console]`, Keystone, and a connection that may write commands. */
export type Acting = {
  readonly options: {
    readonly userDomainName: string;
    readonly projectName: string;
    readonly projectDomainName: string;
    readonly roles: readonly string[];
    /** Those who may skip unreadable events need one of these too. */
    readonly custodianRoles: readonly string[];
    /** Aggregates of `[cells] aggregates`. */
    readonly cells: readonly string[];
    readonly idleMs: number;
    readonly maxSessions: number;
    /** `[http] allowed_hosts` */
    readonly allowedHosts: readonly string[];
  };
  readonly identity: Identity;
  /** Connected as a NATS user of its own: the ledger's may not write commands. */
  readonly log: Pick<EventLog, 'append'>;
  /** Connected as the NATS user that may skip events; null: nobody skips them from the console. */
  readonly custody: Pick<EventLog, 'append'> | null;
};

export type ActingInput = {
  readonly acting: Acting | null;
  readonly log: Pick<EventLog, 'readClock'>;
  readonly view: Pick<LogView<LogState>, 'at' | 'refresh' | 'upTo'>;
  readonly following: Following;
  readonly scope: readonly string[];
  readonly version: string;
  readonly maxSkewMs: number;
  readonly clock: () => number;
  readonly monotonic: () => number;
  readonly logger: Logger;
  /** The preview of a drain. @throws ApiError for a host that is not there */
  readonly drain: (aggregate: string, host: string) => Promise<DrainAnswer>;
};
