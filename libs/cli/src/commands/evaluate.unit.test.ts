import { testLog } from '@kronos/projections/testing';
import { expect, it } from 'vitest';
import { decisionText } from './evaluate.ts';

it('a decision says its times as every command does', () => {
  const nowMs = Date.parse('2026-11-25T21:41:53Z');
  const log = testLog('gpu', nowMs);
  const text = 'paused by root@vm at 2026-11-25T21:41:31.453Z';
  log.decided('none', [], { outcome: 'gated', reason: { code: 'paused', text } });
  const event = log.events.at(-1)?.event;
  if (event?.type !== 'cycle.decided') throw new Error('no decision');
  const terminal = {
    out: () => undefined,
    err: () => undefined,
    steer: () => undefined,
    colour: false,
    columns: 100,
    live: false,
  };
  expect(decisionText(terminal, event, nowMs)).toBe(
    'gpu: blocked: paused by root@vm at 21:41:31Z (combined imbalance 0.3)\n',
  );
});
