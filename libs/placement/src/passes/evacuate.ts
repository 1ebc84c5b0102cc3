import type { Decision } from '@kronos/contracts';
import type { Draft } from '../draft.ts';
import { EPSILON } from '../measure.ts';
import { codeOfNumber, type ReasonCode, reasonMeanings } from '../reasons.ts';
import { type Target, Targets } from '../targets.ts';

/**
 * Evacuator: moves VMs off hosts that are disabled and up. Of all (VM, destination) pairs that are legal and push no
 * policy past its threshold it takes the one that leaves the combined imbalance lowest (among equals the largest VM,
 * then the least loaded host), applies it and repeats.
 */
export function evacuate(draft: Draft): void {
  const { cluster } = draft;
  let waiting: number[] = [];
  for (let vm = 0; vm < cluster.V; vm++)
    if (cluster.leaving[draft.place[vm] ?? 0] === 1 && draft.movable(vm)) waiting.push(vm);
  if (waiting.length === 0) return;
  const ram = (vm: number): number => cluster.ramMb[vm] ?? 0;
  waiting.sort((a, b) => ram(b) - ram(a) || a - b);
  const targets = new Targets(draft);
  while (draft.budget > 0 && waiting.length > 0) {
    let best: Target | null = null;
    const enough = targets.least + EPSILON;
    for (const vm of waiting) {
      // Of those to come none can do better.
      if (best !== null && best.combined <= enough) break;
      const target = targets.of(vm);
      if (target === null) continue;
      if (best === null || target.combined < best.combined - EPSILON) best = target;
    }
    if (best === null) return;
    const taken = best;
    const from = draft.place[taken.vm] ?? 0;
    draft.apply(taken.vm, taken.to, 'evacuate', 'leaves-disabled-host');
    waiting = waiting.filter((vm) => vm !== taken.vm);
    targets.moved(from, taken.to);
  }
}

/** Reasons that pass by themselves: a VM that waits for one is not stuck. */
const passing: ReadonlySet<ReasonCode> = new Set(['vm-in-flight', 'vm-cooling-down', 'vm-busy', 'vm-migrating']);

/** How far the evacuation of each disabled host is; adds the VMs that cannot leave, and why, to `draft.stuck`. */
export function evacuationEnds(draft: Draft): Decision['evacuations'] {
  const { cluster, moved, place, budget } = draft;
  const left = new Int32Array(cluster.H);
  const running = new Uint8Array(cluster.H);
  let targets: Targets | null = null;
  for (let vm = 0; vm < cluster.V; vm++) {
    const host = cluster.vmHost[vm] ?? 0;
    for (const other of cluster.alsoOn.get(vm) ?? [])
      if (cluster.leaving[other] === 1 && cluster.leaving[host] === 0) {
        left[other] = (left[other] ?? 0) + 1;
        running[other] = 1;
      }
    if (cluster.leaving[host] !== 1) continue;
    left[host] = (left[host] ?? 0) + 1;
    if (moved[vm] === 1) {
      running[host] = 1;
      continue;
    }
    const refusal = cluster.vmRefusal[vm] ?? 0;
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
    }
    const text = refusal === 0 && code !== 'no-destination' ? `no host takes it: ${reasonMeanings[code]}` : '';
    draft.stuck.push({
      serverId: cluster.vmIds[vm] ?? '',
      serverName: cluster.vmNames[vm] ?? '',
      host: cluster.hostNames[place[vm] ?? 0] ?? '',
      phase: 'evacuate',
      reason: { code, text: text === '' ? reasonMeanings[code] : text, detail: { refusals: counts } },
    });
  }
  const ends: Decision['evacuations'] = [];
  for (let h = 0; h < cluster.H; h++) {
    if (cluster.leaving[h] !== 1) continue;
    const count = left[h] ?? 0;
    const state = count === 0 ? 'done' : running[h] === 1 ? 'running' : 'stuck';
    ends.push({ host: cluster.hostNames[h] ?? '', state, left: count });
  }
  return ends;
}
