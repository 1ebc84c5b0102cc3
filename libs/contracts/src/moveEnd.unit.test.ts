import { describe, expect, it } from 'vitest';
import type { Reason } from './envelope.ts';
import type { MigrationCompleted } from './messages/migrationCompleted.ts';
import type { MigrationFailed } from './messages/migrationFailed.ts';
import { moveEnd } from './moveEnd.ts';
import { sentence } from './sentence.ts';

const attempt = { taskId: 'p-s1', planId: 'p', serverId: 'vm1', attempt: 1, from: 'h1', destination: 'h2' };
const head = {
  version: 1,
  id: 'migration.ended:p-s1:1',
  time: '2026-01-05T10:00:00.000Z',
  aggregate: 'gpu',
  by: { service: 'executor', instance: 'e1', version: '1' },
  correlationId: 'p',
  causationId: null,
} as const;
const completed = (...warnings: Reason[]): MigrationCompleted => ({
  ...head,
  type: 'migration.completed',
  data: { ...attempt, outcome: 'migrated', host: 'h2', retries: 0, nova: null, warnings },
});
const failed = (reason: Reason): MigrationFailed => ({
  ...head,
  type: 'migration.failed',
  data: {
    ...attempt,
    errorType: 'MigrationFailed',
    reason,
    retries: 0,
    retryPending: false,
    next: null,
    hostAtFault: null,
    started: true,
    nova: null,
  },
});
const inError = { code: 'server-in-error', text: 'the server is in ERROR on h2' };
const row = { code: 'ended-otherwise', text: 'Nova calls the migration error' };

describe('the end of a move', () => {
  it('is plain without warnings, warned with one, damaged with a server in ERROR', () => {
    expect(moveEnd(completed())).toBe('plain');
    expect(moveEnd(completed(row))).toBe('warned');
    expect(moveEnd(completed(row, inError))).toBe('damaged');
    expect(moveEnd(failed(row))).toBe('plain');
    expect(moveEnd(failed(inError))).toBe('damaged');
  });

  it('is read in the events of earlier versions', () => {
    const notUp = (status: string) => ({ code: 'server-not-up', text: 'x', detail: { status } });
    expect(moveEnd(completed(notUp('ERROR')))).toBe('damaged');
    expect(moveEnd(completed(notUp('SHUTOFF')))).toBe('warned');
  });

  it('is never told as a plain success when it was none', () => {
    expect(sentence(completed())).toBe('vm1 from h1 to h2 completed');
    expect(sentence(completed(row))).toBe('vm1 from h1 to h2 ended with warnings: Nova calls the migration error');
    expect(sentence(completed(row, inError))).toBe(
      'vm1 from h1 to h2 ended with its server in ERROR: Nova calls the migration error; the server is in ERROR on h2',
    );
  });
});
