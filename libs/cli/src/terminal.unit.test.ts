import { describe, expect, it } from 'vitest';
import { aligned } from './numbers.ts';
import { MOVE_COLUMNS, table } from './table.ts';
import { cutMiddle, harmless, paint, type Terminal } from './terminal.ts';

const terminal = (columns: number): Terminal => ({
  out: () => undefined,
  err: () => undefined,
  steer: () => undefined,
  colour: false,
  columns,
  live: true,
});

describe('a table on a narrow terminal', () => {
  const rows = ['01', '02', '03'].map((end, i) => [
    `customer-database-${i}`,
    `compute-rack-7-node-${end}.example.org`,
    `compute-rack-7-node-0${i + 4}.example.org`,
  ]);

  it.each([40, 60, 80])('of %i columns keeps hosts apart', (columns) => {
    const text = table(terminal(columns), MOVE_COLUMNS, rows);
    const lines = text.trimEnd().split('\n').slice(1);
    const hosts = lines.flatMap((line) => line.split(/ {2,}/).slice(1));
    expect(new Set(hosts).size).toBe(6);
  });

  it('has one line for each row, also where a text of Nova has several', () => {
    const text = table(terminal(80), MOVE_COLUMNS, [['refused:\n  no valid host\r\nwas found', 'h1', 'h2']]);
    expect(text.trimEnd().split('\n')).toHaveLength(2);
    expect(text).toContain('refused: no valid host was found  h1    h2');
  });

  it('fits where that is possible', () => {
    const text = table(terminal(60), MOVE_COLUMNS, rows);
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(60);
  });

  it('shows the first characters of a uuid, drops minor columns next, and cuts last', () => {
    const columns = [
      { head: 'vm', flex: true },
      { head: 'uuid', short: 8 },
      { head: 'zone', minor: true },
    ];
    const row = [['database', '01234567-89ab-cdef-0123-456789abcdef', 'availability-zone-1']];
    expect(table(terminal(80), columns, row)).toContain('456789abcdef');
    const at50 = table(terminal(50), columns, row);
    expect([at50.includes('01234567  availability-zone-1'), at50.includes('01234567-')]).toEqual([true, false]);
    expect(table(terminal(20), columns, row)).toBe('vm        uuid\ndatabase  01234567\n');
  });

  it('leaves out a sparse column without a cell, at every width', () => {
    const columns = [{ head: 'vm' }, { head: 'problem', sparse: true }];
    expect(table(terminal(80), columns, [['a', '']])).toBe('vm\na\n');
    expect(
      table(terminal(80), columns, [
        ['a', ''],
        ['b', 'x'],
      ]),
    ).toContain('problem');
  });
});

describe('a name that is cut in the middle', () => {
  it.each([
    ['compute-07', 10, 'compute-07'],
    ['compute-rack-07', 9, 'com…ck-07'],
    ['compute-rack-07', 1, '…'],
  ])('%s in %i characters', (name, width, cut) => expect(cutMiddle(name, width)).toBe(cut));
});

it('values of a column have the same decimals', () =>
  expect([0.5, 0.4282, null].map((value) => aligned(value))).toEqual(['0.500', '0.428', '-']));

describe('a text of others', () => {
  it.each([
    ['clear \u001b[2J\u001b[1;1H the screen', 'clear \\u001b[2J\\u001b[1;1H the screen'],
    ['title \u001b]0;x\u0007', 'title \\u001b]0;x\\u0007'],
    ['over\rwritten, \b\u007f, \u009b2J', 'over\\u000dwritten, \\u0008\\u007f, \\u009b2J'],
    ['invisible \u001b[8m', 'invisible \\u001b[8m'],
    ['turned \u202egnp.exe', 'turned \\u202egnp.exe'],
    ['marked \u061c1-2', 'marked \\u061c1-2'],
    ['lines\n\tand tabs, Größe, 数据库, 🚀', 'lines\n\tand tabs, Größe, 数据库, 🚀'],
  ])('cannot steer a terminal: %j', (text, shown) => expect(harmless(text)).toBe(shown));

  it('keeps every style of Kronos', () => {
    for (const style of ['bold', 'dim', 'red', 'green', 'yellow', 'cyan', 'magenta', 'blue'] as const) {
      const painted = paint({ ...terminal(80), colour: true }, style, 'x');
      expect([painted === 'x', harmless(painted)]).toEqual([false, painted]);
    }
  });

  it('is the same JSON', () => {
    const value = { name: 'a\u001b[2J\u009b\u202e\u007f' };
    expect(JSON.parse(harmless(JSON.stringify(value)))).toEqual(value);
  });

  it('keeps the columns of a table aligned', () => {
    const text = table(
      terminal(80),
      [{ head: 'vm' }, { head: 'host' }],
      [
        ['web\u001b[2J', 'h1'],
        ['db', 'h2'],
      ],
    );
    expect(text.split('\n').slice(1, 3)).toEqual(['web\\u001b[2J  h1', 'db            h2']);
  });
});

describe('sentences of a table', () => {
  const columns = [{ head: 'vm' }, { head: 'host', minor: true }, { head: 'why', flex: true, below: true }];
  const why = 'lowers the memory of compute-04 and keeps every policy within its threshold';
  const rows = [
    ['db-1', 'compute-04', why],
    ['db-2', 'compute-05', ''],
  ];

  it('stand beside their rows where there is room', () => {
    expect(table(terminal(100), columns, rows).split('\n')[1]).toBe(`db-1  compute-04  ${why}`);
  });

  it('stand whole below their rows where there is none, before any column is left out', () => {
    expect(table(terminal(40), columns, rows)).toBe(
      [
        'vm    host',
        'db-1  compute-04',
        '    lowers the memory of compute-04 and',
        '    keeps every policy within its',
        '    threshold',
        'db-2  compute-05',
        '',
      ].join('\n'),
    );
  });

  it('stand below beside an id that a person copies, which is there at every width', () => {
    const tasks = [
      { head: 'task', minor: true, below: true },
      { head: 'vm' },
      { head: 'when', minor: true },
      ...columns.slice(2),
    ];
    const row = [['general-29454480-s1', 'db-1', 'since 12:00:03Z', why]];
    expect(table(terminal(60), tasks, row).split('\n').slice(0, 2)).toEqual([
      'task                 vm    when',
      'general-29454480-s1  db-1  since 12:00:03Z',
    ]);
    expect(table(terminal(24), tasks, row).split('\n').slice(0, 3)).toEqual([
      'vm    when',
      'db-1  since 12:00:03Z',
      '    general-29454480-s1',
    ]);
  });

  it('are readable at half of their width otherwise: no column is left out for a long text', () => {
    const long = [{ head: 'aggregate' }, { head: 'doing', flex: true }, { head: 'hosts', minor: true }];
    const [, line = ''] = table(terminal(50), long, [['gpu', 'x'.repeat(200), '12']]).split('\n');
    expect([line.length, line.endsWith('…  12')]).toEqual([50 - 3, true]);
  });
});
