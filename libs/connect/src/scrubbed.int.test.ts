import { Secret } from '@kronos/config';
import { defaultStorageLimits, type LogEvent } from '@kronos/contracts';
import { connectEventLog, natsWire } from '@kronos/eventlog';
import { emptySnapshot, startNatsServer } from '@kronos/eventlog/testing';
import { testLog } from '@kronos/projections/testing';
import { expect, it, onTestFinished } from 'vitest';
import { scrubbed } from './scrubbed.ts';

it('a text of a snapshot has no secret, whatever part of it has the text', async () => {
  new Secret('hunter3-hunter3');
  const text = 'Prometheus answers 401 to hunter3-hunter3';
  const about = { query: 'q', label: 'uuid', labelType: 'nova_instance_uuid', text } as const;
  const reading = { ...about, health: 'ERROR', values: {}, unmatchedLabels: 0, ambiguousLabels: 0 } as const;
  const given = {
    ...emptySnapshot('gpu-1'),
    notes: [{ code: 'note', text }],
    vmReadings: [reading],
    moveCostReadings: [reading],
    forecast: { stepSeconds: 60, points: 1, readings: [{ ...about, days: [] }] },
  };
  const seams = { append: async (write: unknown) => ({ write }) };
  const wrapped = scrubbed(seams as never, { usage: async () => ({}) } as never);
  const { write } = (await wrapped.append({ kind: 'snapshot', snapshot: given } as never)) as { write: unknown };
  expect(JSON.stringify(write)).not.toContain('hunter3');
  expect(write).toMatchObject({ snapshot: { hosts: given.hosts, forecast: { readings: [{ query: 'q' }] } } });
});

it('no secret gets onto the log in a text; names, ids and decisions stay', async () => {
  const nats = await startNatsServer();
  onTestFinished(() => nats.stop());
  const log = await connectEventLog({ servers: [nats.url], name: 'test' }, {}, natsWire, scrubbed);
  onTestFinished(() => log.close());
  await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu'] });
  new Secret('compute-7');
  new Secret('hunter2-hunter2');
  const draft = testLog('gpu', Date.now());
  const plan = draft.released([{ serverId: 'vm1', from: 'compute-7', to: 'h2' }]);
  draft.started({ task: `${plan}-s1` });
  draft.failed({ task: `${plan}-s1` });
  const events = draft.events.map(({ event }) => event as LogEvent);
  const failed = events.at(-1);
  if (failed?.type !== 'migration.failed') throw new Error('no failure');
  const reason = {
    code: 'compute-7',
    text: 'proxy: Authorization: hunter2-hunter2 on compute-7',
    detail: { answer: ['hunter2-hunter2'] },
  };
  for (const event of events.slice(0, -1)) await log.append(event);
  await log.append({ ...failed, data: { ...failed.data, reason } });
  const stored: LogEvent[] = [];
  for await (const { event } of log.replay()) stored.push(event as LogEvent);
  expect(stored.slice(0, -1)).toEqual(events.slice(0, -1));
  expect(stored.at(-1)).toMatchObject({
    data: {
      from: 'compute-7',
      reason: {
        code: 'compute-7',
        text: 'proxy: Authorization: [secret] on [secret]',
        detail: { answer: ['[secret]'] },
      },
    },
  });
});
