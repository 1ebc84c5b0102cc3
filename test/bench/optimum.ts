import type { ClusterFile } from '@kronos/placement';
import * as highsModule from 'highs';

/** The loader: the package's types describe its CommonJS build, what runs is its module. */
const load = highsModule.default as unknown as typeof highsModule.default.default;

/** What HiGHS found for a cluster: the least combined imbalance within the budget, proven, or the best known in the time. */
export type Optimum = { readonly proven: boolean; readonly combined: number; readonly seconds: number };

/**
 * The spread problem as a mixed-integer program: x[v][h] says where VM v ends; at most `budget` VMs leave their host; no
 * policy ends worse than the larger of its start and its threshold; groups of anti-affinity hold one member per host; memory
 * and vCPUs fit. The order of the moves is no part of it.
 */
export function program(file: ClusterFile, budget: number): string {
  const P = file.policies.length;
  let total = 0;
  for (const weight of file.weights) total += weight;
  const x = (v: number, h: number): string => `x${v}_${h}`;
  const home = file.vms.map((vm) => file.hosts.findIndex((host) => host.id === vm.host));
  const lines: string[] = ['Minimize'];
  const goal = file.weights.map((weight, p) => `+ ${weight / total} M${p} - ${weight / total} m${p}`);
  lines.push(` obj: ${goal.join(' ')}`, 'Subject To');
  file.vms.forEach((_, v) => {
    lines.push(` one${v}: ${file.hosts.map((_, h) => `+ ${x(v, h)}`).join(' ')} = 1`);
  });
  lines.push(` budget: ${file.vms.map((_, v) => `+ ${x(v, home[v] ?? 0)}`).join(' ')} >= ${file.vms.length - budget}`);
  const start = Array.from({ length: P }, () => file.hosts.map(() => 0));
  file.vms.forEach((vm, v) => {
    for (let p = 0; p < P; p++) {
      const row = start[p];
      const h = home[v] ?? 0;
      if (row !== undefined) row[h] = (row[h] ?? 0) + (vm.w[p] ?? 0);
    }
  });
  file.hosts.forEach((host, h) => {
    for (let p = 0; p < P; p++) {
      const base = host.score === undefined ? 0 : (host.score[p] ?? 0) - (start[p]?.[h] ?? 0);
      const sum = file.vms.map((vm, v) => `+ ${vm.w[p] ?? 0} ${x(v, h)}`).join(' ');
      lines.push(` hi${p}_${h}: ${sum} - M${p} <= ${-base}`, ` lo${p}_${h}: ${sum} - m${p} >= ${-base}`);
    }
    for (const [name, free, need] of [
      ['mem', host.memFreeMb, (vm: ClusterFile['vms'][number]) => vm.memMb ?? 0],
      ['cpu', host.vcpusFree, (vm: ClusterFile['vms'][number]) => vm.vcpus ?? 0],
    ] as const) {
      if (free === undefined) continue;
      let used = 0;
      file.vms.forEach((vm, v) => {
        if (home[v] === h) used += need(vm);
      });
      lines.push(` ${name}_${h}: ${file.vms.map((vm, v) => `+ ${need(vm)} ${x(v, h)}`).join(' ')} <= ${free + used}`);
    }
  });
  for (let p = 0; p < P; p++) {
    const values = file.hosts.map((host, h) => host.score?.[p] ?? start[p]?.[h] ?? 0);
    const spread = Math.max(...values) - Math.min(...values);
    lines.push(` accept${p}: M${p} - m${p} <= ${Math.max(spread, file.thresholds?.[p] ?? 0)}`);
  }
  for (const [g, group] of (file.groups ?? []).entries()) {
    if (group.policy !== 'anti-affinity') throw new Error(`the model does not know ${group.policy}`);
    const members = group.vms.map((id) => file.vms.findIndex((vm) => vm.id === id));
    file.hosts.forEach((_, h) => {
      lines.push(` group${g}_${h}: ${members.map((v) => `+ ${x(v, h)}`).join(' ')} <= 1`);
    });
  }
  lines.push('Bounds');
  for (let p = 0; p < P; p++) lines.push(` M${p} free`, ` m${p} free`);
  lines.push('Binary');
  file.vms.forEach((_, v) => {
    lines.push(` ${file.hosts.map((_, h) => x(v, h)).join(' ')}`);
  });
  lines.push('End', '');
  return lines.join('\n');
}

/** Solves the spread problem with HiGHS, for at most so many seconds. */
export async function optimum(file: ClusterFile, budget: number, timeLimitSeconds: number): Promise<Optimum> {
  const highs = await load();
  const started = performance.now();
  const solution = highs.solve(program(file, budget), {
    time_limit: timeLimitSeconds,
    mip_rel_gap: 0,
    mip_abs_gap: 1e-7,
    output_flag: false,
  });
  return {
    proven: solution.Status === 'Optimal',
    combined: solution.ObjectiveValue,
    seconds: (performance.now() - started) / 1000,
  };
}
