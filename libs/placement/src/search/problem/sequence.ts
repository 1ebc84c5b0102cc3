import { float, int } from '../../base/array.ts';
import type { Cluster } from '../../cluster/cluster.ts';
import { fitsUnits, NO_REPAIR } from '../../cluster/constraints.ts';
import type { Draft, Move } from '../../draft/draft.ts';
import { arrange } from '../../draft/order.ts';
import type { Field } from './field.ts';

/** VMs that wait on a third host until their destination has room, with that host. */
export type Parked = ReadonlyMap<number, number>;

export const nobody: Parked = new Map();

/** Blocked moves for which parking is tried, and third hosts tried for each: parking is for a few tight hosts. */
const PARKED_MOST = 8;
const HOSTS_MOST = 64;

/** The spread moves that lead from home to a placement. */
function movesTo(field: Field, place: Int32Array, parked: Parked): Move[] {
  const moves: Move[] = [];
  for (let v = 0; v < field.V; v++) {
    const from = int(field.home, v);
    const to = int(place, v);
    if (from === to) continue;
    const move = { vm: v, phase: 'spread', repairs: NO_REPAIR } as const;
    const third = parked.get(v);
    if (third === undefined) moves.push({ ...move, from, to, parking: false, why: 'lowers-imbalance' });
    else
      moves.push(
        { ...move, from, to: third, parking: true, why: 'parks-vm' },
        { ...move, from: third, to, parking: false, why: 'lowers-imbalance' },
      );
  }
  return moves;
}

/** For each VM that moves to a placement: the VMs of the field whose moves it waits for. */
export function arrangeTo(
  draft: Draft,
  field: Field,
  place: Int32Array,
  parked: Parked,
): ReadonlyMap<number, readonly number[]> {
  const kept = draft.moves.length;
  const moves = [...draft.moves, ...movesTo(field, place, parked)];
  const { dependsOn } = arrange(field.cluster, moves);
  const waits = new Map<number, number[]>();
  dependsOn.forEach((others, i) => {
    const vm = moves[i]?.vm;
    if (i < kept || vm === undefined) return;
    const vms = others.flatMap((j) => (j >= kept && moves[j] !== undefined && moves[j].vm !== vm ? [moves[j].vm] : []));
    waits.set(vm, [...(waits.get(vm) ?? []), ...vms]);
  });
  return waits;
}

/** The moves to a placement that are impossible in every order after the planned moves. */
export function blockedMoves(draft: Draft, field: Field, place: Int32Array, parked: Parked): Move[] {
  const moves = [...draft.moves, ...movesTo(field, place, parked)];
  return arrange(field.cluster, moves).blocked.flatMap((i) => moves[i] ?? []);
}

/**
 * Parks VMs on third hosts until no move is blocked or parking no longer helps. Returns the parked VMs; `blocked` holds the
 * moves that are still blocked.
 */
export function park(draft: Draft, field: Field, place: Int32Array): { parked: Parked; blocked: Move[] } {
  const { cluster, destinations } = field;
  let parked: Parked = nobody;
  let blocked = blockedMoves(draft, field, place, parked);
  for (let tries = 0; blocked.length > 0 && tries < PARKED_MOST; tries++) {
    let better: { parked: Parked; blocked: Move[] } | null = null;
    const candidates = blocked.filter((move) => move.phase === 'spread' && !parked.has(move.vm));
    candidates.sort((a, b) => float(cluster.ramMb, a.vm) - float(cluster.ramMb, b.vm) || a.vm - b.vm);
    for (const move of candidates) {
      const thirds = destinations.filter((h) => canPark(cluster, move, h));
      for (const third of thirds.slice(0, HOSTS_MOST)) {
        const trial = new Map(parked).set(move.vm, third);
        const rest = blockedMoves(draft, field, place, trial);
        if (rest.length < (better?.blocked.length ?? blocked.length)) better = { parked: trial, blocked: rest };
        if (rest.length === 0) break;
      }
      if (better !== null) break;
    }
    if (better === null) break;
    ({ parked, blocked } = better);
  }
  return { parked, blocked };
}

/** May the VM go to the third host and on from there, by kinds of hosts and free amounts? */
function canPark(cluster: Cluster, move: Move, third: number): boolean {
  const { vmKind, hostSource, sources, hostClass, classes, keyLegal, R, demand, free, vmGroups, groups, units } =
    cluster;
  if (third === move.from || third === move.to) return false;
  // Two hosts would have to keep NUMA cells for it.
  if (cluster.numa?.vms[move.vm] !== undefined) return false;
  if ((vmGroups[move.vm] ?? []).some((g) => groups[g]?.affine)) return false;
  const legal = (from: number, to: number): boolean => {
    const key = int(vmKind, move.vm) * sources + int(hostSource, from);
    return keyLegal[key * classes + int(hostClass, to)] === 0;
  };
  if (!legal(move.from, third) || !legal(third, move.to)) return false;
  for (let r = 0; r < R; r++) {
    const amount = float(demand, move.vm * R + r);
    if (amount > float(free, third * R + r)) return false;
    if (amount > 0 && units !== null && !fitsUnits(units, third * R + r, amount)) return false;
  }
  return true;
}
