import type { ClusterFile } from '@kronos/placement';
import * as highsModule from 'highs';

/** The loader: the package's types describe its CommonJS build, but its ES module runs. */
const load = highsModule.default as unknown as typeof highsModule.default.default;

/** What HiGHS found for a cluster: the least combined imbalance within the budget, proven, or the best known in the time. */
export type Optimum = { readonly proven: boolean; readonly combined: number; readonly seconds: number };

type Vm = ClusterFile['vms'][number];

/**
 * The spread problem as a mixed-integer program, written from the cluster file and sharing no code with the planner: x[v][h]
 * says where VM v ends; at most `budget` VMs leave their host; VMs go only where zones and pins allow, off hosts that are
 * up and onto hosts that are up and enabled; amounts fit; groups hold; no policy ends worse than the larger of its start and its
 * threshold. The order of the moves is no part of it; `forbidden` are sets of [VM, host] of which no plan has all.
 */
function program(
  file: ClusterFile,
  budget: number,
  restrictToAz: boolean,
  forbidden: readonly (readonly (readonly [number, number])[])[],
): string {
  const { hosts, vms } = file;
  const P = file.policies.length;
  let total = 0;
  for (const weight of file.weights) total += weight;
  const home = vms.map((vm) => hosts.findIndex((host) => host.id === vm.host));
  const takes = hosts.map((host) => host.status !== 'disabled' && host.state !== 'down');
  const sizeOf = (h: number, p: number): number => hosts[h]?.size?.[p] ?? 1;
  const mayGo = (v: number, h: number): boolean => {
    const own = home[v] ?? 0;
    if (own === h) return true;
    if (takes[h] !== true || hosts[own]?.state === 'down') return false;
    if (restrictToAz && hosts[own]?.az !== hosts[h]?.az) return false;
    const pin = vms[v]?.pin;
    return pin === undefined || hosts[h]?.az === pin;
  };
  const x = (v: number, h: number): string => `x${v}_${h}`;
  const possible = vms.map((_, v) => hosts.map((_, h) => h).filter((h) => mayGo(v, h)));
  /** Some of something over the VMs that may be on a host. */
  const sum = (h: number, of: (vm: Vm, v: number) => number): string => {
    const terms = vms.flatMap((vm, v) => (possible[v]?.includes(h) ? [`+ ${of(vm, v)} ${x(v, h)}`] : []));
    return terms.length === 0 ? '0 zero' : terms.join(' ');
  };
  const lines: string[] = ['Minimize'];
  const goal = file.weights.map((weight, p) => `+ ${weight / total} M${p} - ${weight / total} m${p}`);
  lines.push(` obj: ${goal.join(' ')}`, 'Subject To');
  vms.forEach((_, v) => {
    lines.push(` one${v}: ${(possible[v] ?? []).map((h) => `+ ${x(v, h)}`).join(' ')} = 1`);
  });
  if (vms.length > 0)
    lines.push(` budget: ${vms.map((_, v) => `+ ${x(v, home[v] ?? 0)}`).join(' ')} >= ${vms.length - budget}`);
  for (let p = 0; p < P; p++) {
    let least = Number.POSITIVE_INFINITY;
    let most = Number.NEGATIVE_INFINITY;
    hosts.forEach((host, h) => {
      if (takes[h] !== true) return;
      let own = 0;
      vms.forEach((vm, v) => {
        if (home[v] === h) own += vm.w[p] ?? 0;
      });
      const value = host.score?.[p] ?? own;
      least = Math.min(least, value);
      most = Math.max(most, value);
      const shares = sum(h, (vm, v) => ((vm.w[p] ?? 0) * sizeOf(home[v] ?? 0, p)) / sizeOf(h, p));
      const base = own - value;
      lines.push(` hi${p}_${h}: ${shares} - M${p} <= ${base}`, ` lo${p}_${h}: ${shares} - m${p} >= ${base}`);
    });
    if (most < least) lines.push(` none${p}: M${p} - m${p} = 0`);
    else lines.push(` accept${p}: M${p} - m${p} <= ${Math.max(most - least, file.thresholds?.[p] ?? 0)}`);
  }
  const classes = new Set(vms.flatMap((vm) => Object.keys(vm.resources ?? {})));
  hosts.forEach((host, h) => {
    if (takes[h] !== true) return;
    const limit = (name: string, free: number | undefined, need: (vm: Vm) => number): void => {
      if (free === undefined) return;
      let used = 0;
      vms.forEach((vm, v) => {
        if (home[v] === h) used += need(vm);
      });
      lines.push(` ${name}_${h}: ${sum(h, need)} <= ${free + used}`);
    };
    limit('mem', host.memFreeMb, (vm) => vm.memMb ?? 0);
    limit('cpu', host.vcpusFree, (vm) => vm.vcpus ?? 0);
    for (const name of classes) limit(name, host.free?.[name] ?? 0, (vm) => vm.resources?.[name] ?? 0);
  });
  for (const [g, group] of (file.groups ?? []).entries()) {
    const members = group.vms.map((id) => vms.findIndex((vm) => vm.id === id));
    if (group.policy.endsWith('anti-affinity'))
      hosts.forEach((_, h) => {
        if (takes[h] !== true) return;
        const here = members.filter((v) => home[v] === h).length;
        // A host that already holds too many takes no more.
        const most = Math.max(group.maxServerPerHost ?? 1, here);
        lines.push(` group${g}_${h}: ${sum(h, (_, v) => (members.includes(v) ? 1 : 0))} <= ${most}`);
        if (here < (group.maxServerPerHost ?? 1)) return;
        for (const v of members)
          if (home[v] !== h && possible[v]?.includes(h) && here > (group.maxServerPerHost ?? 1))
            lines.push(` full${g}_${h}_${v}: ${x(v, h)} = 0`);
      });
    else
      for (const v of members)
        for (const h of possible[v] ?? []) {
          if (h === home[v]) continue;
          // A member moves only to the host where all other members are and stay.
          for (const u of members)
            if (u !== v)
              lines.push(
                home[u] === h
                  ? ` with${g}_${v}_${u}_${h}: ${x(v, h)} - ${x(u, h)} <= 0`
                  : ` apart${g}_${v}_${u}_${h}: ${x(v, h)} = 0`,
              );
          if (members.length === 1 && group.policy === 'affinity') lines.push(` alone${g}_${v}_${h}: ${x(v, h)} = 0`);
        }
  }
  for (const [i, pairs] of forbidden.entries())
    lines.push(` not${i}: ${pairs.map(([v, h]) => `+ ${x(v, h)}`).join(' ')} <= ${pairs.length - 1}`);
  lines.push('Bounds', ' 0 <= zero <= 0');
  for (let p = 0; p < P; p++) lines.push(` M${p} free`, ` m${p} free`);
  lines.push('Binary');
  vms.forEach((_, v) => {
    lines.push(` ${(possible[v] ?? []).map((h) => x(v, h)).join(' ')}`);
  });
  lines.push('End', '');
  return lines.join('\n');
}

