import { clause, type Decision } from '@kronos/contracts';
import { EPSILON } from '@kronos/rules';
import { float, int, item } from '../base/array.ts';
import { imbalances, worsened } from '../cluster/measure.ts';
import { codeOfNumber, type ReasonCode, reasonMeanings } from '../reasons.ts';
import type { Draft } from './draft.ts';
import { movesOf, packing } from './packing.ts';
import { type Target, Targets } from './targets.ts';

/**
 * Evacuator: moves VMs off hosts that are disabled and up. Among all (VM, destination) pairs that are legal and push no policy past its
 * threshold, it takes the pair with the lowest combined imbalance (ties: the largest VM, then the least loaded host), applies it and
 * repeats. If this strands VMs that a packing of all VMs can place, it uses the packing instead, as far as the budget allows. The next
 * cycles make the rest of the packing.
 */
export function evacuate(draft: Draft): void {
  const { cluster, place, budget } = draft;
  const waiting: number[] = [];
  for (let vm = 0; vm < cluster.V; vm++)
    if (cluster.leaving[int(place, vm)] === 1 && draft.evacuable(vm)) waiting.push(vm);
  if (waiting.length === 0) return;
  // With an unlimited budget, which shows the effect of the first moves on the later ones.
  const mark = draft.moves.length;
  const before = imbalances(cluster, draft.score);
  draft.budget = waiting.length;
  const stranded = leaveOneByOne(draft, waiting);
  const oneByOne = draft.moves.slice(mark);
  const make = (moves: readonly { vm: number; to: number }[]): void => {
    draft.rollback(mark);
    for (const { vm, to } of moves.slice(0, budget)) draft.apply(vm, to, 'evacuate', 'leaves-disabled-host');
    draft.budget = budget - (draft.moves.length - mark);
  };
  if (stranded > 0) {
    draft.rollback(mark);
    const better = packing(draft, waiting, stranded);
    if (better !== null) {
      make(movesOf(better));
      // The whole packing pushes no policy past its threshold; a part of it might.
      if (!worsened(cluster, before, imbalances(cluster, draft.score))) return;
    }
  }
  make(oneByOne);
}

/** Applies the best pair until none is left; returns the number of VMs without a host. */
function leaveOneByOne(draft: Draft, vms: readonly number[]): number {
  const { cluster } = draft;
  let waiting = [...vms];
  const ram = (vm: number): number => float(cluster.ramMb, vm);
  waiting.sort((a, b) => ram(b) - ram(a) || a - b);
  const targets = new Targets(draft);
  while (waiting.length > 0) {
    let best: Target | null = null;
    const enough = targets.least + EPSILON;
    for (const vm of waiting) {
      // No remaining pair can be better.
      if (best !== null && best.combined <= enough) break;
      const target = targets.of(vm);
      if (target === null) continue;
      if (best === null || target.combined < best.combined - EPSILON) best = target;
    }
    if (best === null) break;
    const taken = best;
    const from = int(draft.place, taken.vm);
    draft.apply(taken.vm, taken.to, 'evacuate', 'leaves-disabled-host');
    waiting = waiting.filter((vm) => vm !== taken.vm);
    targets.moved(from, taken.to);
  }
  return waiting.length;
}

/** Reasons that end by themselves: a VM is not stuck with one of them, nor while a host refuses it for one. */
const passing: ReadonlySet<ReasonCode> = new Set([
  'vm-in-flight',
  'vm-cooling-down',
  'vm-busy',
  'vm-migrating',
  'vm-outside-window',
  'host-broken',
]);

/** Progress of the evacuation of each disabled host. Adds the VMs that cannot leave, with reasons, to `draft.stuck`. */
export function evacuationEnds(draft: Draft): Decision['evacuations'] {
  const { cluster, moved, budget } = draft;
  const left = new Int32Array(cluster.H);
  const running = new Uint8Array(cluster.H);
  let targets: Targets | null = null;
  for (let vm = 0; vm < cluster.V; vm++) {
    const host = int(cluster.vmHost, vm);
    for (const other of cluster.alsoOn.get(vm) ?? [])
      if (cluster.leaving[other] === 1 && cluster.leaving[host] === 0) {
        left[other] = int(left, other) + 1;
        running[other] = 1;
      }
    if (cluster.leaving[host] !== 1) continue;
    left[host] = int(left, host) + 1;
    if (moved[vm] === 1) {
      running[host] = 1;
      continue;
    }
    const refusal = int(cluster.vmRefusal, vm);
    let code: ReasonCode;
    let counts: Record<string, number> = {};
    if (refusal !== 0) {
      code = codeOfNumber(refusal);
      if (passing.has(code)) {
        running[host] = 1;
        continue;
      }
    } else {
      targets ??= new Targets(draft);
      if (budget === 0 && targets.of(vm) !== null) {
        running[host] = 1;
        continue;
      }
      ({ code, counts } = targets.whyNot(vm));
      if (Object.keys(counts).some((reason) => passing.has(reason as ReasonCode))) {
        running[host] = 1;
        continue;
      }
    }
    const text =
      refusal === 0 && code !== 'no-destination'
        ? `No host takes it: ${clause(reasonMeanings[code])}.`
        : reasonMeanings[code];
    draft.addStuck(vm, 'evacuate', { code, text, detail: { refusals: counts } });
  }
  const ends: Decision['evacuations'] = [];
  for (let h = 0; h < cluster.H; h++) {
    if (cluster.leaving[h] !== 1) continue;
    const count = int(left, h);
    const state = count === 0 ? 'done' : running[h] === 1 ? 'running' : 'stuck';
    ends.push({ host: item(cluster.hostNames, h), state, left: count });
  }
  return ends;
}
