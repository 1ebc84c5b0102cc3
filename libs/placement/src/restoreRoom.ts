import { float, int } from './base/array.ts';
import { isBelow } from './base/sort.ts';
import { type Cluster, destinationsOf } from './cluster/cluster.ts';
import { Checker, NO_REPAIR } from './cluster/constraints.ts';
import { imbalances, valuesAfter, worsened } from './cluster/measure.ts';
import { Draft, type Move } from './draft/draft.ts';
import { arrange } from './draft/order.ts';
import { place } from './draft/placing.ts';
import { FailureRoom, type Gaps, type Tried } from './failover/failureRoom.ts';
import { roomAfter, tries } from './guard.ts';
import { codeNumber } from './reasons.ts';
import type { Passed, State } from './state.ts';

/** Legality checks of one search for VMs that make room. */
const MOST_CHECKS = 100_000;
/** Single moves that are tried for one step. */
const MOST_TRIES = 1_000;

const total = (gaps: Gaps): number => [...gaps.values()].reduce((sum, count) => sum + count, 0);

/**
 * Restores room for failures where it is gone, phase `headroom`: other VMs move off the hosts that should take the VMs of the failed
 * ones, as few as the exact search of evacuations finds; else single moves, the one first after which the fewest VMs are stranded.
 */
export function restoreRoom({ draft, options }: State): Passed {
  const { failoverHosts } = options;
  const mark = draft.moves.length;
  if (failoverHosts === 0) return { moves: 0 };
  draft.held.clear();
  const room = roomAfter(draft, draft.moves, failoverHosts);
  let gaps = room.gaps();
  while (gaps.size > 0 && draft.budget > 0) {
    const left = making(draft, room, gaps) ?? oneMove(draft, room, gaps);
    if (left === null) break;
    gaps = left;
  }
  return { moves: draft.moves.length - mark };
}

/** Moves residents off the hosts that take the VMs of one failure. Returns the gaps that are left; null when nothing was done. */
function making(draft: Draft, room: FailureRoom, gaps: Gaps): Gaps | null {
  for (const key of gaps.keys()) {
    const lost = new Set(FailureRoom.hostsOf(key));
    const moves = residentsFor(draft, lost);
    const done = moves.length === 0 || moves.length > draft.budget ? null : make(draft, room, gaps, moves);
    if (done !== null) return done;
  }
  return null;
}

type Wish = { readonly vm: number; readonly to: number };

/** The VMs on other hosts that would have to move before the VMs of the failed hosts fit. */
function residentsFor({ cluster, moves, budget, held, moved }: Draft, lost: ReadonlySet<number>): readonly Wish[] {
  const hostRefusal = cluster.hostRefusal.map((refusal, h) => (lost.has(h) ? codeNumber['host-down'] : refusal));
  const without = new Draft({ ...cluster, hostRefusal }, budget);
  for (const { vm, to, phase, why } of moves) without.apply(vm, to, { phase, why });
  for (const vm of held) without.held.add(vm);
  const vms = Array.from({ length: cluster.V }, (_, vm) => vm).filter((vm) => lost.has(int(without.place, vm)));
  const repairs = new Map(vms.map((vm) => [vm, affineGroupOf(cluster, vm)]));
  const wanted = { vms, residents: true, most: budget, thresholds: false, stranded: 1, repairs, work: MOST_CHECKS };
  const found = place(without, wanted)?.moves ?? [];
  return found.filter(({ vm, wanted: fails }) => !fails && moved[vm] === 0);
}

const affineGroupOf = (cluster: Cluster, vm: number): number =>
  (cluster.vmGroups[vm] ?? []).find((g) => cluster.groups[g]?.affine === true) ?? NO_REPAIR;

/** Makes the moves if each leaves no failure worse and the last one leaves fewer VMs stranded. */
function make(draft: Draft, room: FailureRoom, gaps: Gaps, moves: readonly Wish[]): Gaps | null {
  const mark = draft.moves.length;
  const done: Move[] = [];
  for (const { vm, to } of moves) {
    const from = room.at(vm);
    if (!tries(room, vm, to, gaps)) break;
    draft.apply(vm, to, { phase: 'headroom', why: 'restores-failover-room' });
    done.push({ vm, from, to, phase: 'headroom', parking: false, why: 'restores-failover-room', repairs: NO_REPAIR });
  }
  const left = room.gaps();
  const whole = done.length === moves.length && arrange(draft.cluster, draft.moves).blocked.length === 0;
  if (whole && total(left) < total(gaps)) return left;
  for (const { vm, from } of done.toReversed()) room.move(vm, from);
  draft.rollback(mark);
  return null;
}

/** The single move that leaves the fewest VMs stranded; of these one that worsens no policy above its threshold, then the least RAM. */
function oneMove(draft: Draft, room: FailureRoom, gaps: Gaps): Gaps | null {
  const { cluster } = draft;
  const checker = new Checker(draft.place, draft.room);
  const lacking = new Set([...gaps.keys()].flatMap((key) => [...FailureRoom.hostsOf(key)]));
  const movable = Array.from({ length: cluster.V }, (_, vm) => vm).filter((vm) => draft.movable(vm));
  const onLacking = (vm: number): number => (lacking.has(int(draft.place, vm)) ? 0 : 1);
  movable.sort((a, b) => onLacking(a) - onLacking(b) || float(cluster.ramMb, b) - float(cluster.ramMb, a) || a - b);
  const before = imbalances(cluster, draft.score);
  let best: { readonly wish: Wish; readonly rank: readonly [number, number, number] } | null = null;
  const searched: Tried = new Map();
  let tried = 0;
  for (const vm of movable)
    for (const to of destinationsOf(cluster)) {
      if (tried >= MOST_TRIES || checker.refusal(vm, to) !== 0) continue;
      tried++;
      const left = room.gapsAfter({ vm, to }, gaps, searched);
      if (left === null || total(left) >= total(gaps)) continue;
      const after = Int32Array.from(draft.place);
      after[vm] = to;
      const past = worsened(
        cluster,
        before,
        imbalances(cluster, valuesAfter(cluster, draft.score, draft.place, after)),
      );
      const rank = [total(left), past ? 1 : 0, float(cluster.ramMb, vm)] as const;
      if (best === null || isBelow(rank, best.rank)) best = { wish: { vm, to }, rank };
    }
  draft.evaluated += tried;
  return best === null ? null : make(draft, room, gaps, [best.wish]);
}
