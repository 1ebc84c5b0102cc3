import { readFileSync } from 'node:fs';
import { streamNames } from '@kronos/contracts';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { pausedEvent } from '../testing/messages.ts';
import { natsFiles } from './admin/deploy.ts';
import { permissionsOf, users } from './admin/permissions.ts';
import { endOf, readPubAck, unsureAfter } from './log/append.ts';
import { parseDelivery } from './log/reader.ts';
import { atLeast, capabilitiesOf, judgeNatsServer } from './wire/capabilities.ts';
import { definitionDifferences, taskConsumerName } from './wire/definitions.ts';
import * as errors from './wire/errors.ts';
import { cloudEvent, headerValue } from './wire/headers.ts';
import { hostPort, inboxPrefixOf } from './wire/link.ts';
import { plainText } from './wire/trouble.ts';

describe('capabilities', () => {
  test('versions compare by their numbers, and text that is no version has nothing', () => {
    expect(atLeast('2.10.0', '2.9.10')).toBe(true);
    expect(atLeast('2.9.10', '2.9.9')).toBe(true);
    expect(atLeast('2.9.10', '2.10.0')).toBe(false);
    expect(atLeast('2.12.3-RC.1', '2.12.3')).toBe(true);
    expect(atLeast('master', '2.9.0')).toBe(false);
  });

  test('2.9 has no reasons for term, no sync_interval and no exact checks over replicas', () => {
    const old = capabilitiesOf('2.9.10');
    expect(old.namedConsumers).toBe(true);
    expect([old.termReason, old.syncInterval, old.replicas, old.expectedSubjectFilter]).toEqual([
      false,
      false,
      false,
      false,
    ]);
    expect(Object.values(capabilitiesOf('2.14.0')).every(Boolean)).toBe(true);
  });

  test.each([
    ['2.8.4', 1, 'refuse'],
    ['2.9.10', 1, 'fine'],
    ['2.9.10', 3, 'refuse'],
    ['2.10.29', 3, 'refuse'],
    ['2.11.0', 3, 'warn'],
    ['2.12.2', 3, 'warn'],
    ['2.12.3', 3, 'fine'],
    ['2.14.5', 3, 'fine'],
  ] as const)('nats-server %s with %i replicas: %s', (version, replicas, verdict) => {
    expect(judgeNatsServer(version, replicas).verdict).toBe(verdict);
  });

  test.each([
    ['2.8.4', 1],
    ['2.10.29', 3],
    ['2.12.2', 3],
  ] as const)('what is said of nats-server %s with %i replicas stands in docs/nats.md', (version, replicas) => {
    const page = readFileSync(new URL('../../../docs/nats.md', import.meta.url), 'utf8');
    expect(page).toContain(`\n${judgeNatsServer(version, replicas).text}\n`);
  });
});

describe('names of durables', () => {
  test('stay below the limit of JetStream, hold no forbidden character, and no two aggregates share one', () => {
    const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 255 }).filter((s) => s.isWellFormed());
    fc.assert(
      fc.property(name, name, (a, b) => {
        const durable = taskConsumerName(a);
        expect(durable.length).toBeLessThanOrEqual(255);
        expect(durable).toMatch(/^[A-Za-z0-9_=-]+$/);
        if (a !== b) expect(taskConsumerName(b)).not.toBe(durable);
      }),
    );
  });

  test('a long name is cut, keeps its beginning and gets a hash', () => {
    const long = taskConsumerName('ä'.repeat(250));
    expect(long).toMatch(/^tasks-(=C3=A4)+.*=sha256-[0-9a-f]{64}$/);
    expect(long).not.toBe(taskConsumerName(`${'ä'.repeat(249)}b`));
  });
});

