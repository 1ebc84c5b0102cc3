import { familyOf, type Message, type Snapshot } from '@kronos/contracts';
import { unknownWrite, type Wrap, type Write } from '@kronos/eventlog';
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

/** Fields with the configuration and Nova's lists: they are large and hold no text of Kronos. */
const LISTED: ReadonlySet<string> = new Set<keyof Snapshot>([
  'policies',
  'hosts',
  'servers',
  'serverGroups',
  'migrations',
  'endedMigrations',
]);

const snapshotWithoutSecrets = (snapshot: Snapshot): Snapshot =>
  Object.fromEntries(
    Object.entries(snapshot).map(([field, value]) => [field, LISTED.has(field) ? value : withoutSecrets(value)]),
  ) as Snapshot;

function clean(write: Write): Write {
  switch (write.kind) {
    case 'message':
      return { ...write, message: cleaned(write.message) };
    case 'snapshot':
      return { ...write, snapshot: snapshotWithoutSecrets(write.snapshot) };
    case 'object':
      // The details of a decision, which are unchanged as the decision is.
      return write;
    default:
      return unknownWrite(write);
  }
}

/** Hides the secrets of this process in everything that it writes. */
export const scrubbed: Wrap = (inner) => ({
  ...inner,
  append: async <W extends Write>(write: W) => inner.append(clean(write) as W),
});
