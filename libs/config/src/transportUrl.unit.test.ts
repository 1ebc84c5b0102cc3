import { describe, expect, it } from 'vitest';
import { parseTransportUrl } from './transportUrl.ts';

const parsed = (url: string): unknown => {
  const result = parseTransportUrl(url);
  return result.ok ? result.transport : result.problem;
};
const broker = (host: string, port: number, username = 'guest', password = 'guest') => ({
  host,
  port,
  username,
  password,
});

describe('a transport URL of oslo.messaging', () => {
  it('names one broker or several, each with its user', () => {
    expect(parsed('rabbit://nova:p%40ss@one:5673/cell')).toEqual({
      brokers: [broker('one', 5673, 'nova', 'p@ss')],
      virtualHost: 'cell',
      tls: false,
    });
    expect(parsed('rabbit://a:x@one:1,b:y@two:2,three:3/')).toEqual({
      brokers: [broker('one', 1, 'a', 'x'), broker('two', 2, 'b', 'y'), broker('three', 3, 'b', 'y')],
      virtualHost: '/',
      tls: false,
    });
  });

  it('has the port of its protocol, and IPv6 addresses in brackets', () => {
    expect(parsed('rabbit://[2001:db8::1]?ssl=1')).toEqual({
      brokers: [broker('2001:db8::1', 5671)],
      virtualHost: '/',
      tls: true,
    });
    expect(parsed('rabbit://one/%2Fnova')).toEqual({
      brokers: [broker('one', 5672)],
      virtualHost: '/nova',
      tls: false,
    });
  });

  it.each([
    ['http://one/', 'is not of the form rabbit://'],
    ['rabbit://', 'names no host and port in place 1 of its hosts'],
    ['rabbit://one:1,u:secret@:2/', 'names no host and port in place 2 of its hosts'],
    ['rabbit://one:70000/', 'names no host and port in place 1 of its hosts'],
    ['rabbit://one/%zz', 'has a virtual host that is not percent-encoded'],
  ])('is refused as %s, and not quoted', (url, problem) => {
    const result = parseTransportUrl(url);
    expect(result).toMatchObject({ ok: false, problem });
    expect(JSON.stringify(result)).not.toContain('secret');
  });
});