describe('comparing configurations', () => {
  test('zero, false and absent are one; other fields must be equal; what is not asked for is not looked at', () => {
    expect(definitionDifferences({ max_age: 0, deny_purge: false, a: 1 }, { a: 1, b: 2 })).toEqual([]);
    expect(definitionDifferences({ subjects: ['a', 'b'], a: 1 }, { subjects: ['a'], a: 2 }, ['a'])).toEqual([
      { field: 'subjects', want: ['a', 'b'], have: ['a'] },
    ]);
    expect(definitionDifferences({ allow_msg_ttl: true }, {})).toEqual([
      { field: 'allow_msg_ttl', want: true, have: undefined },
    ]);
  });
});

describe('the answer to a publish', () => {
  test.each([
    ['{"stream":"S","seq":7}', { kind: 'stored', sequence: 7, duplicate: false }],
    ['{"stream":"S","seq":7,"duplicate":true}', { kind: 'stored', sequence: 7, duplicate: true }],
    [
      '{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 12"}}',
      { kind: 'conflict', actual: 12 },
    ],
    ['{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"}}', { kind: 'conflict', actual: null }],
    [
      '{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}',
      { kind: 'full', text: 'maximum bytes exceeded (10077)', ofServer: false },
    ],
    [
      '{"error":{"code":503,"err_code":10163,"description":"transient"}}',
      { kind: 'retry', unsure: false, text: 'transient (10163)' },
    ],
    [
      '{"error":{"code":409,"err_code":10158,"description":"in process"}}',
      { kind: 'retry', unsure: false, text: 'in process (10158)' },
    ],
    [
      '{"error":{"code":400,"err_code":10054,"description":"too large"}}',
      { kind: 'refused', text: 'too large (10054)' },
    ],
    ['{}', { kind: 'retry', unsure: true, text: 'the answer names no stream and sequence' }],
  ] as const)('%s', (text, attempt) => {
    expect(readPubAck(text)).toEqual(attempt);
  });

  test('an attempt that may be stored leaves that open for ever; others do not', () => {
    const open = { kind: 'retry', unsure: true, text: '' } as const;
    const closed = { kind: 'retry', unsure: false, text: '' } as const;
    const full = { kind: 'full', text: '', ofServer: false } as const;
    expect([closed, full].reduce(unsureAfter, false)).toBe(false);
    for (const attempts of [[open], [open, closed], [open, full], [closed, open, full]])
      expect(attempts.reduce(unsureAfter, false)).toBe(true);
  });

  test('the log has the last word on what was stored; without it, an open attempt stays unknown', () => {
    expect([endOf({ unsure: true, found: 'this' }), endOf({ unsure: false, found: 'this' })]).toEqual([
      'stored',
      'stored',
    ]);
    expect([endOf({ unsure: true, found: 'another' }), endOf({ unsure: false, found: 'another' })]).toEqual([
      'notStored',
      'notStored',
    ]);
    expect([endOf({ unsure: true, found: 'nothing' }), endOf({ unsure: false, found: 'nothing' })]).toEqual([
      'unknown',
      'notStored',
    ]);
  });

  test('an answer that is no JSON leaves it open whether the message was stored', () => {
    expect(readPubAck('hello')).toMatchObject({ kind: 'retry', unsure: true });
  });
});

describe('headers', () => {
  test('are printable ASCII, whatever the names, and percent-decoding gives the text back', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }).filter((s) => s.isWellFormed()),
        (text) => {
          const value = headerValue(text);
          expect(value).toMatch(/^[!-~]*$/);
          expect(decodeURIComponent(value)).toBe(text);
        },
      ),
    );
  });

  test('a message is a CloudEvent', () => {
    expect(cloudEvent(pausedEvent('c1', 'größe 1'))).toEqual({
      specversion: '1.0',
      id: 'control:c1',
      source: '/kronos/operator/test-1',
      type: 'kronos.aggregate.paused.v1',
      time: '2026-01-02T03:04:05.678Z',
      subject: 'größe 1',
      datacontenttype: 'application/json',
      correlationid: 'c1',
    });
  });
});

