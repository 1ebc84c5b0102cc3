import { readFileSync } from 'node:fs';
import { random } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { SAMPLE_MS, sampleTask } from '../../testing/sample.ts';
import { defaultTaskOptions, type TaskOptions } from '../options.ts';
import { decide, evolve, initialState } from '../task.ts';
import type { AttemptLog, AttemptOrders, CellLook, CellMigration, CellServer, CellStart, Fact } from '../taskFacts.ts';
import { startCellRun, type TaskState, to } from '../taskStages.ts';

type Body = Fact extends infer F ? (F extends { readonly at: unknown } ? Omit<F, 'at'> : never) : never;

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const start: CellStart = {
  method: 'migrate',
  oldFlavor: 'm1',
  newFlavor: 'm1',
  before: { vmState: 'active', powerState: 1, addresses: ['10.0.0.5'], volumes: ['v1'] },
  knownMigrations: ['former'],
};
const cell = {
  method: 'migrate' as 'migrate' | 'resize',
  target: 'new',
  oldFlavor: 'm1',
  newFlavor: 'm1',
  fromCell: 'cell1',
  toCell: 'cell2',
  downtimeSeconds: 60,
  confirm: 'auto' as 'auto' | 'manual',
  verifySeconds: 60,
};
const orders: AttemptOrders = { stopAsked: false, closeAsked: null, ended: false };
const home: CellServer = {
  host: 'h1',
  status: 'ACTIVE',
  vmState: 'active',
  taskState: null,
  powerState: 1,
  flavor: 'm1',
  addresses: ['10.0.0.5'],
  volumes: ['v1'],
};
const there: CellServer = { ...home, host: 'h2', status: 'VERIFY_RESIZE', vmState: 'resized' };
const away: CellServer = { ...home, host: 'h2' };
const row = (status: string, changes: Partial<CellMigration> = {}): CellMigration => ({
  id: 7,
  uuid: 'ours',
  type: 'migration',
  status,
  sourceCompute: 'h1',
  destCompute: 'h2',
  ...changes,
});
type Slot = Extract<AttemptLog, { readonly kind: 'started' }>;
/** An attempt of the log that has started, with what is known of its move between cells. */
const begun = (slot: object): Slot =>
  ({
    ...{ kind: 'started', newestMigrationId: 0, migrationId: 7, requestId: null, stop: null },
    cell: { ...start, migrationUuid: 'ours', verifying: null, verified: null, settle: null, startedAtMs: 0, ...slot },
  }) as Slot;
const log = (attempt: AttemptLog): Body => ({ kind: 'log', log: { attempt, expected: 9 } });
/** Nova's account of a failed migration. */
const told = (text: string): Body => ({
  kind: 'explained',
  orders,
  account: { story: { text, event: null, host: null }, asked: true, hosts: { source: 'up', destination: 'up' } },
});
const appended: Body = { kind: 'appended', began: 0 };

/** A move between cells from its POST on, told fact by fact. */
class Life {
  state: TaskState;
  #elapsed = 0;

  constructor(
    changes: {
      readonly options?: Partial<TaskOptions>;
      readonly start?: Partial<CellStart>;
      readonly cell?: Partial<typeof cell>;
    } = {},
  ) {
    const task = sampleTask({ phase: 'cell', cell: { ...cell, ...changes.cell } });
    const state = initialState(task, { ...defaultTaskOptions, ...changes.options }, 1);
    const run = startCellRun({ ...start, ...changes.start }, SAMPLE_MS, 0);
    this.state = to(state, { at: 'resizing', run, by: 10 * SECOND, flavorId: null });
  }

  pass(ms: number): this {
    this.#elapsed += ms;
    return this;
  }

