import type { Control } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import { expect, it } from 'vitest';
import { OpenRequests, REQUEST_KEPT_MS } from './openRequests.ts';

it('a request that gets no snapshot is dropped when its sender has stopped waiting, and the log says so', async () => {
  const storedAt = Date.parse('2026-01-05T00:00:00Z');
  const asked: Control = {
    type: 'evaluation.requested',
    version: 1,
    id: 'c1',
    time: '2026-01-05T00:00:00Z',
    aggregate: 'gpu',
    by: { service: 'operator', instance: 'ada', version: 'test' },
    correlationId: 'c1',
    causationId: null,
    data: { commandId: 'c1', comment: null, purpose: 'evaluate' },
  };
  const warned: unknown[] = [];
  const tail = async function* () {
    yield {
      message: asked,
      storedAt,
      firstStoredAt: storedAt,
      subject: 'kronos.controls.gpu',
      sequence: 1,
      traceparent: null,
    };
  } as unknown as EventLog['tail'];
  const requests = new OpenRequests({
    log: { tail },
    seen: { has: () => false },
    scope: ['gpu'],
    clock: { now: () => storedAt },
    logger: { warn: (about: unknown) => warned.push(about) },
  });
  await requests.listen(() => undefined);
  expect(requests.due(storedAt + REQUEST_KEPT_MS).map(({ aggregate }) => aggregate)).toEqual(['gpu']);
  expect(warned).toEqual([]);
  expect(requests.due(storedAt + REQUEST_KEPT_MS + 1)).toEqual([]);
  expect(requests.due(storedAt + REQUEST_KEPT_MS + 2)).toEqual([]);
  expect(warned).toMatchObject([{ aggregate: 'gpu', purpose: 'command' }]);
});
