import { parentPort } from 'node:worker_threads';
import { arrived } from '@kronos/placement/runs';
import { type Batch, carryOutOf, take } from './searchBatch.ts';

/** A thread of the search: takes runs of each batch until none is left. */
parentPort?.on('message', (sent: Batch) => {
  const fields = new Map(sent.runs.map(({ field }) => [field, arrived(field)]));
  const batch = { ...sent, runs: sent.runs.map((run) => ({ ...run, field: fields.get(run.field) ?? run.field })) };
  for (let i = take(batch, 0); i >= 0; i = take(batch, 0)) carryOutOf(batch, i);
});
