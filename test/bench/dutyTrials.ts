import { type ClusterFile, type PlannedCluster, planCluster } from '@kronos/placement';
import { budgetOf, halfFull, tightEvacuation, tightRepair } from './dutyInstances.ts';
import { bestEvacuation, bestPacking, bestRepair, wholeGroups } from './exact.ts';

/** The planner's result beside the proven optimum, over all instances that were proven in the time. */
export type Trial = {
  readonly instances: number;
  /** VMs that leave, or groups that are whole. */
  readonly done: number;
  readonly possible: number;
  /** Of the instances in which all that is possible was done. */
  readonly moves: number;
  readonly fewestMoves: number;
  readonly slowestMs: number;
};

/** Instances `from` to `from + count - 1`. */
export const evacuations = (from: number, count: number): Promise<Trial> =>
  trial(from, count, async (seed) => {
    const file = tightEvacuation(seed);
    const best = await bestEvacuation(file);
    const started = performance.now();
    const plan = planCluster(file, { maxMigrations: 1000, evacuateDisabledHosts: true });
    const ms = performance.now() - started;
    const disabled = new Set(file.hosts.flatMap((host) => (host.status === 'disabled' ? [host.id] : [])));
    const moves = plan.moves.filter((move) => move.phase === 'evacuate');
    const done = moves.filter((move) => disabled.has(move.from)).length;
    return { ms, done, moves: moves.length, best: best && { done: best.left, moves: best.moves } };
  });

export const repairs = (from: number, count: number): Promise<Trial> =>
  trial(from, count, async (seed) => {
    const file = tightRepair(seed);
    const best = await bestRepair(file);
    const started = performance.now();
    const plan = planCluster(file, { maxMigrations: 1000, enforceHardAffinity: true });
    const ms = performance.now() - started;
    const moves = plan.moves.filter((move) => move.phase === 'affinity');
    const at = new Map(file.vms.map((vm) => [vm.id, vm.host]));
    for (const move of moves) at.set(move.vm, move.to);
    return {
      ms,
      done: wholeGroups(file, at),
      moves: moves.length,
      best: best && { done: best.whole, moves: best.moves },
    };
  });

/** Hosts that one plan empties. `again`: plans whose outcome a second run changes although the budget was no limit. */
export async function packings(from: number, count: number): Promise<Trial & { readonly again: number }> {
  let again = 0;
  const found = await trial(from, count, async (seed) => {
    const file = halfFull(seed);
    const budget = budgetOf(seed);
    const best = await bestPacking(file, budget);
    const options = { maxMigrations: budget, mode: 'pack', packReachCycles: 1 } as const;
    const started = performance.now();
    const { moves } = planCluster(file, options);
    const ms = performance.now() - started;
    const outcome = outcomeOf(file, moves);
    if (
      moves.length < budget &&
      planCluster(outcome, { ...options, maxMigrations: budget - moves.length }).moves.length > 0
    )
      again++;
    const used = (of: ClusterFile): number => new Set(of.vms.map(({ host }) => host)).size;
    return {
      ms,
      done: used(file) - used(outcome),
      moves: moves.length,
      best: best && { done: best.emptied, moves: best.moves },
    };
  });
  return { ...found, again };
}

/** The cluster after the moves. */
function outcomeOf(file: ClusterFile, moves: PlannedCluster['moves']): ClusterFile {
  const at = new Map(moves.map((move) => [move.vm, move.to]));
  const claimed = (host: string, of: (vm: ClusterFile['vms'][number]) => number): number =>
    file.vms.reduce(
      (sum, vm) => sum + of(vm) * (Number((at.get(vm.id) ?? vm.host) === host) - Number(vm.host === host)),
      0,
    );
  return {
    ...file,
    hosts: file.hosts.map((host) => ({
      ...host,
      memFreeMb: (host.memFreeMb ?? 0) - claimed(host.id, (vm) => vm.memMb ?? 0),
      vcpusFree: (host.vcpusFree ?? 0) - claimed(host.id, (vm) => vm.vcpus ?? 0),
    })),
    vms: file.vms.map((vm) => ({ ...vm, host: at.get(vm.id) ?? vm.host })),
  };
}

type Run = {
  readonly ms: number;
  readonly done: number;
  readonly moves: number;
  /** Null: nothing is proven. */
  readonly best: { readonly done: number; readonly moves: number } | null;
};

async function trial(from: number, count: number, run: (seed: number) => Promise<Run>): Promise<Trial> {
  const sum = { instances: 0, done: 0, possible: 0, moves: 0, fewestMoves: 0, slowestMs: 0 };
  for (let seed = from; seed < from + count; seed++) {
    const { ms, done, moves, best } = await run(seed);
    if (best === null) continue;
    sum.instances++;
    sum.done += done;
    sum.possible += best.done;
    sum.slowestMs = Math.max(sum.slowestMs, Math.round(ms));
    if (done < best.done) continue;
    sum.moves += moves;
    sum.fewestMoves += best.moves;
  }
  return sum;
}
