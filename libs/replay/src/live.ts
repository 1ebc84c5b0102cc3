import { type PassedOver, startingPoint } from '@kronos/checkpoints';
import type { SnapshotTaken } from '@kronos/contracts';
import { BadObject, type EventLog } from '@kronos/eventlog';
import { type History, inRange, type LoadedSnapshot, type Range, readSnapshot } from './history.ts';

/** Stamps of the server and times of snapshots may differ by so much and still belong together. */
const SLACK_MS = 60_000;

const sinceOf = ({ sinceMs }: Range): Date | 'all' => (sinceMs === undefined ? 'all' : new Date(sinceMs - SLACK_MS));

/** The history of a running system: its log and the snapshots that it still keeps. */
export const liveHistory = (
  log: EventLog,
  name: string,
  onPassedOver: (passed: PassedOver) => void = () => undefined,
): History => ({
  name,
  anonymized: false,
  events: (to, from) => log.replay({ ...(to === undefined ? {} : { to }), ...(from === undefined ? {} : { from }) }),
  checkpoint: (upTo) => startingPoint(log, onPassedOver, upTo),
  async kept() {
    // Of the oldest cycle some aggregates' snapshots may be gone already.
    for await (const { message, problem, sequence } of log.replaySnapshots())
      if (problem === undefined) return sequence === 1 ? {} : { sinceMs: Date.parse(message.time) + SLACK_MS };
    return {};
  },
  async *decisions(range) {
    const aggregates = range.aggregates === undefined ? {} : { aggregates: range.aggregates };
    for await (const { message, problem, sequence } of log.tail({
      families: ['plans'],
      ...aggregates,
      since: sinceOf(range),
      end: true,
    })) {
      if (problem !== undefined || message.type !== 'cycle.decided') continue;
      if (inRange(range, message.aggregate, Date.parse(message.data.snapshotTime))) yield { sequence, event: message };
    }
  },
  async *snapshots(range) {
    const since = sinceOf(range);
    for await (const { message, problem } of log.replaySnapshots({
      ...(range.aggregates === undefined ? {} : { aggregates: range.aggregates }),
      ...(since === 'all' ? {} : { since }),
      ...(range.untilMs === undefined ? {} : { until: new Date(range.untilMs + SLACK_MS) }),
    })) {
      if (problem !== undefined) continue;
      const { data, aggregate, time } = message;
      const timeMs = Date.parse(time);
      if (!inRange(range, aggregate, timeMs)) continue;
      yield {
        id: data.snapshotId,
        aggregate,
        timeMs,
        purpose: data.purpose,
        load: () => load(log, message),
      };
    }
  },
  details: (ref) => log.objects.get(ref),
});

async function load(log: Pick<EventLog, 'objects'>, { data }: SnapshotTaken): Promise<LoadedSnapshot> {
  const text = new TextDecoder().decode(await log.objects.get(data.body));
  const read = readSnapshot(JSON.parse(text), data.body.digest);
  if (!read.ok) throw new BadObject(`the body of snapshot ${data.snapshotId} is no snapshot: ${read.problem}`);
  return read.loaded;
}
