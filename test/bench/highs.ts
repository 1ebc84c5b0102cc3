import type { ClusterFile } from '@kronos/placement';
import * as highsModule from 'highs';

/** The loader: the package's types describe its CommonJS build, but its ES module runs. */
const load = highsModule.default as unknown as typeof highsModule.default.default;

let solver: ReturnType<typeof load> | null = null;
let solved = 0;

/**
 * HiGHS' result for a program in the LP format: its status, the value of the objective, and which binary variables are 1.
 *
 * @param seconds the time limit.
 * @param gap how far from the proven bound an optimal value may be.
 */
export async function solve(program: string, seconds: number, gap: number) {
  // Its memory only grows, so replace it from time to time.
  if (solver === null || solved++ % 200 === 0) solver = load();
  const highs = await solver;
  const limits = { time_limit: Math.max(0, seconds), mip_rel_gap: 0, mip_abs_gap: gap, output_flag: false };
  const { Status, Columns, ObjectiveValue } = highs.solve(program, limits);
  const isOn = (name: string): boolean => {
    const column = Columns[name];
    return column !== undefined && 'Primal' in column && column.Primal > 0.5;
  };
  return { status: Status, value: ObjectiveValue, isOn };
}

/** The number of the host of each VM. */
export const homesOf = ({ hosts, vms }: ClusterFile): readonly number[] =>
  vms.map((vm) => hosts.findIndex((host) => host.id === vm.host));
