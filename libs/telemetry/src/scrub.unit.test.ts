import { Secret } from '@kronos/config';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createScrub, hideFields, isSecretName } from './scrub.ts';

describe('hiding secrets in text', () => {
  const scrub = createScrub([new Secret('hunter2-"x"'), new Secret('hunter2'), new Secret('abc')]);

  it('hides the known ones in every form they are written in', () => {
    const forms = [
      'hunter2-"x"',
      'hunter2-\\"x\\"',
      'hunter2-\\\\\\"x\\\\\\"',
      'hunter2-%22x%22',
      Buffer.from('hunter2').toString('base64'),
    ];
    for (const form of forms) expect(scrub(`a ${form} b`)).toBe('a [secret] b');
  });

  it('hides users and passwords inside URLs, and bearer and basic credentials', () => {
    expect(scrub('rabbit://kronos:pw@mq:5672/v and http://h/x@y')).toBe('rabbit://[secret]@mq:5672/v and http://h/x@y');
    expect(scrub('authorization: Bearer eyJhbGciOi.x-y_z, Basic dXNlcjpwYXNz')).toBe(
      'authorization: Bearer [secret], Basic [secret]',
    );
  });

  it('leaves the rest alone', () => {
    const text = 'plan gpu-42 released: abc, mail a@b.example, Basic rules, http://prom:9090/api?query=up';
    expect(scrub(text)).toBe(text);
  });
});

describe('hiding secrets in objects', () => {
  it.each([
    'password',
    'db_password',
    'adminPassword',
    'token',
    'x-auth-token',
    'X-Subject-Token',
    'authorization',
    'Set-Cookie',
    'secret',
    'applicationCredentialSecret',
    'api_key',
    'apiKey',
    'nkeySeed',
  ])('knows %s as the name of a secret', (name) => {
    expect(isSecretName(name)).toBe(true);
    expect(JSON.stringify(hideFields({ a: [{ [name]: 'hunter2' }], [name]: { deep: 'hunter2' } }))).not.toContain(
      'hunter2',
    );
  });

  it.each(['passwordFile', 'tokens', 'compass', 'subject', 'secretary', 'keyfile'])('knows %s as none', (name) => {
    expect(isSecretName(name)).toBe(false);
  });

  it('shows counts, whatever they are called', () => {
    expect(hideFields({ token: 3, password: null, secret: false })).toEqual({
      token: 3,
      password: null,
      secret: false,
    });
  });

  it('shows errors with their cause and code', () => {
    const error = Object.assign(new Error('outer', { cause: new TypeError('inner') }), {
      code: 'KRONOS_X',
      token: 'hunter2',
    });
    expect(hideFields(error)).toMatchObject({
      type: 'Error',
      message: 'outer',
      code: 'KRONOS_X',
      token: '[secret]',
      cause: { type: 'TypeError', message: 'inner' },
    });
  });

  it('ends for circles, depths and odd values, and keeps plain data as it is', () => {
    const circle: Record<string, unknown> = {
      big: 1n,
      bytes: new Uint8Array(3),
      when: new Date(0),
      set: new Set([1]),
      map: new Map([['a', 1]]),
    };
    circle.self = circle;
    expect(hideFields(circle)).toEqual({
      big: '1',
      bytes: '[3 bytes]',
      when: '1970-01-01T00:00:00.000Z',
      set: [1],
      map: { a: 1 },
      self: '[circular]',
    });
    const plain = fc.letrec((tie) => ({
      node: fc.oneof(
        { depthSize: 'small', maxDepth: 4 },
        fc.string(),
        fc.double(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('node')),
        fc.dictionary(fc.constantFrom('a', 'b', 'host', 'plan'), tie('node')),
      ),
    })).node;
    fc.assert(
      fc.property(plain, (value) => {
        expect(hideFields(value)).toEqual(value);
      }),
    );
  });
});
