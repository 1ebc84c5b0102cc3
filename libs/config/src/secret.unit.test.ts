import { format, inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { forgetSecrets, knownSecrets, learnSecret, Secret } from './secret.ts';

describe('the known secrets', () => {
  const known = () => [...knownSecrets().values];

  it('are those of the configuration, and the latest that were learned', () => {
    const { version } = knownSecrets();
    new Secret('of the configuration');
    for (let i = 0; i < 200; i++) learnSecret(`a token, number ${i}`);
    expect(known()).toContain('of the configuration');
    expect(known()).toContain('a token, number 199');
    expect(known()).not.toContain('a token, number 0');
    expect(known().length).toBeLessThan(100);
    expect(knownSecrets().version).toBeGreaterThan(version);
  });

  it('are not changed by what is known already, or too short to be a token', () => {
    const { version } = knownSecrets();
    new Secret('of the configuration');
    learnSecret('of the configuration');
    learnSecret('short');
    expect(knownSecrets().version).toBe(version);
  });

  it('are none once they are forgotten', () => {
    const { version } = knownSecrets();
    forgetSecrets();
    expect(known()).toEqual([]);
    expect(knownSecrets().version).toBeGreaterThan(version);
  });
});

describe('a secret', () => {
  const secret = new Secret('hunter2');

  it('shows itself only when asked to', () => {
    expect(secret.reveal()).toBe('hunter2');
    const shown = [
      `${secret}`,
      String(secret),
      `a${secret as unknown as string}`,
      JSON.stringify({ secret }),
      inspect(secret),
      inspect({ deep: [{ secret }] }, { depth: 9, showHidden: true, getters: true }),
      format('%s %o %O %j', secret, secret, secret, secret),
      JSON.stringify(structuredClone(secret)),
      Object.getOwnPropertyNames(secret).join(),
    ];
    for (const text of shown) expect(text).not.toContain('hunter2');
    expect(shown[0]).toBe('[secret]');
    expect(shown[3]).toBe('{"secret":"[secret]"}');
  });
});
