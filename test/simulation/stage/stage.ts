/** The parts that faults act on. A new act belongs in the file of the part that it changes. */
import type { CloudActs } from './cloud.ts';
import type { NetworkActs } from './networks.ts';
import type { NotificationActs } from './notifications.ts';
import type { ProcessActs } from './processes.ts';
import type { StreamActs } from './streams.ts';
import type { TaskActs } from './tasks.ts';

/** The acts of people. */
interface PersonActs {
  /** Appends an operator's command. */
  command(type: string, aggregate: string, data: object): void;
  /** An operator closes the tasks whose migrations nobody in Nova works on any more. */
  closeAbandoned(): void;
}

interface Moment {
  /** Until the scorers take the next snapshots. */
  nextSnapshotMs(): number;
  after(ms: number, act: () => void): void;
  /** Calls once, with the replica that wrote it, when the next event of a type is stored. */
  onNext(type: string, act: (process: string) => void): void;
}

export interface Stage
  extends ProcessActs,
    NetworkActs,
    CloudActs,
    StreamActs,
    TaskActs,
    NotificationActs,
    PersonActs,
    Moment {
  readonly aggregates: readonly string[];
}
