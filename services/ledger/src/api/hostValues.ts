import type { SnapshotTaken } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import type { Aside } from '../aside/aside.ts';
import type { Orders } from '../aside/hand.ts';
import type { DecisionPoint } from '../history.ts';
import type { Answer } from './schemas.ts';
import { nullIfGone } from './snapshots.ts';

/** Points of a line: more of them are not told apart on a phone, and each costs a snapshot. */
const MOST_POINTS = 30;
/** The server's timestamps and the times of snapshots differ by at most this much. */
const AROUND_MS = 120_000;

type Value = Orders['values']['answer'][number];

export type HostValuesInput = {
  readonly log: Pick<EventLog, 'replaySnapshots' | 'objects'>;
  readonly aside: Aside;
  /** Bounds the reads at once. */
  readonly reading: <T>(read: () => Promise<T>) => Promise<T>;
};

/** The values of a host in the snapshots of these decisions, thinned out. */
export async function hostValues(
  { log, aside, reading }: HostValuesInput,
  aggregate: string,
  host: string,
  decisions: readonly DecisionPoint[],
): Promise<Answer<'hostValues'>> {
  const points = evenly(decisions, MOST_POINTS);
  const asked = points.map(({ snapshotId: id }) => ({ id, body: null }));
  const known = await aside.run('values', { host, snapshots: asked });
  const found = new Map<string, Value>(points.map(({ snapshotId }, i) => [snapshotId, known[i] ?? null]));
  const unknown = points.filter(({ snapshotId }) => found.get(snapshotId) === 'unknown');
  if (unknown.length > 0)
    await reading(async () => {
      for (const { data } of await snapshotsOf(log, aggregate, unknown)) {
        const { snapshotId: id, body } = data;
        const bytes = await log.objects.get(body).catch(nullIfGone);
        if (bytes === null) continue;
        const stored = { bytes, digest: body.digest, name: id };
        const [value] = await aside.run('values', { host, snapshots: [{ id, body: stored }] });
        found.set(id, value ?? null);
      }
    });
  const kept = points.filter(({ snapshotId }) => found.get(snapshotId) !== 'unknown');
  const values = kept.map(({ snapshotId }) => found.get(snapshotId) as Exclude<Value, 'unknown'>);
  const policies = [...new Set(values.flatMap((value) => Object.keys(value ?? {})))];
  return {
    aggregate,
    host,
    times: kept.map(({ time }) => time),
    policies: policies.map((policy) => ({
      policy,
      values: values.map((value) => rounded(value?.[policy] ?? null)),
    })),
    gone: points.length - kept.length,
  };
}

const rounded = (value: number | null): number | null => (value === null ? null : Number(value.toPrecision(6)));

/** The messages of the snapshots that these decisions are about. Of two with one id the first is decided. */
async function snapshotsOf(
  log: HostValuesInput['log'],
  aggregate: string,
  decisions: readonly DecisionPoint[],
): Promise<SnapshotTaken[]> {
  const wanted = new Set(decisions.map(({ snapshotId }) => snapshotId));
  const times = decisions.map(({ time }) => Date.parse(time));
  const found: SnapshotTaken[] = [];
  for await (const { message, problem } of log.replaySnapshots({
    aggregates: [aggregate],
    since: new Date(Math.min(...times) - AROUND_MS),
    until: new Date(Math.max(...times) + AROUND_MS),
  }))
    if (problem === undefined && wanted.delete(message.data.snapshotId)) found.push(message);
  return found;
}

/** At most so many, the first and the last among them. */
export function evenly<T>(all: readonly T[], most: number): T[] {
  if (all.length <= most) return [...all];
  return Array.from({ length: most }, (_, i) => all[Math.round((i * (all.length - 1)) / (most - 1))] as T);
}