let solver: ReturnType<typeof load> | null = null;
let solved = 0;

/** Whether the moves to a placement have an order in which each one fits and breaks no anti-affinity group. */
function hasOrder({ hosts, vms, groups = [] }: ClusterFile, moves: readonly (readonly [number, number])[]): boolean {
  const apart = groups.filter((group) => group.policy.endsWith('anti-affinity'));
  const place = vms.map((vm) => hosts.findIndex((host) => host.id === vm.host));
  const free = hosts.map((host) => ({
    memory: host.memFreeMb ?? Number.POSITIVE_INFINITY,
    vcpus: host.vcpusFree ?? Number.POSITIVE_INFINITY,
    other: { ...host.free },
  }));
  const claim = (v: number, h: number, sign: 1 | -1): void => {
    const [vm, room] = [vms[v], free[h]];
    if (vm === undefined || room === undefined) return;
    room.memory -= sign * (vm.memMb ?? 0);
    room.vcpus -= sign * (vm.vcpus ?? 0);
    for (const [name, amount] of Object.entries(vm.resources ?? {}))
      room.other[name] = (room.other[name] ?? 0) - sign * amount;
  };
  const fits = (v: number, h: number): boolean => {
    const [vm, room] = [vms[v], free[h]];
    if (vm === undefined || room === undefined) return false;
    if ((vm.memMb ?? 0) > room.memory || (vm.vcpus ?? 0) > room.vcpus) return false;
    if (Object.entries(vm.resources ?? {}).some(([name, amount]) => amount > (room.other[name] ?? 0))) return false;
    return apart
      .filter((group) => group.vms.includes(vm.id))
      .every((group) => group.vms.filter((id) => place[vmAt(id)] === h).length < (group.maxServerPerHost ?? 1));
  };
  const vmAt = (id: string): number => vms.findIndex((vm) => vm.id === id);
  const go = (left: readonly (readonly [number, number])[]): boolean => {
    if (left.length === 0) return true;
    for (const move of left) {
      const [v, to] = move;
      const from = place[v] ?? 0;
      if (!fits(v, to)) continue;
      claim(v, to, 1);
      claim(v, from, -1);
      place[v] = to;
      const possible = go(left.filter((other) => other !== move));
      place[v] = from;
      claim(v, from, 1);
      claim(v, to, -1);
      if (possible) return true;
    }
    return false;
  };
  return go(moves);
}

