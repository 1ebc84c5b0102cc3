import { ALL, count, type ServiceName } from '@kronos/contracts';
import { testLog } from '@kronos/projections/testing';
import { type AggregateInput, type Facts, type Heartbeat, statusOf } from '@kronos/status';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ownWindow } from './commands/lists/vms.ts';
import { UsageError } from './errors.ts';
import type { OutputOption } from './grammar/shared.ts';
import { figure } from './numbers.ts';
import { answer, answerStream } from './output.ts';
import { progressBar, whileWaiting } from './progress.ts';
import { chooseAddresses, chooseAggregates, filterAggregates } from './scope.ts';
import type { Shell } from './shell.ts';
import { renderStatus } from './status/render.ts';
import { table } from './table.ts';
import { coloured, cutToWidth, type Terminal } from './terminal.ts';
import { absolute, expected, parseDuration, parseRange, parseTime, relative, span, when } from './times.ts';

const now = Date.parse('2026-03-01T12:00:00Z');

describe('times', () => {
  it.each([
    [0, '0 s'],
    [1500, '1.5 s'],
    [59_999, '59 s'],
    [60_000, '1 min'],
    [200_000, '3 min 20 s'],
    [600_000, '10 min'],
    [7_500_000, '2 h 5 min'],
    [90_000_000, '1 d 1 h'],
    [864_000_000, '10 d'],
  ])('%d ms are %s', (ms, text) => expect(span(ms)).toBe(text));

  it('are shown both ways', () => {
    expect(relative(now, now)).toBe('now');
    expect(relative(now + 90_000, now)).toBe('in 1 min 30 s');
    expect(absolute(now - 86_400_000, now)).toBe('2026-02-28 12:00:00Z');
    expect(when(now - 180_000, now)).toBe('11:57:00Z (3 min ago)');
  });

  it.each([
    ['now', now],
    ['90s', now - 90_000],
    ['2h', now - 7_200_000],
    ['1.5d', now - 129_600_000],
    ['-2h', now - 7_200_000],
    ['2h ago', now - 7_200_000],
    ['9:30', Date.parse('2026-03-01T09:30:00Z')],
    ['3am', Date.parse('2026-03-01T03:00:00Z')],
    ['13:00', Date.parse('2026-02-28T13:00:00Z')],
    ['today 13:00', Date.parse('2026-03-01T13:00:00Z')],
    ['yesterday 14:00', Date.parse('2026-02-28T14:00:00Z')],
    ['yesterday', now - 86_400_000],
    ['09:30:15Z', Date.parse('2026-03-01T09:30:15Z')],
    ['2026-02-01', Date.parse('2026-02-01T00:00:00Z')],
    ['2026-02-01T10:00', Date.parse('2026-02-01T10:00:00Z')],
    ['2026-02-01 10:00:00Z', Date.parse('2026-02-01T10:00:00Z')],
    ['2026-02-01T10:00+02:00', Date.parse('2026-02-01T08:00:00Z')],
  ])('%s is read', (text, ms) => expect(parseTime('--at', text, now)).toBe(ms));

  it.each(['', 'yesterday maybe', '25:00', '13pm', '12:60', '25:00x', '2026-13-01', '5w'])('%s is not', (text) =>
    expect(() => parseTime('--at', text, now)).toThrow(UsageError),
  );

  it('of a range come in their order', () => {
    expect(parseRange({ since: '2h' }, now)).toEqual({ sinceMs: now - 7_200_000, untilMs: null });
    expect(parseRange({ since: 'all', until: '1h' }, now)).toEqual({ sinceMs: null, untilMs: now - 3_600_000 });
    expect(() => parseRange({ since: '1h', until: '2h' }, now)).toThrow('--since is not before --until');
  });

  it('durations have units, or are seconds', () => {
    expect(['600', '10m', '1h', '0.5s'].map((text) => parseDuration('--for', text))).toEqual([
      600_000, 600_000, 3_600_000, 500,
    ]);
    expect(() => parseDuration('--for', '-1')).toThrow(UsageError);
  });
});

const terminal = (columns: number, live = true): Terminal => ({
  out() {},
  err() {},
  steer() {},
  colour: false,
  columns,
  live,
});

