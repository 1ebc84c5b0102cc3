import { describe, expect, it } from 'vitest';
import { hostGuard, hostName } from './hosts.ts';

describe('the name in a Host header', () => {
  it.each([
    ['ledger.example.org', 'ledger.example.org'],
    ['Ledger.Example.ORG.:9784', 'ledger.example.org'],
    ['127.0.0.1:9784', '127.0.0.1'],
    ['[::1]:9784', '::1'],
    ['[fd00::A]', 'fd00::a'],
  ])('%s is %s', (header, name) => expect(hostName(header)).toBe(name));

  it.each([undefined, '', 'a b', 'a/b', 'user@host', 'host:port', '[::1', '::1', 'a,b', 'a:1:2'])(
    '%s is none',
    (header) => expect(hostName(header)).toBeNull(),
  );
});

describe('a request is answered', () => {
  const guard = hostGuard('0.0.0.0', ['kronos.example.org', 'KRONOS-ledger', 'fd00::1']);

  it.each(['localhost:9784', '127.0.0.1', '[::1]:1', 'kronos.example.org', 'kronos-ledger:9784', '[fd00::1]:9784'])(
    'under the name %s',
    (header) => expect(guard(header, '10.0.0.7')).toBe(true),
  );

  it('under the configured address, and the one that the connection came to', () => {
    expect(hostGuard('10.0.0.7', [])('10.0.0.7:9784', '10.0.0.7')).toBe(true);
    expect(guard('10.0.0.7:9784', '::ffff:10.0.0.7')).toBe(true);
    expect(guard('[fd00::2]', 'FD00::2')).toBe(true);
  });

  it.each([
    'evil.example.com',
    'localhost.evil.example.com',
    'xkronos.example.org',
    '10.0.0.8',
    '0.0.0.0',
    undefined,
    '',
  ])('not under the name %s', (header) => expect(guard(header, '10.0.0.7')).toBe(false));
});
