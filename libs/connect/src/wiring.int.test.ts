import { defaultConfig, Secret } from '@kronos/config';
import { bucketNames, defaultStorageLimits, type Message, messageId, streamNames } from '@kronos/contracts';
import {
  AppendConflict,
  AppendWithdrawn,
  connectEventLog,
  type EventLog,
  natsWire,
  type Seams,
  type Write,
  type Written,
} from '@kronos/eventlog';
import { commandEvent, emptySnapshot, reportedEvent, startNatsServer } from '@kronos/eventlog/testing';
import { createLogger, createMetrics } from '@kronos/telemetry';
import { trace } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Connect, connectLog } from './nats.ts';

const metrics = createMetrics(resourceFromAttributes({}));
const instrumentation = { metrics: metrics.instruments, tracer: trace.getTracer('test') };
const logger = createLogger({ service: 'scorer', version: '0', level: 'silent' });

/** The production wiring around another innermost pair of seams. */
async function around(inner: Seams): Promise<Seams> {
  let seams: Seams | null = null;
  const connect: Connect = async (_options, _hooks, wrap) => {
    seams = wrap(inner, { usage: () => Promise.reject(new Error('not asked')) });
    return {} as EventLog;
  };
  await connectLog(defaultConfig, 'scorer', logger, { ...instrumentation, connect });
  if (seams === null) throw new Error('nothing was connected');
  return seams;
}

const paused = commandEvent('aggregate.paused', 'gpu', 'c1', {});
const beat = reportedEvent('scorer', 's', paused.time);
const envelope = {
  by: { service: 'scorer', instance: 's', version: '0' },
  correlationId: 'why',
  causationId: 'cause',
  log: { installationId: 'i1', sequence: 7 },
} as const;

/** One write of each kind, with every argument and one of a later version. The compiler asks for each kind. */
const writes: { readonly [K in Write['kind']]: readonly Extract<Write, { kind: K }>[] } = {
  message: [paused, beat].map((message) => ({
    kind: 'message',
    message,
    options: { expectedLastSequence: 3, timeoutMs: 40, veto: () => null, ofLater: 'kept' },
    ofLater: 'kept',
  })),
  snapshot: [
    {
      kind: 'snapshot',
      snapshot: emptySnapshot('gpu-1'),
      envelope,
      options: { veto: () => null },
      ...{ ofLater: 'kept' },
    },
  ],
  object: [{ kind: 'object', bucket: 'b', label: 'l', body: new Uint8Array(3), ...{ ofLater: 'kept' } }],
};

describe('the decorators of production', () => {
  it.each(Object.entries(writes))('pass on every argument of a %s', async (_, each) => {
    const seen: Write[] = [];
    const seams = await around({
      append: async <W extends Write>(write: W) => {
        seen.push(write);
        return { sequence: 1, duplicate: false, message: paused } as unknown as Written<W>;
      },
      read: () => ({ ok: false, problem: '', type: '', version: null, remedy: 'skip' }),
    });
    for (const write of each) await seams.append(write);
    expect(seen).toEqual(each);
    // Functions are compared by identity: the veto is the caller's.
    for (const [index, write] of each.entries())
      if ('options' in write) expect((seen[index] as typeof write).options.veto).toBe(write.options.veto);
  });

  it('count what is written', async () => {
    const counted = async (): Promise<number> => {
      const line = /kronos_log_appends_total\{[^}]*family="controls"[^}]*\} (\d+)/.exec(await metrics.scrape());
      return Number(line?.[1] ?? 0);
    };
    const seams = await around({
      append: async <W extends Write>() => ({ sequence: 1, duplicate: false }) as unknown as Written<W>,
      read: () => ({ ok: false, problem: '', type: '', version: null, remedy: 'skip' }),
    });
    const before = await counted();
    await seams.append({ kind: 'message', message: paused, options: {} });
    expect(await counted()).toBe(before + 1);
  });

  it('refuse a write of a kind that they do not know, and pass on a seam that they do not know', async () => {
    const later = () => 'kept';
    const inner = {
      append: async () => expect.fail('it was written'),
      read: () => ({ ok: false, problem: '', type: '', version: null, remedy: 'skip' }),
      later,
    } as unknown as Seams;
    const seams = await around(inner);
    await expect(seams.append({ kind: 'rumour' } as unknown as Write)).rejects.toThrow(/kind rumour/);
    expect((seams as Seams & { later: unknown }).later).toBe(later);
    expect(seams.read).toBe(inner.read);
  });
});

/** The way of each part of the log to the server. The compiler asks for each new part. */
const ways: { readonly [N in keyof EventLog]: 'append seam' | 'read seam' | 'request' | 'connection' } = {
  server: 'connection',
  provision: 'request',
  verify: 'request',
  append: 'append seam',
  lastSequence: 'request',
  lastSequenceOf: 'request',
  usage: 'request',
  accountLimits: 'request',
  readClock: 'request',
  replay: 'read seam',
  copy: 'request',
  restore: 'request',
  view: 'read seam',
  snapshots: 'read seam',
  replaySnapshots: 'read seam',
  tail: 'read seam',
  tasks: 'read seam',
  sink: 'read seam',
  objects: 'append seam',
  putSnapshot: 'append seam',
  getSnapshot: 'request',
  healthy: 'connection',
  close: 'connection',
};

