import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseIni } from './ini.ts';

const entries = (text: string) =>
  parseIni('k.conf', text).entries.map(({ section, option, value, line }) => [section, option, value, line]);
const problems = (text: string) =>
  parseIni('k.conf', text).problems.map(({ line, option, problem }) => [line, option, problem]);

describe('the INI of oslo.config', () => {
  it('reads sections, comments, both separators and empty values', () => {
    const text =
      '\uFEFF# a comment\r\n[engine]\r\n; another\ncooldown = 600\nplanner: greedy\n\n[nova]\nauth_url=http://a:5000/v3\nusername =\n';
    expect(entries(text)).toEqual([
      ['engine', 'cooldown', '600', 4],
      ['engine', 'planner', 'greedy', 5],
      ['nova', 'auth_url', 'http://a:5000/v3', 8],
      ['nova', 'username', '', 9],
    ]);
    expect(problems(text)).toEqual([]);
  });

  it('splits at whichever of = and : comes first', () => {
    expect(entries('[a]\nb = c:d\ne: f=g\n')).toEqual([
      ['a', 'b', 'c:d', 2],
      ['a', 'e', 'f=g', 3],
    ]);
  });

  it('joins indented lines to the value above, until a blank or an unindented line', () => {
    const text = '[engine]\naggregates = gpu,\n  cpu,\n\tbig\n\ncooldown = 1\n';
    expect(entries(text)).toEqual([
      ['engine', 'aggregates', 'gpu,\ncpu,\nbig', 2],
      ['engine', 'cooldown', '1', 6],
    ]);
    expect(problems('[engine]\naggregates = gpu,\n\n  cpu\n')).toEqual([
      [4, null, 'is indented, but there is no option to continue'],
    ]);
  });

  it('takes one pair of quotes off a value and leaves the quotes of list items', () => {
    const text = '[a]\nb = "x y"\nc = \'z\'\nd = "a, b", "c"\ne = "\nf = "half\n';
    expect(entries(text).map((e) => e[2])).toEqual(['x y', 'z', '"a, b", "c"', '"', '"half']);
  });

  it('substitutes nothing', () => {
    expect(entries('[nova]\npassword = $ecret%(x)s\n')).toEqual([['nova', 'password', '$ecret%(x)s', 2]]);
  });

  it('joins a section that is there twice', () => {
    expect(entries('[a]\nb=1\n[c]\nd=2\n[a]\ne=3\n').map((e) => e[0])).toEqual(['a', 'c', 'a']);
  });

  it('refuses an option that is given twice, and names both lines', () => {
    expect(problems('[a]\nb=1\n[c]\n[a]\nb=2\n')).toEqual([[5, '[a] b', 'is given twice, in lines 2 and 5']]);
  });

  it('refuses what it cannot read, without showing it', () => {
    const text = 'early = 1\n[engine\nhunter2\n[]\n= hunter2\n[a]\nb = 1\n  # hunter2\n';
    expect(problems(text)).toEqual([
      [1, 'early', 'is before the first section'],
      [2, null, 'is not a section'],
      [3, null, 'is not a section, an option or a comment'],
      [4, null, 'is not a section'],
      [5, null, 'is not a section, an option or a comment'],
      [8, null, 'an indented comment inside the value of b'],
    ]);
    expect(JSON.stringify(parseIni('k.conf', text).problems)).not.toContain('hunter2');
  });

  it('never throws, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        parseIni('k.conf', text);
      }),
    );
  });

  it('reads back every value that was written on one line', () => {
    const word = fc.stringMatching(/^[a-z_]{1,10}$/);
    const value = fc.string({ maxLength: 40 }).map((v) => v.replaceAll(/[\r\n"']/g, '').trim());
    fc.assert(
      fc.property(word, fc.dictionary(word, value), (section, options) => {
        const text = `[${section}]\n${Object.entries(options)
          .map(([k, v]) => `${k} = ${v}\n`)
          .join('')}`;
        const read = Object.fromEntries(parseIni('k.conf', text).entries.map((e) => [e.option, e.value]));
        expect(read).toEqual({ ...options });
      }),
    );
  });
});
