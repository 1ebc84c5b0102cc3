import type { LogGuard } from '@kronos/checkpoints';
import type { Clock } from '@kronos/clock';
import type { Actor, EngineOptions } from '@kronos/contracts';
import type { Decider } from '@kronos/cycle';
import type { EventLog, LogView } from '@kronos/eventlog';
import type { LogState } from '@kronos/projections';
import type { Logger } from '@kronos/telemetry';
import type { Tracer } from '@opentelemetry/api';
import type { PlannerMeters } from './meters.ts';

export type PlannerDeps = {
  readonly log: EventLog;
  readonly view: LogView<LogState>;
  /** While it has a problem nothing is planned or dispatched. Absent: the log is not in doubt. */
  readonly guard?: Pick<LogGuard, 'problem' | 'agrees' | 'identity'>;
  readonly aggregates: readonly string[];
  /** The options of an aggregate; asked once for each. */
  readonly optionsOf: (aggregate: string) => EngineOptions;
  readonly decider: Decider;
  readonly by: Actor;
  readonly logger: Logger;
  readonly tracer: Tracer;
  readonly meters: PlannerMeters;
  readonly clock: Clock;
  /** The problem of the own clock; null: none. A planner with a wrong clock plans nothing. */
  readonly clockProblem: () => string | null;
};
