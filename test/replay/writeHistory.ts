/**
 * Writes the history of this version of Kronos: node test/replay/writeHistory.ts VERSION
 *
 * With `--every-event`, a short one with every type of event of the log instead, made by everyEvent.ts.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { emptySnapshot } from '@kronos/eventlog/testing';
import { recordRange } from '@kronos/replay';
import { memoryHistory, operate } from '@kronos/replay/testing';
import { everyEvent } from './everyEvent.ts';
import { factsOf } from './facts.ts';

/** Every type of event. A recording ends at its last snapshot: this one is taken at the end, and is never planned. */
function short() {
  const events = everyEvent();
  const time = new Date(events.at(-1)?.storedAt ?? 0).toISOString();
  return { events, snapshots: [{ ...emptySnapshot('gpu-record', 'gpu'), purpose: 'record' as const, time }] };
}

const version = process.argv[2];
if (version === undefined) throw new Error('usage: node test/replay/writeHistory.ts VERSION');
const directory = join(import.meta.dirname, '../histories', version);
const { events, snapshots } = process.argv.includes('--every-event')
  ? short()
  : operate({
      seed: 1,
      cycles: 45,
      aggregates: ['gpu', 'general', 'web eu/1'],
      hosts: 4,
      vmsPerHost: 4,
      failures: 0.3,
      commands: 0.3,
    });
// The log keeps every decision. The first snapshot of each aggregate and the snapshots with a plan are enough.
const planned = new Set(
  events.flatMap(({ event }) =>
    event.type === 'cycle.decided' && event.data.plan !== null ? [event.data.snapshotId] : [],
  ),
);
const kept = snapshots.filter((snapshot, i) => i < 3 || i >= snapshots.length - 3 || planned.has(snapshot.id));
await recordRange(memoryHistory(events, kept), directory, {
  range: {},
  anonymize: false,
  madeBy: `kronos ${version}`,
  nowMs: events.at(-1)?.storedAt ?? 0,
});
await writeFile(join(directory, 'facts.json'), `${JSON.stringify(factsOf(events), null, 2)}\n`);
