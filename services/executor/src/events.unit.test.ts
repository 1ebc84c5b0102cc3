import { parseMessage } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { SAMPLE_MS, sampleTask } from '../testing/sample.ts';
import {
  abortRequestedEvent,
  endedEvent,
  nextRequest,
  observedEvent,
  startedEvent,
  stopOf,
  suspectedEvent,
} from './events.ts';
import type { Ended, Stop } from './taskFacts.ts';

const by = { service: 'executor' as const, instance: 'e1', version: '1' };
const origin = { by, correlationId: 'p', nowMs: SAMPLE_MS };

describe('what the executor writes', () => {
  const task = sampleTask({ groups: [{ id: 'g', policy: 'affinity' }] });
  const ends: readonly Ended[] = [
    { type: 'completed', outcome: 'migrated', host: 'h2', warnings: [], nova: null },
    { type: 'completed', outcome: 'alreadyThere', host: 'h2', warnings: [{ code: 'x', text: 'y' }], nova: null },
    { type: 'skipped', reason: { code: 'dry-run', text: 'dry run' } },
    {
      type: 'failed',
      errorType: 'MigrationFailed',
      reason: { code: 'x', text: 'y' },
      cause: 'destination',
      hostAtFault: 'h2',
      next: { attempt: 2, destination: 'h3', notBeforeMs: SAMPLE_MS },
      started: true,
      nova: null,
    },
  ];

  it('fits the contracts, under ids that name task and attempt', () => {
    const messages = [
      startedEvent(task, origin, { newestMigrationId: 7, forced: false }),
      observedEvent(task, origin, { migrationId: 8, requestId: null }),
      suspectedEvent(task, origin, { deliveries: 6, trial: 1, tries: 2 }),
      abortRequestedEvent(task, origin, { cause: 'operator' }),
      ...ends.map((ended) => endedEvent(task, origin, ended)),
      nextRequest(task, origin, { attempt: 2, destination: 'h3', notBeforeMs: SAMPLE_MS }),
    ];
    for (const message of messages)
      expect(parseMessage(JSON.parse(JSON.stringify(message)))).toEqual({ ok: true, message });
    expect(messages.map(({ id }) => id)).toEqual([
      'migration.started:p-s1:1',
      'migration.observed:p-s1:1',
      'migration.suspected:p-s1:1:6.1:2',
      'migration.abortRequested:p-s1:1',
      'migration.ended:p-s1:1',
      'migration.ended:p-s1:1',
      'migration.ended:p-s1:1',
      'migration.ended:p-s1:1',
      'migration.requested:p-s1:2',
    ]);
  });

  it('says why an abort was asked for, and reads it again, of this attempt', async () => {
    const late = { cause: 'queue', limitMs: 5000, text: 'it waited' } as const;
    async function* log(...stops: readonly Stop[]) {
      yield { event: abortRequestedEvent({ ...task, attempt: 2 }, origin, { cause: 'operator' }) };
      for (const stop of stops) yield { event: abortRequestedEvent(task, origin, stop) };
    }
    expect(await stopOf(log(late), task)).toEqual(late);
    expect(await stopOf(log({ cause: 'operator' }), task)).toEqual({ cause: 'operator' });
    expect(await stopOf(log(), task)).toBeNull();
  });

  it('asks for the next attempt with everything of the step, and its cause', () => {
    const next = nextRequest(task, origin, { attempt: 2, destination: 'h3', notBeforeMs: SAMPLE_MS + 500 });
    expect(next).toMatchObject({
      causationId: 'migration.ended:p-s1:1',
      data: { attempt: 2, destination: 'h3', to: 'h2', alternates: ['h3', 'h4'], notAfter: task.notAfter },
    });
    expect(next.data.notBefore).toBe(new Date(SAMPLE_MS + 500).toISOString());
  });
});
