import type { CycleDecided, SnapshotTaken } from '@kronos/contracts';
import { testLog } from '@kronos/projections/testing';
import { expect, it } from 'vitest';
import { answerTo, decisionText } from './evaluate.ts';

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

it('a request is answered by the decision of its own snapshot, or of a later one, whichever message comes first', () => {
  const log = testLog('gpu');
  const decide = (snapshotId: string) => {
    log.pass(60).decided('none', [], { snapshotId });
    const event = log.events.at(-1)?.event;
    return event?.type === 'cycle.decided' ? event : expect.fail('no decision');
  };
  const [before, own, later] = ['gpu-1', 'gpu-c1', 'gpu-3'].map(decide) as [CycleDecided, CycleDecided, CycleDecided];
  const taken = {
    type: 'snapshot.taken',
    aggregate: 'gpu',
    time: own.data.snapshotTime,
    data: { snapshotId: 'gpu-c1' },
  } as SnapshotTaken;
  const answers = (...messages: (CycleDecided | SnapshotTaken)[]) => {
    const pick = answerTo(new Map([['gpu-c1', 'gpu']]));
    return messages.flatMap((message) => pick(message)?.data.snapshotId ?? []);
  };
  expect(answers(before, taken, own, later)).toEqual(['gpu-c1']);
  expect(answers(before, own, taken, later)).toEqual(['gpu-c1']);
  expect(answers(before, taken, later)).toEqual(['gpu-3']);
  expect(answers(before, later, taken)).toEqual(['gpu-3']);
  expect(answers(before, later)).toEqual([]);
});
