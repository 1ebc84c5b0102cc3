import type { CompleteEngineOptions, EndedMigration } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { decideInput, SKETCH_TIME } from '../testing/index.ts';
import { decide } from './decide.ts';
import type { Memory, OwnMove } from './snapshot/memory.ts';

const ago = (minutes: number): string => new Date(Date.parse(SKETCH_TIME) - minutes * 60_000).toISOString();
/** Kronos moved b from h1 to h2 an hour and a half ago. Somebody moved it back. */
const own: OwnMove = { from: 'h1', to: 'h2', at: ago(90), migrationId: 7 };
const back: EndedMigration = { id: 9, serverId: 'b', from: 'h2', to: 'h1', at: ago(10) };

const decided = (
  ended: readonly EndedMigration[],
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
      snapshot: { endedMigrations: [...ended] },
      options,
      memory,
    }),
  );

describe('moves of others', () => {
  it('that undo a move of Kronos make it wait, and the decision names them', () => {
    const { outcome, reason, foreign } = decided([back]);
    expect([outcome, reason.code]).toEqual(['quiet', 'foreign-moves']);
    expect(reason.text).toContain('moved b from h2 to h1');
    expect(foreign).toEqual({
      count: 1,
      undone: 1,
      moves: [{ serverId: 'b', serverName: 'b', from: 'h2', to: 'h1', at: back.at, undoes: true }],
      waitUntil: ago(-50),
    });
  });

  it('that repeat one make it wait, too', () => {
    expect(decided([{ ...back, from: 'h3', to: 'h2' }]).foreign).toMatchObject({ count: 1, undone: 0 });
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
      decided([back], {}, { ownMoves: { b: own }, inFlight: [{ ...flying, startedAt: ago(11) }] }).foreign,
    ).toBeUndefined();
  });

  it('are told by the time where the id of the own move is not known', () => {
    const unnamed = (at: string) => ({ ownMoves: { b: { ...own, migrationId: null, at } } });
    expect(decided([back], {}, unnamed(ago(11))).reason.code).toBe('foreign-moves');
    expect(decided([back], {}, unnamed(ago(9))).reason.code).toBe('planned');
  });

  it('are over after foreign_wait, and are only told where they are ignored', () => {
    expect(decided([back], { foreignWaitSeconds: 600 }).reason.code).toBe('planned');
    const ignored = decided([back], { foreignMoves: 'ignore' });
    expect(ignored.reason.code).toBe('planned');
    expect(ignored.foreign).toMatchObject({ count: 1 });
    expect(ignored.foreign).not.toHaveProperty('waitUntil');
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
