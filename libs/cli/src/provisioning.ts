import { type NamedLog, nameLog } from '@kronos/checkpoints';
import { type Config, storageLimits } from '@kronos/config';
import { scopeOf } from '@kronos/config/conf';
import type { EventLog } from '@kronos/eventlog';
import { kronosVersion } from '@kronos/telemetry/version';

/** Makes the streams, durables and buckets that a configuration needs; what is there already stays. */
export const provisionStreams = (log: EventLog, config: Config): ReturnType<EventLog['provision']> =>
  log.provision({
    limits: storageLimits(config),
    replicas: config.nats.replicas,
    aggregates: scopeOf(config),
    ackWaitSeconds: config.nats.ackWait,
    sinks: [...config.sinks.keys()],
  });

export type ProvisionNaming = {
  /** Who provisions: `user@host`, or the name of a command. */
  readonly by: string;
  readonly nowMs: number;
  readonly installationId: string;
  /** Accept the log as it is, with this reason. */
  readonly accepted?: { readonly comment: string | null };
};

/** Gives the log its installation id, if it has none. @throws what is wrong with the log: checkpoints or snapshots of another one */
export const nameInstallation = (log: EventLog, config: Config, naming: ProvisionNaming): Promise<NamedLog> =>
  nameLog(log, {
    aggregates: scopeOf(config),
    by: { service: 'provisioner', instance: naming.by, version: kronosVersion },
    nowMs: naming.nowMs,
    installationId: naming.installationId,
    newLog: naming.accepted !== undefined,
    comment: naming.accepted?.comment ?? null,
  });