/**
 * Solves the spread problem with HiGHS, within a time limit in seconds.
 *
 * @param ordered only plans count whose moves have an order in which each fits when it is made
 */
export async function optimum(
  file: ClusterFile,
  budget: number,
  timeLimitSeconds: number,
  restrictToAz = false,
  ordered = false,
): Promise<Optimum> {
  const started = performance.now();
  const home = file.vms.map((vm) => file.hosts.findIndex((host) => host.id === vm.host));
  const forbidden: (readonly (readonly [number, number])[])[] = [];
  for (;;) {
    // Its memory only grows, so replace it from time to time.
    if (solver === null || solved++ % 200 === 0) solver = load();
    const highs = await solver;
    const solution = highs.solve(program(file, budget, restrictToAz, forbidden), {
      time_limit: Math.max(0, timeLimitSeconds - (performance.now() - started) / 1000),
      mip_rel_gap: 0,
      mip_abs_gap: 1e-7,
      output_flag: false,
    });
    const proven = solution.Status === 'Optimal';
    const isOn = (v: number, h: number): boolean => {
      const column = solution.Columns[`x${v}_${h}`];
      return column !== undefined && 'Primal' in column && column.Primal > 0.5;
    };
    const pairs = home.map((_, v) => [v, file.hosts.findIndex((_, h) => isOn(v, h))] as const);
    const moves = pairs.filter(([v, h]) => h !== home[v]);
    if (!ordered || !proven || hasOrder(file, moves))
      return { proven, combined: solution.ObjectiveValue, seconds: (performance.now() - started) / 1000 };
    // With budget left, more moves could make the missing room.
    forbidden.push(moves.length === budget ? moves : pairs);
  }
}

/** The lowest cost of moves after which no policy is above its target. Null: no moves reach the targets. `unknown`: not proven in the time. */
type LowestCost = number | null | 'unknown';

/**
 * The lowest cost, in GiB, of moves of any number after which no policy is above its target, with HiGHS: the constraints of {@link optimum}, with
 * the targets as limits and the cost as the objective. The order of up to 8 moves counts.
 *
 * @param costs of a move of each VM, in GiB.
 */
export async function lowestCost(
  file: ClusterFile,
  { targets, costs }: { readonly targets: readonly number[]; readonly costs: readonly number[] },
  timeLimitSeconds: number,
  restrictToAz = false,
): Promise<LowestCost> {
  const started = performance.now();
  const home = file.vms.map((vm) => file.hosts.findIndex((host) => host.id === vm.host));
  const stays = home.map((h, v) => `- ${costs[v] ?? 0} x${v}_${h}`).join(' ');
  let all = 0;
  for (const cost of costs) all += cost;
  const forbidden: (readonly (readonly [number, number])[])[] = [];
  for (;;) {
    if (solver === null || solved++ % 200 === 0) solver = load();
    const highs = await solver;
    const text = program(file, file.vms.length, restrictToAz, forbidden)
      .replace(/^ obj:.*$/m, ` obj: ${stays}`)
      .replace(/^ accept(\d+): (.*) <= .*$/gm, (_, p, spread) => ` accept${p}: ${spread} <= ${targets[Number(p)]}`);
    const { Status, Columns, ObjectiveValue } = highs.solve(text, {
      time_limit: Math.max(0, timeLimitSeconds - (performance.now() - started) / 1000),
      mip_rel_gap: 0,
      mip_abs_gap: 0.5,
      output_flag: false,
    });
    if (Status === 'Infeasible') return null;
    if (Status !== 'Optimal') return 'unknown';
    const isOn = (v: number, h: number): boolean => {
      const column = Columns[`x${v}_${h}`];
      return column !== undefined && 'Primal' in column && column.Primal > 0.5;
    };
    const pairs = home.map((_, v) => [v, file.hosts.findIndex((_, h) => isOn(v, h))] as const);
    const moves = pairs.filter(([v, h]) => h !== home[v]);
    if (moves.length > 8 || hasOrder(file, moves)) return all + ObjectiveValue;
    forbidden.push(pairs);
  }
}
