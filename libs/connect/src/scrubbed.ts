import { familyOf, type Message, type Snapshot } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import { scrub } from '@kronos/telemetry/scrub';

/** Fields with texts from outside: Nova's faults, answers of proxies, comments of people. */
const TEXTS: ReadonlySet<string> = new Set(['text', 'detail', 'reason', 'comment']);

/** A copy in which secrets in texts are hidden. Names and ids are unchanged. */
function withoutSecrets<T>(value: T): T {
  const clean = (part: unknown, text: boolean): unknown => {
    if (typeof part === 'string') return text ? scrub(part) : part;
    if (Array.isArray(part)) return part.map((item) => clean(item, text));
    if (typeof part !== 'object' || part === null) return part;
    return Object.fromEntries(
      Object.entries(part).map(([key, inner]) => [
        key,
        // A reason is a text, or an object that holds one.
        clean(inner, (text && key !== 'code') || (TEXTS.has(key) && (typeof inner === 'string' || key === 'detail'))),
      ]),
    );
  };
  return clean(value, false) as T;
}

/**
 * A copy of a message without secrets. Decisions are unchanged: their texts come from snapshots without secrets, and their
 * digests are computed before the append.
 */
const cleaned = <M extends Message>(message: M): M =>
  familyOf(message.type) === 'plans' ? message : withoutSecrets(message);

/** The event log; appended messages never contain a secret of this process. */
export function scrubbed(log: EventLog): EventLog {
  const append: EventLog['append'] = (message, options) => log.append(cleaned(message), options);
  const putSnapshot: EventLog['putSnapshot'] = (snapshot: Snapshot, envelope) =>
    log.putSnapshot(
      {
        ...snapshot,
        problems: withoutSecrets(snapshot.problems),
        notes: withoutSecrets(snapshot.notes),
        hostReadings: withoutSecrets(snapshot.hostReadings),
        vmReadings: withoutSecrets(snapshot.vmReadings),
        ...(snapshot.moveCostReadings === undefined
          ? {}
          : { moveCostReadings: withoutSecrets(snapshot.moveCostReadings) }),
        scores: withoutSecrets(snapshot.scores),
      },
      envelope,
    );
  return Object.assign(Object.create(log) as EventLog, { append, putSnapshot });
}
