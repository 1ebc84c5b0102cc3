import { describe, expect, it } from 'vitest';
import { attemptIn } from './events.ts';
import { familyOf, type LogEvent, messagesByFamily } from './messages.ts';
import { parseMessage, readLogEvent } from './reading.ts';

const dispatched = {
  type: 'plan.dispatched',
  version: 1,
  id: 'plan.dispatched:gpu-1',
  time: '2026-01-02T03:04:05.678Z',
  aggregate: 'gpu',
  by: { service: 'planner', instance: 'p1', version: '0.1.0' },
  correlationId: 'gpu-1',
  causationId: 'cycle.decided:gpu-1',
  data: { planId: 'gpu-1', tasks: 3 },
};

describe('parseMessage', () => {
  it('reads a message and drops fields that this version does not know', () => {
    const parsed = parseMessage({ ...dispatched, data: { ...dispatched.data, since: 'a later version' } });
    expect(parsed).toEqual({ ok: true, message: dispatched });
  });

  it('names the field that does not fit', () => {
    const parsed = parseMessage({ ...dispatched, data: { planId: 'gpu-1', tasks: 'three' } });
    expect(parsed).toMatchObject({ ok: false, type: 'plan.dispatched', version: 1 });
    expect(parsed.ok ? '' : parsed.problem).toContain('data.tasks');
  });

  it.each([
    [{ ...dispatched, type: 'plan.painted' }, 'unknown type plan.painted'],
    [{ ...dispatched, version: 2 }, 'version'],
    [{ ...dispatched, time: '2026-01-02 03:04' }, 'time'],
    ['text', 'no type and version'],
    [null, 'no type and version'],
    [[], 'no type and version'],
  ])('describes %j instead of throwing', (body, problem) => {
    const parsed = parseMessage(body);
    expect(parsed.ok ? '' : parsed.problem).toContain(problem);
  });
});

describe('readLogEvent', () => {
  it('gives the event', () => expect(readLogEvent(dispatched, 'gpu')).toEqual(dispatched));

  it('gives an unreadable event, never nothing, for a version of the future', () => {
    expect(readLogEvent({ ...dispatched, version: 7 }, 'gpu')).toMatchObject({
      type: 'unreadable',
      aggregate: 'gpu',
      claimedType: 'plan.dispatched',
      claimedVersion: 7,
    });
  });

  it('does not take a message of another family for an event of the log', () => {
    const checkpoint = {
      ...dispatched,
      type: 'state.checkpointed',
      data: { sequence: 1, foldVersion: 1, digest: 'sha256:0', state: {}, body: null },
    };
    expect(readLogEvent(checkpoint, 'gpu')).toMatchObject({ type: 'unreadable', claimedType: 'state.checkpointed' });
  });
});

describe('familyOf', () => {
  it('knows every type, each in one family', () => {
    const types = Object.entries(messagesByFamily).flatMap(([family, schemas]) =>
      schemas.map((s) => [s.shape.type.value, family] as const),
    );
    expect(new Set(types.map(([type]) => type)).size).toBe(types.length);
    for (const [type, family] of types) expect(familyOf(type)).toBe(family);
  });
});

describe('attemptIn', () => {
  const of = { taskId: 'gpu-1-s1', planId: 'gpu-1', serverId: 'vm', attempt: 2, from: 'h1', destination: 'h2' };

  it.each(['migration.started', 'migration.failed', 'migration.verifying', 'migration.confirmRequested'])(
    'finds the attempt of %s',
    (type) => {
      expect(attemptIn({ type, data: of } as unknown as LogEvent)).toEqual(of);
    },
  );

  it('finds none in the events of hosts, VMs and plans', () => {
    const host = { drainId: 'd', host: 'h1', act: 'disable', attempt: 1 };
    for (const data of [host, { serverId: 'vm', seconds: 60 }, { planId: 'gpu-1', tasks: 3 }])
      expect(attemptIn({ type: 'other', data } as unknown as LogEvent)).toBeNull();
    const unreadable = { type: 'unreadable', aggregate: 'gpu', claimedType: 'x', claimedVersion: 1, problem: '' };
    expect(attemptIn({ ...unreadable, remedy: 'upgrade' } as Parameters<typeof attemptIn>[0])).toBeNull();
  });
});
