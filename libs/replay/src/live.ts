import { type FoldOptions, startingPoint } from '@kronos/checkpoints';
import { type LogEvent, type SnapshotTaken, type StoredEvent, snapshotTimeMs } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import {
  decisionIn,
  type History,
  inRange,
  proposalIn,
  type Range,
  type SnapshotEntry,
  type SnapshotFinder,
} from './history.ts';

/** The server's timestamp of a snapshot and the snapshot's own time differ by at most this. */
const SLACK_MS = 60_000;

/**
 * Snapshots and decisions are out of the order of their times by at most this: aggregates take turns, and a planner may be late.
 */
const AROUND_MS = 600_000;

const sinceOf = ({ sinceMs }: Range): Date | 'all' => (sinceMs === undefined ? 'all' : new Date(sinceMs - SLACK_MS));

/** The history of a running system: its log and the snapshots that it still keeps. */
export const liveHistory = (
  log: EventLog,
  name: string,
  { onSkipped = () => undefined, onCheckpoint }: Pick<FoldOptions, 'onSkipped' | 'onCheckpoint'> = {},
): History => ({
  name,
  anonymized: false,
  events: (to, from) => log.replay({ ...(to === undefined ? {} : { to }), ...(from === undefined ? {} : { from }) }),
  async checkpoint(upTo) {
    const found = await startingPoint(log, onSkipped, upTo);
    onCheckpoint?.(found);
    return found;
  },
  async kept() {
    // Of the oldest cycle some aggregates' snapshots may be gone already.
    for await (const delivered of log.replaySnapshots())
      if (delivered.problem === undefined)
        return delivered.sequence === 1 ? {} : { sinceMs: takenMs(delivered) + SLACK_MS };
    return {};
  },
  async newestMs() {
    let newest: number | null = null;
    for await (const delivered of log.tail({ families: ['snapshots'], since: 'last', end: true }))
      if (delivered.problem === undefined) newest = Math.max(newest ?? 0, takenMs(delivered));
    return newest;
  },
  decisions: (range) => among(log, range, decisionIn),
  proposals: (range) => among(log, range, proposalIn),
  snapshots: (range) => snapshotsOf(log, range),
  finder: (range) => finder(log, range),
  details: (ref) => log.objects.get(ref),
});

/** The picked values of the plans' events about snapshots of a range, in the order of the log. */
async function* among<D>(
  log: EventLog,
  range: Range,
  pick: (range: Range, stored: StoredEvent) => D | null,
): AsyncGenerator<D, void, undefined> {
  const aggregates = range.aggregates === undefined ? {} : { aggregates: range.aggregates };
  for await (const { message, problem, sequence, storedAt, firstStoredAt } of log.tail({
    families: ['plans'],
    ...aggregates,
    since: sinceOf(range),
    end: true,
  })) {
    if (problem !== undefined) continue;
    const picked = pick(range, { sequence, storedAt, originallyStoredAt: firstStoredAt, event: message as LogEvent });
    if (picked !== null) yield picked;
  }
}

/** The snapshots of a range in the order of their stream. */
async function* snapshotsOf(log: EventLog, range: Range): AsyncGenerator<SnapshotEntry, void, undefined> {
  const since = sinceOf(range);
  for await (const delivered of log.replaySnapshots({
    ...(range.aggregates === undefined ? {} : { aggregates: range.aggregates }),
    ...(since === 'all' ? {} : { since }),
    ...(range.untilMs === undefined ? {} : { until: new Date(range.untilMs + SLACK_MS) }),
  })) {
    if (delivered.problem !== undefined) continue;
    const entry = entryOf(log, delivered.message, takenMs(delivered));
    if (inRange(range, entry.aggregate, entry.timeMs)) yield entry;
  }
}

/** When a snapshot was taken, ms since the epoch. */
const takenMs = ({ message, firstStoredAt }: { message: { time: string }; firstStoredAt: number }): number =>
  snapshotTimeMs(message.time, firstStoredAt);

const entryOf = (
  log: Pick<EventLog, 'objects'>,
  { aggregate, data }: SnapshotTaken,
  timeMs: number,
): SnapshotEntry => ({
  id: data.snapshotId,
  aggregate,
  timeMs,
  purpose: async () => data.purpose,
  read: async () => ({
    bytes: await log.objects.get(data.body),
    digest: data.body.digest,
    name: data.snapshotId,
  }),
});

/** Reads the stream of snapshots beside the log. Holds those of the times around the decision that is asked about. */
function finder(log: EventLog, range: Range): SnapshotFinder {
  const source = snapshotsOf(log, range);
  const around = new Map<string, SnapshotEntry[]>();
  let readMs = Number.NEGATIVE_INFINITY;
  return {
    async find({ event: { data }, snapshotMs: atMs }) {
      for (const [id, entries] of around) {
        if (entries.some(({ timeMs }) => timeMs >= atMs - AROUND_MS)) break;
        around.delete(id);
      }
      // Two scorers may have taken snapshots with one id, of which the planner decided either. Where clocks disagree, no
      // time is the same, and the first counts.
      const decided = () => around.get(data.snapshotId)?.find(({ timeMs }) => timeMs === atMs);
      while (decided() === undefined && readMs <= atMs + AROUND_MS) {
        const next = await source.next();
        if (next.done === true) {
          readMs = Number.POSITIVE_INFINITY;
          break;
        }
        readMs = next.value.timeMs;
        if (readMs < atMs - AROUND_MS) continue;
        const { id } = next.value;
        const known = around.get(id);
        if (known === undefined) around.set(id, [next.value]);
        else known.push(next.value);
      }
      return decided() ?? around.get(data.snapshotId)?.[0] ?? null;
    },
    close: async () => void (await source.return()),
  };
}
