import { ALL } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { randomHistory, testLog } from '../testing/index.ts';
import {
  anchorOf,
  type CheckpointPart,
  canonicalState,
  FOLD_VERSION,
  fromParts,
  type Json,
  toParts,
} from './checkpoint.ts';
import { fold } from './evolve.ts';

const history = [...randomHistory({ seed: 7, cycles: 60 })];
const state = fold(history);
/** The parts after a way over the wire. */
const wire = (parts: CheckpointPart[]): CheckpointPart[] => JSON.parse(JSON.stringify(parts));
const problemOf = (parts: CheckpointPart[]) => {
  const restored = fromParts(parts);
  return restored.ok ? null : restored.problem;
};
const body = (part: CheckpointPart) => part.state as { [key: string]: Json };

describe('a checkpoint', () => {
  it('is one part per aggregate, each with what holds for all', () => {
    const log = testLog();
    log.released([{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
    log.about('other').decided();
    log.about(ALL).paused('grace');
    const parts = toParts(log.fold(), 'anchor');
    expect(parts.map((p) => [p.aggregate, p.sequence, p.foldVersion])).toEqual([
      ['gpu', 3, FOLD_VERSION],
      ['other', 3, FOLD_VERSION],
    ]);
    for (const part of parts) expect(part.state).toMatchObject({ all: { paused: { by: 'grace' } } });
  });

  it('restores the very state', () => {
    const restored = fromParts(wire(toParts(state, 'anchor')));
    expect(restored).toEqual({ ok: true, state, anchor: 'anchor' });
    expect(restored.ok && canonicalState(restored.state)).toBe(canonicalState(state));
  });

  it('does not care in which order its parts come', () => {
    expect(fromParts(wire(toParts(state, 'anchor')).reverse())).toEqual({ ok: true, state, anchor: 'anchor' });
  });

  it('has no part before the first event', () => {
    expect(toParts(fold([]), 'none')).toEqual([]);
    expect(problemOf([])).toMatch(/no part/);
  });

  it('is skipped when a part is missing', () => {
    expect(problemOf(wire(toParts(state, 'anchor')).slice(1))).toMatch(/the part of .* is missing/);
  });

  it('is skipped when its parts are of different sequences', () => {
    const [first, ...rest] = wire(toParts(state, 'anchor'));
    expect(first && problemOf([{ ...first, sequence: 3 }, ...rest])).toMatch(/is at sequence/);
  });

  it('is skipped when another fold version wrote it', () => {
    expect(problemOf(wire(toParts(state, 'anchor')).map((p) => ({ ...p, foldVersion: FOLD_VERSION + 1 })))).toMatch(
      /fold version/,
    );
  });

  it('is skipped when its writer read other events', () => {
    const parts = wire(toParts(state, 'anchor'));
    for (const part of parts) body(part).reads = ['cycle.decided/1'];
    expect(problemOf(parts)).toMatch(/reads other events/);
  });

  it('is skipped when its parts disagree on what holds for all', () => {
    const parts = wire(toParts(state, 'anchor'));
    const [first] = parts;
    if (first !== undefined) (body(first).all as { [key: string]: Json }).seen = ['foreign'];
    expect(problemOf(parts)).toMatch(/disagree/);
  });

  it('names the event that it reaches, also one that cannot be read', () => {
    const log = testLog();
    const paused = log.paused();
    log.unreadable('migration.teleported', 7);
    log.unreadable('noise', null);
    expect(log.events.map(anchorOf)).toEqual([paused.id, 'migration.teleported/7', 'noise/?']);
  });

  it.each([
    ['no object', 'text'],
    ['no facts', { anchor: 'a', reads: [], aggregates: [], all: {} }],
    ['a list in place of a name', { anchor: 'a', reads: [], aggregates: 'gpu', all: {}, facts: {} }],
  ])('is skipped when its state is %s', (_, foreign) => {
    const parts = wire(toParts(state, 'anchor')).map((p) => ({ ...p, state: foreign as Json }));
    expect(problemOf(parts)).toMatch(/form/);
  });

  it.each(['removed', 'added'])(
    'is skipped when a field of the facts was %s since, in the same fold version',
    (change) => {
      const parts = wire(toParts(state, 'anchor'));
      for (const part of parts) {
        const facts = body(part).facts as { [key: string]: Json };
        if (change === 'removed') facts.extra = {};
        else delete facts.hostFailures;
      }
      expect(problemOf(parts)).toMatch(/form/);
    },
  );

  it.each(['plans', 'seen', 'recentPlans', 'extra'])('is skipped when %s has another form', (field) => {
    const parts = wire(toParts(state, 'anchor'));
    for (const part of parts) (body(part).facts as { [key: string]: Json })[field] = 'another';
    expect(problemOf(parts)).toMatch(/form/);
  });
});
