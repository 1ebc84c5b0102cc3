import { EPSILON } from '@kronos/rules';
import { int, item } from './base/array.ts';
import { Checker, Room } from './cluster/constraints.ts';
import { combinedOf, imbalances, worsened } from './cluster/measure.ts';
import type { Draft, Move } from './draft/draft.ts';
import { arrange } from './draft/order.ts';
import { FailureRoom, type Gaps } from './failover/failureRoom.ts';
import { codeNumber } from './reasons.ts';
import { type Pass, reasonOf, type State } from './state.ts';

/** A pass runs again without the VMs whose moves took room, at most this often. */
const MOST_RUNS = 3;

/**
 * The pass with moves that take no room for failures: in each state between two of them, no failure strands more VMs than before the
 * pass. VMs whose moves would are held, and the pass runs again without them. After {@link MOST_RUNS} runs the moves that keep room are
 * made, if they serve by themselves; else none.
 */
export const keepingRoom =
  (pass: Pass): Pass =>
  (state, carryOut) => {
    const { draft, options } = state;
    draft.held.clear();
    const mark = draft.moves.length;
    const marks = { warnings: draft.warnings.length, stuck: draft.stuck.length };
    let best: readonly Move[] = [];
    for (let run = 1; ; run++) {
      const passed = pass(state, carryOut);
      if (options.failoverHosts === 0 || draft.moves.length === mark) return held(state, passed, best, mark);
      const { kept, taking } = splitByRoom(draft, mark, options.failoverHosts);
      if (taking.length === 0) return passed;
      draft.refusals.add(codeNumber['failover-room'], taking.length);
      draft.rollback(mark);
      if (serves(draft, kept, best)) best = kept;
      for (const vm of taking) draft.held.add(vm);
      if (run === MOST_RUNS) return held(state, passed, best, mark);
      draft.warnings.length = marks.warnings;
      draft.stuck.length = marks.stuck;
    }
  };

/** The result when no run of the pass kept the room with all of its moves. */
function held(state: State, passed: ReturnType<Pass>, best: readonly Move[], mark: number): ReturnType<Pass> {
  const { draft, options } = state;
  if (draft.held.size === 0 || draft.moves.length > mark) return passed;
  for (const move of best) draft.apply(move.vm, move.to, move);
  state.drains = [];
  // Without the others, these may have another order.
  if (best.length > 0 && splitByRoom(draft, mark, options.failoverHosts).taking.length > 0) draft.rollback(mark);
  if (draft.moves.length > mark) return { moves: best.length };
  return 'end' in passed ? { end: reasonOf('failover-room') } : { moves: 0 };
}

/** True when these moves alone lower the imbalance further than the others do. Parts of a drain serve nothing. */
function serves(draft: Draft, moves: readonly Move[], than: readonly Move[]): boolean {
  if (moves.length === 0 || moves.some(({ phase }) => phase !== 'spread')) return false;
  const mark = draft.moves.length;
  const before = imbalances(draft.cluster, draft.score);
  const after = (list: readonly Move[]): number => {
    for (const { vm, to, phase, why } of list) draft.apply(vm, to, { phase, why });
    const reached = imbalances(draft.cluster, draft.score);
    draft.rollback(mark);
    return worsened(draft.cluster, before, reached) ? Number.POSITIVE_INFINITY : combinedOf(draft.cluster, reached);
  };
  return after(moves) < Math.min(after(than), combinedOf(draft.cluster, before)) - EPSILON;
}

/** The moves after the mark in the order of the plan: those that keep room, and the VMs of those that would take it. */
function splitByRoom(
  draft: Draft,
  mark: number,
  hosts: number,
): { readonly kept: readonly Move[]; readonly taking: readonly number[] } {
  const { cluster, moves } = draft;
  const before = moves.slice(0, mark);
  const room = roomAfter(draft, before, hosts);
  const gaps = room.gaps();
  const { order } = arrange(cluster, moves);
  const kept: Move[] = [];
  const taking: number[] = [];
  const skipped: number[] = [];
  const place = Int32Array.from(cluster.vmHost);
  const amounts = new Room(cluster, { departuresFree: true });
  const checker = new Checker(place, amounts);
  for (const { vm, from, to } of before) {
    amounts.move(vm, from, to);
    place[vm] = to;
  }
  for (const i of order) {
    if (i < mark) continue;
    const move = item(moves, i);
    const { vm, from, to, repairs } = move;
    // A move that was left out may have made room for this one, or was its first half.
    if (int(place, vm) !== from || checker.refusal(vm, to, repairs) !== 0) {
      skipped.push(vm);
      continue;
    }
    if (tries(room, vm, to, gaps)) {
      amounts.move(vm, from, to);
      place[vm] = to;
      kept.push(move);
    } else taking.push(vm);
  }
  // Where nothing was left out, a move that was skipped is one that nobody has checked.
  return { kept, taking: taking.length > 0 ? taking : skipped };
}

/** Makes the move if no failure then strands more VMs. */
export function tries(room: FailureRoom, vm: number, to: number, gaps: Gaps): boolean {
  const from = room.at(vm);
  room.move(vm, to);
  if (room.gapsIfKept(gaps) !== null) return true;
  room.move(vm, from);
  return false;
}

/** The room for failures after moves of a draft. */
export function roomAfter({ cluster }: Draft, moves: readonly Move[], hosts: number): FailureRoom {
  const room = new FailureRoom(cluster, hosts);
  for (const { vm, to } of moves) room.move(vm, to);
  return room;
}
