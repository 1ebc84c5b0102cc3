import { format, inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Secret } from './secret.ts';

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
