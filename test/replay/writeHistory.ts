/**
 * Writes the history of this version of Kronos: node test/replay/writeHistory.ts VERSION
 *
 * With `--every-event`, a short one instead: every type of event of the log, with and without each optional field.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ALL } from '@kronos/contracts';
import { emptySnapshot } from '@kronos/eventlog/testing';
import { recordRange } from '@kronos/replay';
import { memoryHistory, operate } from '@kronos/replay/testing';
import { everyField } from './everyField.ts';
import { factsOf } from './facts.ts';

/** A recording has the aggregates that its snapshots are of, and ends at the last ones: these are taken at the end, and are never planned. */
function short() {
  const events = everyField();
  const time = new Date(events.at(-1)?.storedAt ?? 0).toISOString();
  const aggregates = new Set(events.map(({ event }) => event.aggregate).filter((aggregate) => aggregate !== ALL));
  const snapshots = [...aggregates].map((name) => ({
    ...emptySnapshot(`${name}-record`, name),
    purpose: 'record' as const,
    time,
  }));
  return { events, snapshots };
}

/** A simulated operation. The log keeps every decision. The first snapshots, the last ones and those with a plan are enough. */
function operation() {
  const { events, snapshots } = operate({
    seed: 1,
    cycles: 45,
    aggregates: ['gpu', 'general', 'web eu/1'],
    hosts: 4,
    vmsPerHost: 4,
    failures: 0.3,
    commands: 0.3,
  });
  const planned = new Set(
    events.flatMap(({ event }) =>
      event.type === 'cycle.decided' && event.data.plan !== null ? [event.data.snapshotId] : [],
    ),
  );
  const kept = snapshots.filter((snapshot, i) => i < 3 || i >= snapshots.length - 3 || planned.has(snapshot.id));
  return { events, snapshots: kept };
}

const version = process.argv[2];
if (version === undefined) throw new Error('usage: node test/replay/writeHistory.ts VERSION');
const directory = join(import.meta.dirname, '../histories', version);
const { events, snapshots } = process.argv.includes('--every-event') ? short() : operation();
await recordRange(memoryHistory(events, snapshots), directory, {
  range: {},
  anonymize: false,
  madeBy: `kronos ${version}`,
  nowMs: events.at(-1)?.storedAt ?? 0,
});
await writeFile(join(directory, 'facts.json'), `${JSON.stringify(factsOf(events), null, 2)}\n`);