describe('a wait', () => {
  it('is shown with its length while it lasts, and wiped off at its end', async () => {
    const screen: string[] = [];
    let come: (answer: string) => void = () => {};
    const answer = new Promise<string>((resolve) => {
      come = resolve;
    });
    const err = (text: string): void => {
      screen.push(text);
      come('the answer');
    };
    const shell = { terminal: { ...terminal(80, true), err, steer: () => void screen.push('') }, now: () => 7000 };
    expect(await whileWaiting(shell, { what: '2 decisions', atMostMs: 60_000, tickMs: 1 }, answer)).toBe('the answer');
    expect(screen).toContain('waiting for 2 decisions: 0 s of at most 1 min');
    expect(screen.at(-1)).toBe('');
  });
  it.each([
    ['nobody watches', false, 1],
    ['the command is not to wait, however long its own work takes', true, 0],
  ])('shows nothing when %s', async (_, live, atMostMs) => {
    const none = () => expect.unreachable();
    const shell = { terminal: { ...terminal(80, live), err: none, steer: none }, now: none };
    expect(await whileWaiting(shell, { what: 'x', atMostMs, tickMs: 1 }, Promise.resolve(7))).toBe(7);
  });
});

describe('a progress bar', () => {
  /** The screen after each step: seconds, done, share. */
  function drawn(
    steps: readonly (readonly [seconds: number, done: number, share: number | null])[],
    live = true,
  ): string[] {
    const lines: string[] = [];
    let nowMs = 0;
    const screen = { ...terminal(80, live), err: (text: string) => void lines.push(text) };
    const bar = progressBar(screen, 'replaying', () => nowMs);
    for (const [seconds, done, share] of steps) {
      nowMs = seconds * 1000;
      bar.share(done, share);
    }
    return lines;
  }

  it('estimates the time left by the pace since the first part was done', () => {
    // Ten seconds of reading the log say nothing about the pace.
    expect(
      drawn([
        [0, 0, 0],
        [10, 1, 0],
        [20, 101, 0.25],
        [30, 201, 0.5],
      ]).slice(1),
    ).toEqual([
      'replaying [######..................] 25 %, 101 done, 30 s left',
      'replaying [############............] 50 %, 201 done, 20 s left',
    ]);
  });
  it('counts where nobody knows the end', () => {
    expect(
      drawn([
        [0, 0, null],
        [2, 7, null],
      ]),
    ).toEqual(['replaying 7']);
  });
  it('is not there when nobody watches, nor for what is over at once', () => {
    expect(
      drawn(
        [
          [0, 0, 0],
          [60, 10, 0.5],
        ],
        false,
      ),
    ).toEqual([]);
    expect(
      drawn([
        [0, 0, 0],
        [0.2, 10, 0.5],
      ]),
    ).toEqual([]);
  });
});

describe('tables', () => {
  const columns = [{ head: 'id' }, { head: 'text', flex: true }, { head: 'n', right: true }];
  const rows = [
    ['a', 'a long text that goes on and on', '1'],
    ['bb', 'short', '22'],
  ];

  it('are as wide as their cells', () =>
    expect(table(terminal(80), columns, rows)).toBe(
      'id  text                              n\na   a long text that goes on and on   1\nbb  short                            22\n',
    ));
  it('are cut to fit a terminal', () => {
    for (const text of table(terminal(24), columns, rows).split('\n')) expect(text.length).toBeLessThanOrEqual(24);
  });
  it('leave out what is minor before anything is cut', () => {
    const minor = [
      { head: 'a', flex: true },
      { head: 'minor', minor: true },
      { head: 'last', minor: true },
    ];
    const cells = [['x'.repeat(20), 'y'.repeat(10), 'z'.repeat(10)]];
    expect(table(terminal(36), minor, cells)).toBe(`a${' '.repeat(21)}minor\n${'x'.repeat(20)}  ${'y'.repeat(10)}\n`);
    expect(table(terminal(20), minor, cells)).toBe(`a\n${'x'.repeat(20)}\n`);
    expect(table(terminal(20, false), minor, cells)).toContain('zzzz');
  });
  it('are whole in a pipe', () => expect(table(terminal(24, false), columns, rows)).toContain('goes on and on'));
  it("shows a VM's own windows, and whether one is open", () => {
    const utc = { name: 'UTC', since: [], offsetSeconds: [] };
    const monday = Date.parse('2026-01-05T01:00:00Z');
    expect(ownWindow(['Mon 00:00-02:00'], utc, monday)).toBe('only Mon 00:00-02:00');
    expect(ownWindow(['Tue 02:00-05:00'], utc, monday)).toBe(
      'only Tue 02:00-05:00 (closed until 2026-01-06 02:00:00Z)',
    );
    expect(ownWindow(['Caturday 02:00-05:00'], utc, monday)).toBe(
      'window cannot be read: "Caturday 02:00-05:00": "Caturday" is not a day',
    );
  });

  it('figures, counts and cuts', () => {
    expect([figure(0.12345), figure(null), figure(2)]).toEqual(['0.123', '-', '2']);
    expect([count(1, 'move'), count(2, 'move')]).toEqual(['1 move', '2 moves']);
    expect(cutToWidth('abcdef', 4)).toBe('abc…');
  });
});

