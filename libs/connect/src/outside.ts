import { type Clock, systemClock } from '@kronos/clock';
import type { Config } from '@kronos/config';
import type { Prometheus } from '@kronos/prometheus';
import type { Instruments, Logger } from '@kronos/telemetry';
import type { ReportPace } from './heartbeat.ts';
import type { Instrumentation, ServiceLog } from './instrumented.ts';
import { connectLog } from './nats.ts';
import { openNotifications } from './notifications.ts';
import { type OpenStackCloud, openCloud } from './openstack.ts';
import { openPrometheus } from './prometheus.ts';

/** The outside of a service: its clock and its connections. */
export type Outside = {
  readonly clock: Clock;
  readonly connectLog: (
    config: Config,
    name: string,
    logger: Logger,
    instrumentation: Instrumentation,
  ) => Promise<ServiceLog>;
  readonly openCloud: (config: Config, metrics: Instruments) => OpenStackCloud;
  readonly openPrometheus: (config: Config) => Prometheus | null;
  readonly openNotifications: typeof openNotifications;
  /** Interval of heartbeats. Default: the usual interval. */
  readonly pace?: ReportPace;
};

/** The machine's clock, and real connections. */
export const realOutside: Outside = {
  clock: systemClock,
  connectLog,
  openCloud: (config, metrics) => openCloud(config, process.env, metrics),
  openPrometheus: (config) => openPrometheus(config),
  openNotifications,
};
