import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { BadAnswer } from './errors.ts';
import { parseAs } from './parse.ts';
import { DEFAULT_RETRY, parseRetryAfter, retryDelayMs } from './retry.ts';
import { joinUrl, safeUrl } from './url.ts';

describe('retryDelayMs', () => {
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const retry = fc.integer({ min: 1, max: 60 });

  it('a wait is never longer than the longer of its two caps, and never negative', () => {
    const after = fc.option(fc.integer({ min: 0, max: 1e9 }), { nil: undefined });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1e6 }), retry, random, after, (backoffMs, number, luck, retryAfterMs) => {
        const wait = retryDelayMs(DEFAULT_RETRY, { backoffMs, retry: number, retryAfterMs }, luck);
        expect(wait).toBeGreaterThanOrEqual(0);
        expect(wait).toBeLessThanOrEqual(Math.max(DEFAULT_RETRY.backoffMaxMs, DEFAULT_RETRY.retryAfterMaxMs));
      }),
    );
  });

  it('a wait is never shorter than a Retry-After within its cap', () => {
    fc.assert(
      fc.property(retry, random, fc.integer({ min: 0, max: 30_000 }), (number, luck, retryAfterMs) => {
        const wait = retryDelayMs(DEFAULT_RETRY, { backoffMs: 500, retry: number, retryAfterMs }, luck);
        expect(wait).toBeGreaterThanOrEqual(retryAfterMs);
      }),
    );
  });
});

describe('parseRetryAfter', () => {
  it.each([
    ['0', 0],
    [' 12 ', 12_000],
    ['Thu, 01 Jan 1970 00:00:05 GMT', 4_000],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
    ['-5', undefined],
    ['1.5', undefined],
    ['soon', undefined],
    [undefined, undefined],
  ])('reads %j', (value, expected) => {
    expect(parseRetryAfter(value, 1000)).toBe(expected);
  });
});

describe('safeUrl', () => {
  it('shows no user, password or secret parameter', () => {
    const text = safeUrl('https://anna:hunter2@host:5000/v3?token=abc&api_key=def&name=x');
    expect(text).not.toMatch(/anna|hunter2|abc|def/);
    expect(text).toBe('https://host:5000/v3?token=***&api_key=***&name=x');
  });

  it('cuts a long query, not the path', () => {
    const text = safeUrl(`http://host/${'p'.repeat(400)}?query=${'q'.repeat(5000)}`);
    expect(text.length).toBeLessThan(800);
    expect(text).toContain('p'.repeat(400));
  });
});

describe('joinUrl', () => {
  it('joins with one slash and leaves out what is not given', () => {
    const query = { limit: 10, marker: undefined, all: true, in: ['a', 'b c'] };
    expect(joinUrl('http://host/v2.1/', '/servers', query)).toBe(
      'http://host/v2.1/servers?limit=10&all=true&in=a&in=b+c',
    );
  });
});

describe('parseAs', () => {
  const place = { service: 'nova', method: 'GET', url: 'http://nova/servers' };
  const schema = z.object({ servers: z.array(z.object({ id: z.string() })) });
  const refusal = (text: string): unknown => {
    try {
      return parseAs(place, schema, text);
    } catch (error) {
      return error;
    }
  };

  it('lets unknown fields pass', () => {
    expect(parseAs(place, schema, '{"servers": [{"id": "a", "new": 1}], "more": {}}')).toEqual({
      servers: [{ id: 'a' }],
    });
  });

  it.each([
    ['{"servers": [{"id": "a"}, {}]}', 'servers[1].id'],
    ['{"servers": {}}', 'servers'],
    ['{}', 'servers'],
    ['[]', '(body)'],
  ])('names URL and field of %s', (text, field) => {
    const error = refusal(text);
    expect(error).toBeInstanceOf(BadAnswer);
    expect(error).toMatchObject({ code: 'KRONOS_HTTP_BAD_ANSWER', field, url: place.url });
    expect(error).toHaveProperty('message', expect.stringContaining(`GET http://nova/servers: ${field}: `));
  });

  it.each(['', '<html>Bad gateway</html>', '{"servers": ['])('refuses the body %j', (text) => {
    expect(refusal(text)).toBeInstanceOf(BadAnswer);
  });
});

describe('the error codes', () => {
  it('are each in the README, and no other', () => {
    const codes = (path: string): string[] =>
      [...readFileSync(new URL(path, import.meta.url), 'utf8').matchAll(/KRONOS_HTTP_[A-Z_]+[A-Z]/g)].map(
        ([code]) => code,
      );
    expect([...new Set(codes('../README.md'))].sort()).toEqual([...new Set(codes('./errors.ts'))].sort());
  });
});
