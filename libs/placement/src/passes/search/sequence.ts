import { NO_REPAIR } from '../../constraints.ts';
import type { Draft, Move } from '../../draft.ts';
import { arrange } from '../../order.ts';
import type { Field } from './field.ts';

/** The spread moves that lead from home to a placement. */
export function movesTo(field: Field, place: Int32Array): Move[] {
  const moves: Move[] = [];
  for (let v = 0; v < field.V; v++) {
    const from = field.home[v] as number;
    const to = place[v] as number;
    if (from !== to)
      moves.push({ vm: v, from, to, phase: 'spread', parking: false, why: 'lowers-imbalance', repairs: NO_REPAIR });
  }
  return moves;
}

/** The moves to a placement that find no place in any order, after what is planned already. */
export function blockedMoves(draft: Draft, field: Field, place: Int32Array): Move[] {
  const moves = [...draft.moves, ...movesTo(field, place)];
  return arrange(field.cluster, moves).blocked.flatMap((i) => moves[i] ?? []);
}