describe('the aggregate', () => {
  it('is the only one, or the one that is named', () => {
    expect(chooseAggregates(['gpu'], { names: undefined, all: false }, 'pause')).toEqual(['gpu']);
    expect(chooseAggregates(['gpu', 'cpu'], { names: ['cpu'], all: false }, 'pause')).toEqual(['cpu']);
    expect(chooseAggregates(['gpu', 'cpu'], { names: ['cpu', 'gpu', 'cpu'], all: false }, 'pause')).toEqual([
      'cpu',
      'gpu',
    ]);
    expect(filterAggregates(['gpu', 'cpu'], undefined)).toEqual(['gpu', 'cpu']);
    expect(chooseAddresses(['gpu', 'cpu'], { names: undefined, all: true }, 'pause')).toEqual([ALL]);
  });
  it.each([
    [['a', 'b'], undefined, false],
    [['a'], ['b'], false],
    [['a'], ['a'], true],
    [[], undefined, false],
  ] as const)('of %j, named %s, all %s: is refused, with what there is', (scope, name, all) =>
    expect(() => chooseAggregates(scope, { names: name, all }, 'pause')).toThrow(),
  );
});

const moves = [
  { serverId: 'vm-1', from: 'h1', to: 'h2' },
  { serverId: 'vm-2', from: 'h1', to: 'h3', dependsOn: [1] },
  { serverId: 'vm-3', from: 'h2', to: 'h3' },
];

describe('status', () => {
  it('stays on one screen with many aggregates: those with nothing to tell have one line each', () => {
    const quiet = testLog();
    quiet.configured({ cooldownSeconds: 600 });
    quiet.pass(10).decided();
    const moving = testLog();
    moving.configured({ cooldownSeconds: 600 });
    const course = {
      ...{ reaches: true, moves: 31, costGib: 118, cycles: 4, seconds: 2400 },
      after: { combined: 0.1, policies: [] },
    };
    const plan = moving.pass(10).decided('released', moves, { course });
    moving.dispatched(plan, 3);
    moving.started({ task: `${plan}-s1` });
    const nowMs = quiet.nowMs;
    const input = (log: ReturnType<typeof testLog>, aggregate: string): AggregateInput => ({
      aggregate,
      state: { ...log.state('gpu'), aggregate },
      newest: {
        snapshotId: 's',
        purpose: 'cycle',
        cycle: 1,
        intervalSeconds: 60,
        observedFrom: new Date(nowMs).toISOString(),
        timeMs: nowMs,
        storedAtMs: nowMs,
        hosts: 3,
        servers: 9,
        combined: null,
        policies: [],
        outOfService: [],
        problems: [],
      },
      beforeMoves: null,
      undecidedSinceMs: null,
      lastDecision: null,
    });
    const names = Array.from({ length: 10 }, (_, i) => `quiet-${i}`);
    const status = statusOf({
      nowMs,
      maxClockSkewMs: 5000,
      nats: { state: 'ok' },
      streams: [],
      services: { known: true, heartbeats: [] },
      aggregates: [...names.map((name) => input(quiet, name)), input(moving, 'gpu')],
    });
    const text = renderStatus(terminal(80), status, { only: null, server: '2.11.0', servers: ['nats://n:4222'] });
    expect(text.split('\n').length).toBeLessThanOrEqual(28);
    for (const name of names) expect(text).toMatch(new RegExp(`^${name} +watching: by the test`, 'm'));
    expect(text).toMatch(/^gpu {3}moving: 1 running/m);
    expect(text).toContain('  course        31 moves in about 4 cycles (40 min) are left until every');
    expect(text).toContain('! scorer, planner, executor, ledger: no instance has sent a heartbeat recently');
    const some = renderStatus(terminal(80), status, { only: ['gpu', 'quiet-1'], server: null, servers: [] });
    expect(some).toMatch(/^Kronos, only gpu, quiet-1: /);
  });

  it('says beside each service how far the checkpoint that it started from is verified', () => {
    const beat = (
      service: ServiceName,
      checkpoint: Heartbeat['checkpoint'],
      state: Heartbeat['state'] = 'running',
    ) => ({
      ...{
        service,
        checkpoint,
        state,
        instance: 'a:1',
        version: '1',
        failing: [],
        sinks: [],
        aggregates: [],
        options: {},
      },
      ...{ intervalSeconds: 10, timeMs: 0, storedAtMs: 0 },
    });
    const heartbeats = [
      beat('scorer', null),
      beat('planner', { sequence: 1571, verifiedTo: 1571 }),
      beat('executor', { sequence: 1571, verifiedTo: 400 }),
      beat('ledger', { sequence: 1571, verifiedTo: 1571 }, 'stopped'),
    ];
    const facts: Facts = {
      ...{ nowMs: 0, maxClockSkewMs: 5000, nats: { state: 'ok' }, streams: [], aggregates: [] },
      services: { known: true, heartbeats },
    };
    const text = renderStatus(terminal(200), statusOf(facts), {
      only: null,
      server: '2.11.0',
      servers: ['nats://n:4222'],
    });
    expect(text.trimEnd().split('\n').at(-1)).toBe(
      'services: scorer a:1 ready, planner a:1 ready (verified to sequence 1571), executor a:1 ready (verifying its checkpoint: 400 of 1571 events), ledger a:1 stopped',
    );
  });
});

