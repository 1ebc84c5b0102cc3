import { planCluster } from '@kronos/placement';
import { tightEvacuation, tightRepair } from './dutyInstances.ts';
import { bestEvacuation, bestRepair, wholeGroups } from './exact.ts';

/** What the planner did, beside what is proven possible, over all instances that were proven in the time. */
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
