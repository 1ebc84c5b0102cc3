import { timeMs } from '@kronos/contracts';
import { type EventLog, nullIfUnusable } from '@kronos/eventlog';
import { rounded } from '@kronos/placement';
import type { Aside } from '../aside/aside.ts';
import { evenly } from '../aside/evenly.ts';
import type { Orders } from '../aside/work.ts';
import type { DecisionPoint } from '../memory/history.ts';
import type { Costly } from './input.ts';
import type { ApiAnswer } from './schemas.ts';
import { decidedSnapshots } from './snapshots.ts';

/** Points of a line: more of them are not told apart on a phone, and each costs a snapshot. */
const MOST_POINTS = 30;

type Value = Orders['values']['answer'][number];

export type HostValuesInput = {
  readonly log: Pick<EventLog, 'replaySnapshots' | 'objects'>;
  readonly aside: Aside;
  /** Bounds the reads at once. */
  readonly reading: Costly;
};

/** The values of a host in the snapshots of these decisions, thinned out. */
export async function hostValues(
  { log, aside, reading }: HostValuesInput,
  aggregate: string,
  host: string,
  decisions: readonly DecisionPoint[],
): Promise<ApiAnswer<'hostValues'>> {
  const points = evenly(decisions, MOST_POINTS);
  const asked = points.map(({ snapshotId: id }) => ({ id, body: null }));
  const known = await aside.run('values', { host, snapshots: asked });
  const found = new Map<string, Value>(points.map(({ snapshotId }, i) => [snapshotId, known[i] ?? null]));
  const unknown = points.filter(({ snapshotId }) => found.get(snapshotId) === 'unknown');
  if (unknown.length > 0)
    await reading(async () => {
      const decided = unknown.map(({ snapshotId: id, time }) => ({ id, atMs: timeMs(time) }));
      for (const [id, { data }] of await decidedSnapshots(log, aggregate, decided)) {
        const { body } = data;
        const bytes = await log.objects.get(body).catch(nullIfUnusable);
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
      values: values.map((value) => rounded(value?.[policy])),
    })),
    gone: points.length - kept.length,
  };
}
