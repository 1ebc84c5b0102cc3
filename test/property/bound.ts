import { clusterOf, parseClusterFile } from '@kronos/placement';
import { lowerBound } from '@kronos/placement/testing';
import { optimum } from '../bench/optimum.ts';
import { drawnCluster } from './drawnCluster.ts';

/** HiGHS proves optima to 1e-7, and each of its constraints may be off by as much. */
const TOLERANCE = 1e-6;

export type Checked = { readonly seed: number; readonly bound: number; readonly optimum: number };

/** Compares the planner's bound with the proven optimum on a drawn cluster; null where HiGHS proved none in time. */
export async function checkBound(seed: number): Promise<Checked | null> {
  const { file, budget, restrictToAz } = drawnCluster(seed);
  const best = await optimum(file, budget, 20, { restrictToAz });
  if (!best.proven) return null;
  const cluster = clusterOf(parseClusterFile(file), { maxMigrations: budget, restrictToAz });
  return { seed, bound: lowerBound(cluster, budget), optimum: best.combined };
}

export const isFalse = ({ bound, optimum: best }: Checked): boolean => bound > best + TOLERANCE;
export const isTight = ({ bound, optimum: best }: Checked): boolean => bound >= best - TOLERANCE;