describe('reply subjects of deliveries', () => {
  const said = { deliveries: 2, streamSequence: 30, consumerSequence: 4, storedAt: 1795187740071, pending: 5 };
  test('are read in the short and in the long form', () => {
    expect(parseDelivery('$JS.ACK.KRONOS_LOG.c1.2.30.4.1795187740071881218.5')).toEqual(said);
    expect(parseDelivery('$JS.ACK.hub.AbCdEf.KRONOS_LOG.c1.2.30.4.1795187740071881218.5')).toEqual(said);
    expect(parseDelivery('$JS.ACK.hub.AbCdEf.KRONOS_LOG.c1.2.30.4.1795187740071881218.5.rnd')).toEqual(said);
  });

  test('other subjects are none', () => {
    expect(parseDelivery('_INBOX.abc')).toBeNull();
    expect(parseDelivery('$JS.ACK.short')).toBeNull();
  });
});

describe('texts', () => {
  test('no password of a URL gets into a message', () => {
    expect(plainText(new Error('cannot reach nats://me:secret@host:4222'))).not.toContain('secret');
    expect(hostPort('nats://me:secret@host')).toBe('host:4222');
    expect(new errors.NatsUnreachable(['host:4222'], 'refused').message).toContain('host:4222');
  });

  test('an inbox prefix is one token', () => {
    expect(inboxPrefixOf('my service.1')).toBe('_INBOX_my-service-1');
  });
});

test('README.md lists every error with its code, and no other', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const listed = [...readme.matchAll(/^\| `(KRONOS_[A-Z_]+)` +\| `(\w+)`/gm)].map(
    ([, code, name]) => `${name} ${code}`,
  );
  const source = readFileSync(new URL('./wire/errors.ts', import.meta.url), 'utf8');
  const classes = [...source.matchAll(/class (\w+) extends EventLogError \{\n {2}readonly code = '(\w+)'/g)];
  expect(listed.sort()).toEqual(classes.map(([, name, code]) => `${name} ${code}`).sort());
  expect(classes.length).toBe(Object.values(errors).length - 1);
});

describe('permissions', () => {
  test('the files in deploy/nats are what the table says', () => {
    for (const [path, text] of natsFiles())
      expect(readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8'), path).toBe(text);
  });

  test('each family has the writers it must have, and no more', () => {
    const writers = (family: string) =>
      Object.entries(users)
        .filter(([user, rights]) => permissionsOf(user, rights).publish.includes(`kronos.${family}.*`))
        .map(([user]) => user)
        // Writes what others wrote before, and is used when none of them runs.
        .filter((user) => user !== 'restorer');
    expect(writers('snapshots')).toEqual(['scorer']);
    expect(writers('inventory')).toEqual(['scorer']);
    expect(writers('plans')).toEqual(['planner']);
    expect(writers('migrations')).toEqual(['planner', 'executor']);
    expect(writers('results')).toEqual(['planner', 'executor']);
    expect(writers('controls')).toEqual(['operator', 'console', 'provisioner']);
    // Neither operators nor the console may skip events under their own user.
    expect(writers('custody')).toEqual(['custodian']);
    expect(writers('ledger')).toEqual(['ledger']);
  });

  test('nobody may delete or purge, publish everything, or read anything but its own inbox', () => {
    for (const [user, rights] of Object.entries(users)) {
      const { publish, subscribe } = permissionsOf(user, rights);
      // Consumers of what one reads, and nothing else: never a durable of the work queue.
      const deletes = rights.reads.filter((stream) => stream !== streamNames.migrations);
      expect(publish.filter((s) => /DELETE|PURGE|^>|^kronos\.>|^\$JS\.API\.>|^\$JS\.>/.test(s))).toEqual(
        deletes.map((stream) => `$JS.API.CONSUMER.DELETE.${stream}.*`),
      );
      expect(subscribe).toEqual([`_INBOX_${user}.>`]);
    }
  });
});