describe('colours', () => {
  it.each([
    [{}, true, true],
    [{}, false, false],
    [{ NO_COLOR: '1' }, true, false],
    [{ FORCE_COLOR: '1' }, false, true],
    [{ FORCE_COLOR: '', NO_COLOR: '1' }, false, true],
    [{ FORCE_COLOR: '0' }, true, false],
  ] as const)('of %j at a terminal (%s): %s', (env, live, shown) => expect(coloured(env, { live })).toBe(shown));
});

describe('an answer', () => {
  const value = { atMs: 0, totalMs: 5, none: undefined, list: [{ untilMs: null }] };
  const said = async (options: OutputOption): Promise<string> => {
    let out = '';
    const at = {
      ...terminal(80, true),
      out(text: string) {
        out += text;
      },
    };
    await answer({ terminal: at } as Shell, options, value, ({ wide }) => (wide === true ? 'wide' : 'narrow'));
    return out;
  };
  it('is a table, or all of it', async () => {
    expect(await said({})).toBe('narrow');
    expect(await said({ output: 'wide' })).toBe('wide');
  });
  it.each([
    [[]],
    [[{ atMs: 0, deep: { list: [1, { b: [] }], text: 'a\nb: c\n' } }, 'x: y', { none: undefined, n: null }]],
  ])('is the same when it is written element by element: %j', async (list) => {
    for (const output of ['json', 'yaml'] as const) {
      const parts: string[] = [];
      const whole: string[] = [];
      const on = (lines: string[]): Shell =>
        ({ terminal: { ...terminal(80), out: (text: string) => void lines.push(text) } }) as unknown as Shell;
      const stream = await answerStream(on(parts), { output }, { mode: 'm' }, 'list');
      for (const element of list) stream?.add(element);
      stream?.end({ untilMs: 0, more: [1] });
      await answer(on(whole), { output }, { mode: 'm', list, untilMs: 0, more: [1] }, () => '');
      expect(parts.join('')).toBe(whole.join(''));
    }
    expect(await answerStream({ terminal: terminal(80) } as Shell, {}, { mode: 'm' }, 'list')).toBeNull();
  });
  it('is JSON or YAML, with times as ISO-8601', async () => {
    const wanted = { at: '1970-01-01T00:00:00.000Z', totalMs: 5, list: [{ until: null }] };
    expect(JSON.parse(await said({ json: true }))).toEqual(wanted);
    expect(await said({ output: 'json' })).toBe(await said({ json: true }));
    expect(parse(await said({ output: 'yaml' }))).toEqual(wanted);
  });
});

describe('how long something takes', () => {
  it('has its interval where enough moves are known, and none otherwise', () => {
    const interval = { lowMs: 90_000, highMs: 600_000 };
    expect(expected({ expectedMs: 200_000, interval })).toBe('about 3 min 20 s (1 min 30 s to 10 min)');
    expect(expected({ expectedMs: 200_000, interval: null })).toBe('about 3 min 20 s');
  });
});
