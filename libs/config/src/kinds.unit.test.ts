import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  headersOption,
  parseBool,
  parseBytes,
  parseCellMap,
  parseCells,
  parseChoice,
  parseFloat10,
  parseHeaders,
  parseInt10,
  parseList,
  parseSeconds,
  parseText,
  parseUrl,
  parseVerify,
  verifyOf,
} from './kinds.ts';

const value = <T>(parsed: { ok: boolean; value?: T }) => (parsed.ok ? parsed.value : undefined);
const told = (parsed: { ok: true } | { ok: false; problem: string; remedy: string }) =>
  parsed.ok ? 'ok' : `${parsed.problem}. ${parsed.remedy}`;

describe('one value', () => {
  it('boolean: the words of oslo.config in any case', () => {
    expect(['true', 'True', '1', 'yes', 'ON'].map((w) => value(parseBool(w)))).toEqual(Array(5).fill(true));
    expect(['false', 'FALSE', '0', 'no', 'off'].map((w) => value(parseBool(w)))).toEqual(Array(5).fill(false));
    expect(told(parseBool('treu'))).toBe('"treu" is neither true nor false. Write true or false.');
    expect(told(parseBool('true # no'))).toContain('A comment needs its own line.');
  });

  it('integer: decimal digits and nothing else, within its range', () => {
    expect(['0', '+5', '-1', '007'].map((w) => value(parseInt10(w, {})))).toEqual([0, 5, -1, 7]);
    for (const wrong of ['', '1.0', '1e3', '0x10', '1 2', 'Infinity', '99999999999999999999'])
      expect(parseInt10(wrong, {}).ok).toBe(false);
    expect(told(parseInt10('0', { min: 1 }))).toBe('0 is less than 1. Write a whole number of at least 1.');
    expect(told(parseInt10('9', { min: 1, max: 5 }))).toBe('9 is more than 5. Write a whole number from 1 to 5.');
  });

  it('number: finite decimals', () => {
    expect(['0.5', '.5', '5.', '1e-3', '-2'].map((w) => value(parseFloat10(w, {})))).toEqual([0.5, 0.5, 5, 0.001, -2]);
    for (const wrong of ['', 'NaN', 'inf', '1e999', '1,5', '.']) expect(parseFloat10(wrong, {}).ok).toBe(false);
  });

  it('seconds: a unit is refused, with the figure to write', () => {
    expect(value(parseSeconds('0.5', { min: 0 }))).toBe(0.5);
    expect(told(parseSeconds('10m', {}))).toBe('"10m" has a unit, and durations are plain seconds. Write 600.');
    expect(told(parseSeconds('1.5 h', {}))).toContain('Write 5400.');
    expect(told(parseSeconds('soon', { min: 1 }))).toBe(
      '"soon" is not a number of seconds. Write a number of at least 1.',
    );
  });

  it('bytes: plain or with a binary unit', () => {
    expect(['1024', '1KiB', '10 GiB'].map((w) => value(parseBytes(w, {})))).toEqual([1024, 1024, 10 * 1024 ** 3]);
    for (const wrong of ['10GB', '1.5GiB', '-1', 'big']) expect(parseBytes(wrong, {}).ok).toBe(false);
  });

  it('choice: exactly one of its values', () => {
    expect(value(parseChoice('auto', ['auto', 'manual']))).toBe('auto');
    expect(told(parseChoice('Auto', ['auto', 'manual']))).toBe(
      '"Auto" is not one of its values. Write one of auto, manual.',
    );
  });

  it('text: one line', () => {
    expect(value(parseText('a = b # c'))).toBe('a = b # c');
    expect(parseText('a\nb').ok).toBe(false);
  });

  it('URL: its schemes, a host, and no credentials, which it does not show', () => {
    expect(value(parseUrl('https://a.example:5000/v3/', ['http', 'https']))).toBe('https://a.example:5000/v3');
    for (const wrong of ['a:5000', 'ftp://a', 'http://', 'nonsense'])
      expect(parseUrl(wrong, ['http', 'https']).ok).toBe(false);
    const secret = told(parseUrl('http://user:hunter2@a', ['http']));
    expect(secret).toContain('holds a user or a password');
    expect(secret).not.toContain('hunter2');
  });

  it('list: commas, quotes around items that hold one, a comma at the end, lines', () => {
    expect(value(parseList(''))).toEqual([]);
    expect(value(parseList('gpu, cpu ,"a, b",\'c\''))).toEqual(['gpu', 'cpu', 'a, b', 'c']);
    expect(value(parseList('gpu,\ncpu,\n'))).toEqual(['gpu', 'cpu']);
    expect(value(parseList("bob's, x"))).toEqual(["bob's", 'x']);
    expect(told(parseList('gpu\ncpu'))).toContain('has no comma at the end of a line');
    expect(told(parseList('gpu,,cpu'))).toContain('has an empty item');
    for (const wrong of [',', ',gpu', '"gpu', '"a" b', 'a, "b" c, d']) expect(parseList(wrong).ok).toBe(false);
  });

  it('a list reads back what was written, with every item quoted', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ minLength: 1, unit: 'grapheme' }).filter((s) => !/["\n]/.test(s))), (items) => {
        expect(value(parseList(items.map((i) => `"${i}"`).join(', ')))).toEqual(items);
      }),
    );
  });

  it('cells: CELL:HOSTS', () => {
    expect(value(parseCells('cell1:cmp1*, cell2 : cmp2*'))).toEqual([
      { cell: 'cell1', hosts: 'cmp1*' },
      { cell: 'cell2', hosts: 'cmp2*' },
    ]);
    expect(told(parseCells('cmp1'))).toBe('"cmp1" is not CELL:HOSTS. Write it as cell1:cmp1*, cell2:cmp2*.');
  });

  it('cells of aggregates: CELL:AGGREGATE, whose names may hold spaces and colons', () => {
    expect(value(parseCellMap('c1:old, c2 : third floor, "c3:a, b:c"'))).toEqual([
      { cell: 'c1', aggregate: 'old' },
      { cell: 'c2', aggregate: 'third floor' },
      { cell: 'c3', aggregate: 'a, b:c' },
    ]);
    for (const wrong of ['old', ':old', 'c1:', 'a cell:old'])
      expect(told(parseCellMap(wrong))).toContain('CELL:AGGREGATE');
  });

  it('a check of a moved server: none, a port or a command', () => {
    expect(verifyOf('none')).toEqual({ kind: 'none' });
    expect(verifyOf('tcp:22')).toEqual({ kind: 'tcp', port: 22 });
    expect(verifyOf('command: /bin/check --fast')).toEqual({ kind: 'command', command: '/bin/check --fast' });
    for (const wrong of ['', 'tcp', 'tcp:0', 'tcp:65536', 'tcp:ssh', 'command:', 'command: ', 'udp:53', 'true'])
      expect(told(parseVerify(wrong))).toContain('is not a check');
  });
});

describe('headers', () => {
  const words = (raw: string) => {
    const parsed = parseHeaders(raw);
    return parsed.ok ? headersOption(parsed.value.reveal()) : `${parsed.problem}. ${parsed.remedy}`;
  };

  it('are a comma list of names and values, or one a line', () => {
    expect(words('X-Scope-OrgID: blue, "X-Many: a, b"')).toEqual({ 'x-scope-orgid': 'blue', 'x-many': 'a, b' });
    expect(words('X-Scope-OrgID: blue\nX-Api-Key: hunter2hunter2\n')).toEqual({
      'x-scope-orgid': 'blue',
      'x-api-key': 'hunter2hunter2',
    });
  });

  it.each(['no colon', 'Bad Name: x', 'X-Empty:', 'Host: elsewhere'])('refuse %s without quoting it', (raw) => {
    const said = words(`X-Key: hunter2, ${raw}`);
    expect(said).toMatch(/NAME: VALUE|Kronos sets itself/);
    expect(said).not.toContain('hunter2');
  });
});