  when(...facts: Body[]): this {
    for (const fact of facts)
      this.state = evolve(this.state, { ...fact, at: { mono: this.#elapsed, wall: SAMPLE_MS + this.#elapsed } });
    return this;
  }

  later(ms: number, ...look: Parameters<Life['sees']>): this {
    return this.pass(ms).sees(...look);
  }

  sees(
    server: CellLook['server'],
    migrations: readonly CellMigration[] = [row('finished')],
    more: Partial<CellLook> = {},
    said: Partial<AttemptOrders> = {},
  ): this {
    const look = { migrations, server, targetHosts: ['h2', 'h3'], probe: null, ...more };
    return this.when({ kind: 'lookedCell', look, orders: { ...orders, ...said } });
  }

  posted(answer: Extract<Fact, { readonly kind: 'posted' }>['answer']): this {
    return this.when({ kind: 'posted', answer });
  }

  accepted(): this {
    return this.posted({ kind: 'accepted', requestId: 'req' });
  }

  /** In VERIFY_RESIZE, and the log says so. */
  arrived(): this {
    return this.accepted().sees(there).when(appended).sees(there).when(appended);
  }

  /** The log has this as the first word about its end, and Nova was asked. */
  settled(act: 'confirm' | 'revert', cause: string): this {
    const settle = { sequence: 1, atMs: 0, act, cause, reason: { code: cause, text: cause } };
    const { run } = this.state.stage as { run: ReturnType<typeof startCellRun> };
    return this.when(appended, log(begun({ ...run.start, settle })), { kind: 'settleAnswered' });
  }

  get at() {
    return this.state.stage.at;
  }

  get ended() {
    if (this.state.stage.at !== 'ending') throw new Error(`it is ${this.state.stage.at}`);
    return this.state.stage.ended;
  }

  get settle() {
    if (this.state.stage.at !== 'settling') throw new Error(`it is ${this.state.stage.at}`);
    const { act, cause } = this.state.stage.settle;
    return `${act} ${cause}`;
  }
}

describe('the start of a move between cells', () => {
  it('acts: what pre-flight read of the server goes onto the log', () => {
    const found = { ...start, flavorId: null };
    const life = new Life();
    life.state = initialState(sampleTask({ phase: 'cell', cell }), defaultTaskOptions, 1);
    life.when(
      { kind: 'log', log: { attempt: { kind: 'waiting' }, expected: 9 } },
      { kind: 'mayStart', grant: { expected: 9, disturbed: false } },
      { kind: 'checked', verdict: { kind: 'go', newestMigrationId: 7, forced: false, cell: found }, tookMs: 100 },
      { kind: 'mayStart', grant: { expected: 9, disturbed: false } },
    );
    expect(decide(life.state)).toMatchObject({ do: 'appendStarted', cell: start });
  });
});

describe('the POST of a move between cells', () => {
  it('acts: accepted or unknown, it is looked for', () => {
    expect(new Life().accepted().at).toBe('travelling');
    expect(new Life().posted({ kind: 'unknown', text: 'cut off' }).at).toBe('travelling');
    const busy = "Cannot 'migrate' instance vm while it is in task_state resize_prep";
    expect(new Life().posted({ kind: 'refused', status: 409, text: busy }).at).toBe('travelling');
  });

  it('refuses: a host that only the policy hides is nobody’s fault, and no other is tried', () => {
    const text = 'Compute host h2 could not be found.';
    const life = new Life().posted({ kind: 'refused', status: 400, text });
    expect(life.ended).toMatchObject({ reason: { code: 'cell-policy' }, next: null, hostAtFault: null });
  });

  it('refuses: not sent, it is tried again later', () => {
    const life = new Life().posted({ kind: 'notSent', text: 'late' });
    expect(life.ended).toMatchObject({ reason: { code: 'not-sent' }, next: { attempt: 2, destination: 'h2' } });
  });
});

describe('the migration of the attempt', () => {
  it('acts: a row with a new uuid is it, whatever its id', () => {
    const life = new Life().accepted().sees({ ...home, taskState: 'resize_prep' }, [row('migrating', { id: 1 })]);
    expect(decide(life.state)).toMatchObject({ do: 'appendObserved', migrationId: 1, migrationUuid: 'ours' });
  });

  it('refuses: a former one, one of another kind, and one to another host', () => {
    const others = [
      row('finished', { uuid: 'former' }),
      row('running', { type: 'live-migration' }),
      row('migrating', { destCompute: 'h9' }),
    ];
    expect(new Life().accepted().sees({ ...home, taskState: 'resize_prep' }, others).at).toBe('travelling');
  });

  it('does nothing: an empty list, until Nova can no longer be at work', () => {
    const life = new Life().accepted().sees(home, []);
    expect(life.at).toBe('travelling');
    expect(life.later(61 * SECOND, home, []).ended).toMatchObject({
      reason: { code: 'no-migration' },
      next: { destination: 'h2' },
    });
  });
});

describe('the verification', () => {
  it('acts: all checks passed for verifySeconds, it is confirmed', () => {
    const life = new Life().arrived().sees(there);
    expect(life.at).toBe('verifying');
    life.later(60 * SECOND, there);
    expect(decide(life.state)).toEqual({ do: 'appendVerified', host: 'h2', verifySeconds: 60 });
    expect(life.when(appended).sees(there).settle).toBe('confirm verified');
  });

  it.each([
    ['the power state', { powerState: 4 }, {}],
    ['the addresses', { addresses: [] }, {}],
    ['the volumes', { volumes: ['v1', 'v2'] }, {}],
    ['the flavor', { flavor: 'm9' }, {}],
    ['the probe', {}, { probe: { ok: false, text: 'no' } }],
    ['an aggregate that is not read', {}, { targetHosts: null }],
  ])('refuses: %s differs beyond the limit, it is reverted; before that the time begins anew', (_, changes, more) => {
    const wrong = { ...there, ...changes };
    const life = new Life()
      .arrived()
      .sees(there)
      .later(50 * SECOND, wrong, [row('finished')], more);
    expect(life.later(20 * SECOND, there).at).toBe('verifying');
    expect(life.later(10 * MINUTE, wrong, [row('finished')], more).settle).toBe('revert verification');
  });

  it('refuses at once: a host outside the target, and for a cold migration any but the named one', () => {
    expect(new Life().arrived().sees({ ...there, host: 'h3' }).settle).toBe('revert wrong-host');
    const resize = { start: { method: 'resize' as const }, cell: { method: 'resize' as const } };
    const rows = [row('finished', { type: 'resize', destCompute: 'h3' })];
    const life = (host: string) =>
      new Life(resize)
        .accepted()
        .sees({ ...there, host }, rows)
        .when(appended)
        .sees({ ...there, host }, rows)
        .when(appended)
        .sees({ ...there, host }, rows);
    expect(life('h9').settle).toBe('revert wrong-host');
    expect(life('h3').at).toBe('verifying');
  });

  it('does nothing: with confirm = manual it waits for a person', () => {
    const life = new Life({ cell: { confirm: 'manual', verifySeconds: 0 } }).arrived().sees(there).when(appended);
    expect(life.sees(there).later(MINUTE, { ...there, powerState: 4 }).at).toBe('verifying');
    const asks = (act: 'confirm' | 'revert') => ({ settleAsked: { act, by: 'ada' } });
    expect(new Life().arrived().sees(there, [row('finished')], {}, asks('confirm')).settle).toBe('confirm operator');
    expect(new Life().arrived().sees(there, [row('finished')], {}, asks('revert')).settle).toBe('revert operator');
    expect(new Life().arrived().sees(there, [row('finished')], {}, { stopAsked: true }).settle).toBe('revert operator');
  });
});

const closeAsked = { by: 'ada', comment: null };

describe('the end', () => {
  const verified = () => new Life({ cell: { verifySeconds: 0 } }).arrived().sees(there).when(appended).sees(there);

  it('acts: confirmed, it is a completed move with its downtime', () => {
    const life = verified().settled('confirm', 'verified');
    expect(life.sees(there, [row('confirming')]).at).toBe('concluding');
    expect(life.sees(away, [row('confirmed')]).ended).toMatchObject({
      type: 'completed',
      host: 'h2',
      warnings: [],
      cell: { method: 'migrate', settledBy: 'kronos', downtimeMs: 0 },
    });
  });

  it('acts: what the log has first is done, whatever this executor wanted', () => {
    const life = verified().settled('revert', 'operator');
    expect(life.sees(there).at).toBe('concluding');
    expect(life.later(MINUTE, there).at).toBe('asking');
    expect(decide(life.state)).toMatchObject({ do: 'settle', act: 'revert' });
    life.when({ kind: 'settleAnswered' });
    expect(life.sees(home, [row('reverted')]).ended).toMatchObject({ errorType: 'Cancelled', next: null });
  });

  it('acts: somebody else confirmed or reverted it, and the outcome is accepted', () => {
    expect(
      new Life()
        .arrived()
        .sees(away, [row('confirmed')])
        .sees(away, [row('confirmed')]).ended,
    ).toMatchObject({ type: 'completed', warnings: [], cell: { settledBy: 'others' } });
    // It was never seen in VERIFY_RESIZE, but Nova's row says that it was confirmed there.
    const unseen = new Life()
      .accepted()
      .sees(away, [row('confirmed')])
      .when(appended);
    for (let looks = 0; looks < 2; looks++) unseen.later(MINUTE, away, [row('confirmed')]);
    expect(unseen.ended).toMatchObject({ type: 'completed', warnings: [] });
    expect(
      new Life()
        .arrived()
        .sees(home, [row('reverted')])
        .sees(home, [row('reverted')]).ended,
    ).toMatchObject({ reason: { code: 'reverted-by-others' }, next: null });
  });

  it('refuses to call it plain: a server in ERROR, or powered off', () => {
    const story = told('no space');
    const life = verified()
      .settled('revert', 'verification')
      .sees({ ...home, status: 'ERROR', vmState: 'error' }, [row('error')]);
    expect(life.at).toBe('inquiring');
    expect(life.when(story).ended).toMatchObject({ reason: { code: 'server-in-error', detail: { step: 'revert' } } });
    const off = new Life()
      .accepted()
      .sees({ ...home, taskState: 'resize_migrating' })
      .when(appended);
    off.sees({ ...home, powerState: 4 }, [row('error')]).when(story);
    expect(off.ended).toMatchObject({ reason: { code: 'guest-off' }, next: null });
  });

  it('refuses: a target without room leads to the alternate; a resize has none', () => {
    const none = told('No valid host was found.');
    const run = (given: ConstructorParameters<typeof Life>[0], type: string) =>
      new Life(given)
        .accepted()
        .sees(home, [row('error', { type, destCompute: null })])
        .when(appended)
        .sees(home, [row('error', { type })])
        .when(none);
    expect(run({}, 'migration').ended).toMatchObject({
      reason: { code: 'no-valid-host' },
      next: { destination: 'h3' },
    });
    expect(run({ start: { method: 'resize' } }, 'resize').ended).toMatchObject({ next: null, hostAtFault: null });
  });

  it('does nothing more: the server is gone, another has ended it, or a person closed it', () => {
    expect(new Life().arrived().sees('gone').ended).toMatchObject({
      errorType: 'Cancelled',
      reason: { code: 'server-gone' },
    });
    expect(new Life().arrived().sees(there, [], {}, { ended: true }).at).toBe('received');
    expect(new Life().arrived().sees(there, [], {}, { closeAsked }).ended).toMatchObject({
      reason: { code: 'closed' },
    });
  });

  it('is closed without force only when Nova shows that nothing works on the server', () => {
    const busy = { ...there, taskState: 'resize_reverting' };
    for (const server of [busy, null]) {
      expect(new Life().arrived().sees(server, [], {}, { closeAsked }).at).not.toBe('ending');
      expect(new Life().arrived().sees(server, [], {}, { closeAsked: { ...closeAsked, force: true } }).at).toBe(
        'ending',
      );
    }
  });

  it('is not closed without force while Nova may have a request that it has not begun', () => {
    const life = new Life().posted({ kind: 'unknown', text: 'cut off' });
    expect(life.sees(home, [], {}, { closeAsked }).at).toBe('travelling');
    life.pass(MINUTE - 1);
    expect(life.sees(home, [], {}, { closeAsked }).at).toBe('travelling');
    life.pass(1);
    expect(life.sees(home, [row('pre-migrating')], {}, { closeAsked }).at).toBe('recording');
    const unseen = new Life().posted({ kind: 'unknown', text: 'cut off' }).pass(MINUTE);
    expect(unseen.sees(home, [], {}, { closeAsked }).ended).toMatchObject({
      reason: { code: 'closed', text: 'closed by ada; no migration was seen' },
      next: null,
    });
  });

  it('is not asked about again once a person closes it with force', () => {
    const life = new Life()
      .accepted()
      .sees(home, [row('migrating')])
      .when(appended)
      .sees(home, [row('error')]);
    const blind = (closeAsked: AttemptOrders['closeAsked']): Body => ({
      kind: 'blind',
      text: 'down',
      orders: { ...orders, closeAsked },
    });
    expect(life.when(blind(null)).at).toBe('inquiring');
    expect(life.when(blind({ by: 'ada', comment: null, force: true })).ended).toMatchObject({ next: null });
  });
});

describe('after a crash', () => {
  const resume = (slot: object): string => {
    const life = new Life();
    life.state = { ...life.state, stage: { at: 'received' } };
    return life.when(log(begun(slot))).at;
  };

  it('goes on where the log has it, and never POSTs', () => {
    expect(resume({})).toBe('travelling');
    expect(resume({ verifying: { atMs: 0, host: 'h2' } })).toBe('verifying');
    const settle = { sequence: 1, atMs: 0, act: 'confirm', cause: 'verified', reason: { code: 'x', text: '' } };
    expect(resume({ verifying: { atMs: 0, host: 'h2' }, settle })).toBe('concluding');
  });
});

/** Random facts that fit the stage. */
function walk(seed: number, edges: Set<string>): void {
  const uniform = random(seed);
  const pick = <T>(...from: readonly T[]): T => from[Math.floor(uniform() * from.length)] as T;
  const given = { cell: { confirm: pick('auto' as const, 'manual' as const), verifySeconds: 0 } };
  const life = new Life({ ...given, options: { verifyTimeoutMs: 30 * SECOND } });
  let first: 'confirm' | 'revert' | null = null;
  const said = (): AttemptOrders => ({
    stopAsked: uniform() < 0.05,
    closeAsked: uniform() < 0.02 ? closeAsked : null,
    ended: uniform() < 0.02,
    ...(uniform() < 0.2 ? { settleAsked: { act: pick('confirm', 'revert'), by: 'ada' } } : {}),
  });
  for (let step = 0; step < 60; step += 1) {
    const { stage } = life.state;
    const before = stage.at;
    if (['ending', 'finished', 'received'].includes(before)) return;
    life.pass(pick(0, 5, 40, 120) * SECOND);
    const write = pick<Body>(appended, appended, { kind: 'conflict' }, { kind: 'lostTrack' });
    switch (stage.at) {
      case 'resizing':
        life.when({
          kind: 'posted',
          answer: pick(
            { kind: 'accepted', requestId: 'r' },
            { kind: 'unknown', text: '' },
            { kind: 'refused', status: 400, text: 'no' },
            { kind: 'notSent', text: '' },
          ),
        });
        break;
      case 'travelling':
      case 'verifying':
      case 'concluding': {
        const status = pick('migrating', 'finished', 'confirming', 'confirmed', 'reverted', 'error');
        const server = pick<CellServer | 'gone' | null>(
          home,
          away,
          there,
          there,
          { ...home, taskState: 'resize_prep' },
          { ...home, powerState: 4 },
          { ...there, powerState: 4 },
          { ...home, status: 'ERROR', vmState: 'error' },
          'gone',
          null,
        );
        const look = {
          migrations: pick([], [row(status)], [row(status), row('finished')]),
          server,
          targetHosts: ['h2'],
          probe: null,
        };
        life.when(
          pick<Body>(
            { kind: 'lookedCell', look, orders: said() },
            { kind: 'lookedCell', look, orders },
            { kind: 'lookedCell', look, orders },
            { kind: 'blind', text: '', orders },
            { kind: 'draining' },
          ),
        );
        break;
      }
      case 'agreeing': {
        first ??= pick('confirm', 'revert');
        const settle = { sequence: 1, atMs: 0, act: first, cause: 'operator', reason: { code: 'x', text: '' } };
        life.when(pick(log(begun({ settle })), log({ kind: 'ended', next: null })));
        break;
      }
      case 'asking':
        expect(decide(life.state)).toMatchObject({ do: 'settle', act: first });
        life.when({ kind: 'settleAnswered' });
        break;
      case 'inquiring':
        life.when(
          pick<Body>(
            {
              kind: 'explained',
              orders,
              account: { story: null, asked: true, hosts: { source: 'up', destination: 'up' } },
            },
            { kind: 'blind', text: '', orders },
            { kind: 'draining' },
          ),
        );
        break;
      default:
        life.when(write);
    }
    edges.add(`${before} --> ${life.at}`);
  }
}

it('over random lives only the first of confirm and revert on the log is asked for, and the README draws every transition', () => {
  const edges = new Set<string>();
  for (let seed = 0; seed < 20_000; seed += 1) walk(seed, edges);
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const [, part = ''] = readme.split('## Moves between cells');
  const drawn = [...part.matchAll(/^ {2}(\w+) --> (\w+)/gm)].map(([, from, to_]) => `${from} --> ${to_}`);
  expect([...edges].sort()).toEqual([...new Set(drawn)].sort());
});
