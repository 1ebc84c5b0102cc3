/** Who learns of each message that the server stores. */
import type { StoredMessage } from '@kronos/eventlog/simulated';
import type { Checker } from '../checker/checker.ts';
import type { SimulatedRecord } from '../cloudRecord.ts';
import { FORGED } from '../forgery.ts';
import type { InventoryWitness } from '../inventoryWitness.ts';
import type { Approvers } from '../people/approvers.ts';
import type { World } from '../world.ts';
import type { LastMessages } from './lastMessages.ts';
import type { LogDigest } from './logDigest.ts';
import type { Moments } from './moments.ts';
import type { OpenTasks } from './openTasks.ts';
import { readMessage } from './readMessage.ts';

export interface LogWatchers {
  readonly world: World;
  /** Brings the cloud to the time of the message: the checker compares the two. */
  readonly settleCloud: () => void;
  readonly digest: LogDigest;
  readonly checker: Checker;
  readonly record: SimulatedRecord;
  readonly witness: InventoryWitness | null;
  readonly lastMessages: LastMessages;
  readonly openTasks: OpenTasks;
  readonly moments: Moments;
  /** Null: plans are released without a person. */
  readonly approvers: Approvers | null;
}

/** The function that the simulated server calls with each message while it stores it. */
export function watchLog(watchers: LogWatchers): (stream: string, message: StoredMessage) => void {
  const { world, settleCloud, digest, checker, record, witness } = watchers;
  return (stream, message) => {
    digest.stored(stream, message);
    if (message.headers?.get('Nats-Msg-Id').startsWith(FORGED) === true) {
      checker.log.forged(stream, message);
      return;
    }
    if (message.subject.startsWith('kronos.inventory.')) {
      witness?.reported(message.data, world.wall);
      return;
    }
    settleCloud();
    const { statedMs } = checker.log;
    checker.log.stored(stream, message);
    if (checker.log.statedMs !== statedMs) record.disownAll();
    if (message.subject.startsWith('kronos.')) tell(watchers, stream, message);
  };
}

/** The checker has judged the message by then. */
function tell(watchers: LogWatchers, stream: string, stored: StoredMessage): void {
  const { lastMessages, openTasks, moments, approvers } = watchers;
  const message = readMessage(stored);
  lastMessages.stored(stream, message?.type ?? 'unreadable', stored);
  if (message === null) return;
  openTasks.stored(message);
  moments.stored(message);
  approvers?.stored(message);
}
