import { forgetSecrets, learnSecret, Secret } from '@kronos/config/secret';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { hideFields, isSecretName, scrub, scrubbedJson } from './scrub.ts';

/** A process that knows these secrets and no others. */
function knowing(...secrets: readonly string[]): typeof scrub {
  forgetSecrets();
  for (const secret of secrets) new Secret(secret);
  return scrub;
}

describe('hiding secrets in text', () => {
  beforeEach(() => void knowing('hunter2-"x"', 'hunter2', 'abc'));

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

  it('hides them in base64, whatever stands before them: as in an Authorization header', () => {
    for (const user of ['', 'k', 'kr', 'kro', 'kronos-scorer', 'a:b'])
      for (const encoding of ['base64', 'base64url'] as const) {
        const header = Buffer.from(`${user}:hunter2-"x"`).toString(encoding);
        expect(scrub(`you sent "${header}"!`), user).toBe('you sent "[secret]"!');
        expect(scrub(`Authorization: Basic ${header}`)).toBe('Authorization: Basic [secret]');
      }
    expect(scrub(Buffer.from('nothing to hide here').toString('base64'))).not.toContain('[secret]');
  });

  it('hides them as forms, HTML and JSON of other programs have them', () => {
    const odd = knowing(`p w&<"'!/x`);
    for (const form of [
      'p+w%26%3C%22%27%21%2Fx',
      'p%20w%26%3c%22%27%21%2fx',
      'p w&amp;&lt;&quot;&#39;!/x',
      'p w&amp;&lt;&quot;&#x27;!/x',
      `p w\\u0026\\u003c\\"'!/x`,
    ])
      expect(odd(`a ${form} b`), form).toBe('a [secret] b');
  });

  it('hides the beginning of one that was cut off', () => {
    const cut = knowing('correct-horse');
    expect(cut('bad answer: "x correct-ho...')).toBe('bad answer: "x [secret]...');
    expect(cut('x corr…')).toBe('x [secret]…');
    const header = Buffer.from('k:correct-horse').toString('base64');
    expect(cut(`x ${header.slice(3, -4)}...`)).toBe('x [secret]...');
    expect(cut('it is correct ... and so on…')).toBe('it is correct ... and so on…');
    expect(knowing('correct&horse')('x correct&am...')).toBe('x [secret]...');
  });

  it('hides a short one as a word, and none that would hide half of what is said', () => {
    const short = knowing('admin', '1234', 'a');
    expect(short('admin, "admin" and administrators 1234 a')).toBe('[secret], "[secret]" and administrators 1234 a');
    expect(knowing('secret')('a secret, [secret]')).toBe('a [secret], [secret]');
  });

  it('in JSON, hides values and never the names of fields, which a common word as a password would change', () => {
    learnSecret('aggregate');
    const body = { aggregate: 'gpu', list: [{ aggregate: null, text: 'the aggregate of the user' }], n: 3 };
    expect(JSON.parse(scrubbedJson(body))).toEqual({
      aggregate: 'gpu',
      list: [{ aggregate: null, text: 'the [secret] of the user' }],
      n: 3,
    });
    expect(scrubbedJson({ password: 'x1y2', text: 'the aggregate' })).toBe(
      '{"password":"[secret]","text":"the [secret]"}',
    );
  });

  it('hides what the process has learned, from then on', () => {
    expect(scrub('token of-the-service-1')).toBe('token of-the-service-1');
    learnSecret('of-the-service-1');
    expect(scrub('token of-the-service-1')).toBe('token [secret]');
    new Secret('of-the-file-2');
    expect(scrub('of-the-file-2 of-the-service-1')).toBe('[secret] [secret]');
  });

  it('hides any secret in any text, however it is written', () => {
    const secret = fc.string({ unit: 'grapheme', minLength: 6, maxLength: 12 }).filter((text) => !/\s/.test(text));
    fc.assert(
      fc.property(fc.array(secret, { minLength: 1, maxLength: 2 }), fc.nat(), fc.string(), (secrets, which, around) => {
        const one = secrets[which % secrets.length] ?? '';
        const hides = knowing(...secrets);
        const forms = [one, JSON.stringify(one).slice(1, -1), encodeURIComponent(one)];
        for (const form of forms) expect(hides(`${around} ${form} ${around}`)).toContain('[secret]');
        expect(hides(Buffer.from(`k:${one}`).toString('base64'))).toContain('[secret]');
      }),
      { numRuns: 30 },
    );
  });

  it('hides seeds of nkeys and tokens of Keystone by their form', () => {
    const seed = `SU${'A2B3C4D5'.repeat(7)}`;
    const token = `gAAAAABl${'x_-9'.repeat(20)}`;
    expect(scrub(`seed ${seed}, token ${token}`)).toBe('seed [secret], token [secret]');
    expect(scrub('X-Auth-Token: abcdef0123 {"x-subject-token":"abcdef0123"}')).toBe(
      'X-Auth-Token: [secret] {"x-subject-token":"[secret]"}',
    );
  });

  it('takes no longer for large texts than one look at them', () => {
    const large = `${'abcdef0123'.repeat(100_000)}... ${'=/+-'.repeat(100_000)}`;
    const began = performance.now();
    expect(scrub(large)).toBe(large);
    expect(performance.now() - began).toBeLessThan(60_000);
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
