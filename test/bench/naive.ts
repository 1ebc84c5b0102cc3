import type { ClusterFile } from '@kronos/placement';
import { cpuMs } from './cpuTime.ts';

/** Takes the weights of a VM from one host to another. */
function move(w: readonly number[], source: number[] | undefined, target: number[] | undefined): void {
  for (const [p, weight] of w.entries()) {
    if (source !== undefined) source[p] = (source[p] ?? 0) - weight;
    if (target !== undefined) target[p] = (target[p] ?? 0) + weight;
  }
}

function combinedOf(weights: readonly number[], scores: readonly (readonly number[])[]): number {
  let combined = 0;
  for (const [p, weight] of weights.entries()) {
    let high = Number.NEGATIVE_INFINITY;
    let low = Number.POSITIVE_INFINITY;
    for (const row of scores) {
      high = Math.max(high, row[p] ?? 0);
      low = Math.min(low, row[p] ?? 0);
    }
    combined += weight * (high - low);
  }
  return combined;
}

/**
 * The evaluator that a first implementation would have: for each candidate the scores of all hosts are copied, the move is
 * made, and every policy's maximum and minimum are looked for. Returns candidates per second of
 * processor time over a fixed number of them.
 */
export function naiveEvaluationsPerSecond(file: ClusterFile, candidates: number): number {
  const P = file.policies.length;
  const index = new Map(file.hosts.map((host, h) => [host.id, h]));
  const scores = file.hosts.map(() => new Array<number>(P).fill(0));
  const home = file.vms.map((vm) => index.get(vm.host) ?? 0);
  file.vms.forEach((vm, v) => {
    const row = scores[home[v] ?? 0];
    if (row !== undefined) for (let p = 0; p < P; p++) row[p] = (row[p] ?? 0) + (vm.w[p] ?? 0);
  });
  let best = Number.POSITIVE_INFINITY;
  let started = cpuMs();
  // The first half warms up.
  for (let i = 0; i < 2 * candidates; i++) {
    if (i === candidates) started = cpuMs();
    const v = (i * 7919) % file.vms.length;
    const to = (i * 104729) % file.hosts.length;
    const after = scores.map((row) => [...row]);
    move(file.vms[v]?.w ?? [], after[home[v] ?? 0], after[to]);
    best = Math.min(best, combinedOf(file.weights, after));
  }
  const seconds = (cpuMs() - started) / 1000;
  if (!Number.isFinite(best)) throw new Error('nothing was evaluated');
  return candidates / seconds;
}
