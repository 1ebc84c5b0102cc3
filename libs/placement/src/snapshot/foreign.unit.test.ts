import { type CompleteEngineOptions, type EndedMigration, foreignText } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { decideInput, SKETCH_TIME } from '../../testing/index.ts';
import { decide } from '../decide.ts';
import type { Memory, OwnMove } from './memory.ts';

const ago = (minutes: number): string => new Date(Date.parse(SKETCH_TIME) - minutes * 60_000).toISOString();
/** Kronos moved b from h1 to h2 an hour and a half ago. Somebody moved it back. */
const own: OwnMove = { from: 'h1', to: 'h2', atMs: Date.parse(ago(90)), migrationId: 7 };
const back: EndedMigration = { id: 9, serverId: 'b', from: 'h2', to: 'h1', at: ago(10) };

/** The same of c. */
const ownOfC: OwnMove = { from: 'h2', to: 'h1', atMs: Date.parse(ago(95)), migrationId: 8 };
const backOfC: EndedMigration = { id: 10, serverId: 'c', from: 'h1', to: 'h2', at: ago(20) };
const both = { ownMoves: { b: own, c: ownOfC } };

const decided = (
  ended: readonly EndedMigration[] | null,
  options: Partial<CompleteEngineOptions> = {},
  memory: Partial<Memory> = { ownMoves: { b: own } },
) =>
  decide(
    decideInput({
      policies: { cpu: { threshold: 0.1 } },
      hosts: { h1: {}, h2: {} },
      vms: {
        a: { host: 'h1', w: { cpu: 0.3 } },
        b: { host: 'h1', w: { cpu: 0.2 } },
        c: { host: 'h2', w: { cpu: 0.1 } },
      },
      snapshot: { endedMigrations: ended === null ? null : [...ended] },
      options,
      memory,
    }),
  );

describe('moves of others', () => {
  it('that undo a move of Kronos hold the VM where it is, and the decision names them', () => {
    expect(decided([]).plan?.steps).toMatchObject([{ serverId: 'b' }]);
    const { plan, refusals, foreign } = decided([back]);
    expect(plan?.steps.map(({ serverId }) => serverId)).toEqual(['a', 'c']);
    expect(refusals).toMatchObject({ 'vm-moved-by-others': 1 });
    expect(foreign).toEqual({
      count: 1,
      undone: 1,
      moves: [{ serverId: 'b', serverName: 'b', from: 'h2', to: 'h1', at: back.at, undoes: true }],
      stayUntil: ago(-50),
    });
    if (foreign !== undefined)
      expect(foreignText(foreign)).toBe(
        `a migration that Kronos did not start undoes one of its moves: it moved b from h2 to h1 at ${back.at}; the VM stays there until ${ago(-50)}`,
      );
  });

  it('of several VMs make it wait, until one VM of them is left', () => {
    const { outcome, reason, foreign } = decided([back, backOfC], {}, both);
    expect([outcome, reason.code]).toEqual(['quiet', 'foreign-moves']);
    expect(reason.text).toBe(
      `2 migrations that Kronos did not start undo its moves: the last one moved b from h2 to h1 at ${back.at}; nothing is balanced until ${ago(-40)}`,
    );
    expect(foreign).toMatchObject({ count: 2, undone: 2, waitUntil: ago(-40) });
    expect(foreign).not.toHaveProperty('stayUntil');
    // Fifteen minutes after the move of c, ten after that of b.
    const later = decided([back, backOfC], { foreignWaitSeconds: 900 }, both);
    expect(later.foreign).toMatchObject({ count: 1, stayUntil: ago(-5) });
  });

  it('that are unknown may be any: nothing is balanced, unless they are ignored', () => {
    expect(decided(null).reason.code).toBe('foreign-unknown');
    expect(decided(null, { foreignMoves: 'ignore' }).reason.code).toBe('planned');
  });

  it('that repeat one hold the VM, too', () => {
    expect(decided([{ ...back, from: 'h3', to: 'h2' }]).foreign).toMatchObject({
      count: 1,
      undone: 0,
      stayUntil: ago(-50),
    });
  });

  it('are neither the move of Kronos itself, nor earlier ones, nor those of a VM that it never moved', () => {
    for (const one of [
      { ...back, id: 7, from: 'h1', to: 'h2' },
      { ...back, id: 5 },
      { ...back, serverId: 'a' },
      { ...back, from: 'h3', to: 'h1' },
    ]) {
      const { reason, foreign } = decided([one]);
      expect([reason.code, foreign]).toEqual(['planned', undefined]);
    }
    const flying = { taskId: 't', serverId: 'b', from: 'h1', destination: 'h2', resources: {}, weights: {}, ramMb: 1 };
    expect(
      decided([back], {}, { ownMoves: { b: own }, inFlight: [{ ...flying, startedAtMs: Date.parse(ago(11)) }] })
        .foreign,
    ).toBeUndefined();
  });

  it('are told by the time where the id of the own move is not known', () => {
    const unnamed = (at: string) => ({ ownMoves: { b: { ...own, migrationId: null, atMs: Date.parse(at) } } });
    expect(decided([back], {}, unnamed(ago(11))).foreign).toMatchObject({ count: 1 });
    expect(decided([back], {}, unnamed(ago(9))).foreign).toBeUndefined();
  });

  it('are over after foreign_wait, and are only told where they are ignored', () => {
    expect(decided([back], { foreignWaitSeconds: 600 }).foreign).toBeUndefined();
    const ignored = decided([back, backOfC], { foreignMoves: 'ignore' }, both);
    expect(ignored.plan?.steps).toMatchObject([{ serverId: 'b' }]);
    expect(ignored.foreign).toMatchObject({ count: 2 });
    expect(ignored.foreign).not.toHaveProperty('waitUntil');
    expect(ignored.foreign).not.toHaveProperty('stayUntil');
  });

  it('hold back no evacuation', () => {
    const input = decideInput({
      policies: { cpu: { threshold: 0.1 } },
      hosts: { h1: { disabled: true }, h2: {} },
      vms: { b: { host: 'h1', w: { cpu: 0.2 } } },
      snapshot: { endedMigrations: [back] },
      options: { evacuateDisabledHosts: true },
      memory: { ownMoves: { b: own } },
    });
    expect(decide(input).plan?.steps).toMatchObject([{ serverId: 'b', phase: 'evacuate' }]);
  });
});