describe('the log that a service gets', () => {
  async function bed() {
    const nats = await startNatsServer();
    onTestFinished(() => nats.stop());
    let made: EventLog | null = null;
    const passed: Write['kind'][] = [];
    let read = 0;
    const connect: Connect = async (options, hooks, wrap) => {
      made = await connectEventLog({ ...options, servers: [nats.url] }, hooks, natsWire, (seams, about) => {
        const wrapped = wrap(seams, about);
        return {
          append: (write) => {
            passed.push(write.kind);
            return wrapped.append(write);
          },
          read: (...args) => {
            read++;
            return wrapped.read(...args);
          },
        };
      });
      return made;
    };
    const log = await connectLog(defaultConfig, 'scorer', logger, { ...instrumentation, connect });
    onTestFinished(() => log.close());
    await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu'], sinks: ['chat'] });
    return { log, made: made as unknown as EventLog, passed, read: () => read };
  }

  it('is the one that was connected: no method of it was replaced or lost', async () => {
    const { log, made } = await bed();
    expect(Object.keys(made).sort()).toEqual(Object.keys(ways).concat('refused').sort());
    for (const name of Object.keys(ways) as (keyof EventLog)[])
      if (name !== 'server') expect(log[name], name).toBe(made[name]);
  });

  it('writes through the one append seam, whatever method is called', async () => {
    const { log, passed } = await bed();
    const calls: Record<string, () => Promise<unknown>> = {
      append: () => log.append(paused),
      objects: () => log.objects.put(bucketNames.details, 'label', new Uint8Array(10)),
      putSnapshot: () => log.putSnapshot(emptySnapshot('gpu-1'), envelope),
    };
    expect(Object.keys(calls)).toEqual(
      Object.keys(ways).filter((name) => ways[name as keyof EventLog] === 'append seam'),
    );
    for (const call of Object.values(calls)) await call();
    expect(passed).toEqual(['message', 'object', 'snapshot']);
  });

  it('reads through the one read seam, whatever method is called', async () => {
    const { log, read } = await bed();
    await log.append(paused);
    await log.putSnapshot(emptySnapshot('gpu-1'), envelope);
    await log.append({ ...paused, type: 'migration.requested' } as unknown as Message).catch(() => undefined);
    const first = async (items: AsyncIterable<unknown>) => {
      for await (const _ of items) return;
    };
    const calls: Record<string, () => Promise<unknown>> = {
      replay: () => first(log.replay()),
      view: async () => (await log.view({ initial: 0, evolve: (n) => n + 1, snapshot: (n) => n })).close(),
      snapshots: () => first(log.snapshots({ aggregates: ['gpu'] })),
      replaySnapshots: () => first(log.replaySnapshots()),
      tail: () => first(log.tail({ families: ['controls'], since: 'all', end: true })),
      sink: () =>
        new Promise<void>((resolve) => {
          const worker = log.sink({
            stream: streamNames.log,
            sink: 'chat',
            handle: async () => {
              resolve(worker.stop());
              return { kind: 'done' };
            },
          });
        }),
    };
    const listed = Object.keys(ways).filter((name) => ways[name as keyof EventLog] === 'read seam');
    // Tasks have tests of their own, which read their bodies through the same seam.
    expect(Object.keys(calls).concat('tasks').sort()).toEqual(listed.sort());
    for (const [name, call] of Object.entries(calls)) {
      const before = read();
      await call();
      expect(read(), name).toBeGreaterThan(before);
    }
  });

  it('a withdrawn snapshot is not stored, and its message states what the envelope says', async () => {
    const { log } = await bed();
    const put = log.putSnapshot(emptySnapshot('gpu-1'), envelope, { veto: () => 'the log was read too long ago' });
    await expect(put).rejects.toBeInstanceOf(AppendWithdrawn);
    expect(await log.usage(streamNames.snapshots)).toMatchObject({ messages: 0 });
    const { message } = await log.putSnapshot(emptySnapshot('gpu-1'), envelope, { veto: () => null });
    const { log: mark, ...rest } = envelope;
    expect(message).toMatchObject({ ...rest, data: { log: mark } });
  });

  it('a message is withdrawn, or refused by its expectation, as the caller said', async () => {
    const { log } = await bed();
    await expect(log.append(paused, { veto: () => 'too late' })).rejects.toBeInstanceOf(AppendWithdrawn);
    await log.append(paused, { expectedLastSequence: 0 });
    const second = { ...paused, id: messageId.control('c2') };
    await expect(log.append(second, { expectedLastSequence: 0 })).rejects.toBeInstanceOf(AppendConflict);
  });

  it('no secret of this process gets into a snapshot', async () => {
    const { log } = await bed();
    new Secret('hunter3-hunter3');
    const problem = { code: 'nova-error', text: 'X-Auth-Token: hunter3-hunter3', detail: { text: 'hunter3-hunter3' } };
    const { message } = await log.putSnapshot({ ...emptySnapshot('gpu-1'), problems: [problem] } as never, envelope);
    const stored = await log.getSnapshot(message);
    expect(JSON.stringify([message, stored])).not.toContain('hunter3');
    expect(stored.problems[0]?.text).toContain('[secret]');
  });
});
