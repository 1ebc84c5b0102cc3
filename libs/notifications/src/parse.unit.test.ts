import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseNotification } from './parse.ts';

const ID = '8733e50b-fbb5-4ffe-bb52-745a8381bb7c';
const bytes = (value: unknown): Uint8Array => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
const inner = (changes: Record<string, unknown> = {}): Record<string, unknown> => ({
  message_id: 'a6bca424-bb0d-46bb-9834-50558b487032',
  publisher_id: 'nova-compute:cmp1',
  event_type: 'instance.create.end',
  priority: 'INFO',
  payload: {
    'nova_object.name': 'InstanceCreatePayload',
    'nova_object.namespace': 'nova',
    'nova_object.version': '1.12',
    'nova_object.data': { uuid: ID, host: 'cmp1', state: 'active' },
  },
  timestamp: '2026-01-01 08:40:32.782000',
  _context_auth_token: 'token',
  ...changes,
});
const body = (message: unknown): Uint8Array =>
  bytes({ 'oslo.version': '2.0', 'oslo.message': JSON.stringify(message) });
const read = (changes: Record<string, unknown>) => {
  const parsed = parseNotification(body(inner(changes)));
  if (parsed.kind !== 'versioned') throw new Error(JSON.stringify(parsed));
  return parsed.notification;
};
const data = (values: Record<string, unknown>) => ({ payload: { 'nova_object.data': values } });

describe('a versioned notification', () => {
  it('names its server, the host of it, and the nova-compute that sent it', () => {
    expect(parseNotification(body(inner()))).toEqual({
      kind: 'versioned',
      notification: {
        id: 'a6bca424-bb0d-46bb-9834-50558b487032',
        event: 'instance.create.end',
        compute: 'cmp1',
        publisherHost: 'cmp1',
        server: { id: ID, host: 'cmp1', deleted: false },
      },
    });
    expect(read({ event_type: 'instance.delete.end', ...data({ uuid: ID, host: null }) }).server).toEqual({
      id: ID,
      host: null,
      deleted: true,
    });
    expect(read({ publisher_id: 'nova-compute:host.example:1' }).compute).toBe('host.example:1');
  });

  it('is not of a nova-compute where an API or a conductor sends it, be it in the name of one', () => {
    expect(read({ publisher_id: 'nova-api:cmp1' }).compute).toBeNull();
    expect(read({ event_type: 'instance.update' }).compute).toBeNull();
    expect(read({ event_type: 'service.update', ...data({ host: 'cmp1' }) })).toMatchObject({
      compute: null,
      server: null,
    });
  });

  it('names no server where nothing changed', () => {
    expect(read({ event_type: 'instance.exists' })).toMatchObject({ compute: 'cmp1', server: null });
    expect(read({ event_type: 'aggregate.add_host.end', ...data({ id: 1 }) }).server).toBeNull();
  });
});

describe('any other message', () => {
  it('is unversioned without a versioned object', () => {
    const old = inner({ event_type: 'compute.instance.create.end', payload: { instance_id: ID } });
    expect(parseNotification(body(old))).toEqual({ kind: 'unversioned' });
  });

  it.each([
    ['nothing', bytes('')],
    ['no JSON', bytes('{')],
    ['no envelope', bytes({ message: '{}' })],
    ['an envelope of no text', bytes({ 'oslo.message': {} })],
    ['no JSON inside', bytes({ 'oslo.message': '{' })],
    ['no publisher', body(inner({ publisher_id: 'nova-compute' }))],
    ['no event', body(inner({ event_type: null }))],
    ['a name that is too long', body(inner({ publisher_id: `nova-compute:${'x'.repeat(300)}` }))],
    ['a server without a uuid', body(inner(data({ uuid: 'token', host: 'cmp1' })))],
    ['a server without a host', body(inner(data({ uuid: ID })))],
    ['a host that is no text', body(inner(data({ uuid: ID, host: { a: 1 } })))],
    ['too many bytes', bytes(' '.repeat(2 * 1024 ** 2))],
    ['too much depth', bytes(`{"oslo.message":${'['.repeat(100_000)}`)],
    ['too much depth inside', bytes({ 'oslo.message': '['.repeat(10_000) })],
  ])('is bad as %s, and not quoted', (_, message) => {
    const parsed = parseNotification(message);
    expect(parsed.kind).toBe('bad');
    expect(JSON.stringify(parsed)).not.toContain('token');
  });

  it('never throws', () => {
    fc.assert(
      fc.property(fc.json(), fc.uint8Array(), (json, raw) => {
        parseNotification(raw);
        parseNotification(bytes(json));
        parseNotification(bytes({ 'oslo.message': json }));
        expect(
          parseNotification(body(inner({ payload: { 'nova_object.data': JSON.parse(json) } }))).kind,
        ).toBeDefined();
      }),
    );
  });
});
