import { parseMessage } from '@kronos/contracts';
import { aggregateState, fold, initialLogState } from '@kronos/projections';
import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { SAMPLE_MS } from '../testing/sample.ts';
import { deadLetterEvent } from './deadLetter.ts';

const by = { service: 'executor' as const, instance: 'e1', version: '1' };

describe('a message that is no task', () => {
  const empty = aggregateState(initialLogState(), 'gpu');
  const dead = (body: string) => ({ aggregate: 'gpu', sequence: 12, body, problem: 'no schema' });
  const at = { by, nowMs: SAMPLE_MS };

  it('is recorded as itself when it names no task that the log knows', () => {
    for (const body of ['', 'no JSON', 'null', '{"data":{"taskId":"unknown-s1"}}', '{"data":{"taskId":7}}']) {
      const event = deadLetterEvent(dead(body), empty, at);
      expect(event).toMatchObject({ data: { taskId: 'unreadable-12', errorType: 'DeadLetter', retryPending: false } });
      expect(parseMessage(JSON.parse(JSON.stringify(event))).ok).toBe(true);
    }
  });

  it('ends the task that it names while that waits, and leaves one alone that has begun', () => {
    const log = testLog('gpu');
    log.configured();
    const planId = log.released([{ serverId: 'a', from: 'h1', to: 'h2' }]);
    const named = dead(JSON.stringify({ data: { taskId: `${planId}-s1` } }));
    const event = deadLetterEvent(named, log.state(), at);
    expect(event).toMatchObject({ data: { taskId: `${planId}-s1`, serverId: 'a', from: 'h1', started: false } });
    log.started({ task: `${planId}-s1` });
    expect(deadLetterEvent(named, aggregateState(fold(log.events), 'gpu'), at)).toBeNull();
  });

  it('carries no more of the message than a person needs', () => {
    const event = deadLetterEvent(dead('x'.repeat(100_000)), empty, at);
    expect(JSON.stringify(event).length).toBeLessThan(4000);
  });
});
