import type { ClusterFile } from '@kronos/placement';
import { homesOf, solve } from './highs.ts';

/** HiGHS' result for a cluster: the least combined imbalance within the budget, proven, or the best known in the time. */
export type Optimum = { readonly proven: boolean; readonly combined: number; readonly seconds: number };

type Vm = ClusterFile['vms'][number];

/** Sets of [VM, host], by number. */
type Pairs = readonly (readonly [number, number])[];

/** The names and terms of the program for one cluster. */
class Terms {
  readonly file: ClusterFile;
  /** The host of each VM, and the hosts that it may be on. */
  readonly home: readonly number[];
  readonly possible: readonly (readonly number[])[];
  /** Whether a host takes VMs. */
  readonly takes: readonly boolean[];

  constructor(file: ClusterFile, restrictToAz: boolean) {
    const { hosts, vms } = file;
    this.file = file;
    this.home = homesOf(file);
    this.takes = hosts.map((host) => host.status !== 'disabled' && host.state !== 'down');
    this.possible = vms.map((_, v) => hosts.map((_, h) => h).filter((h) => this.#mayGo(v, h, restrictToAz)));
  }

  #mayGo(v: number, h: number, restrictToAz: boolean): boolean {
    const { hosts, vms } = this.file;
    const own = this.home[v] ?? 0;
    if (own === h) return true;
    if (this.takes[h] !== true || hosts[own]?.state === 'down') return false;
    if (restrictToAz && hosts[own]?.az !== hosts[h]?.az) return false;
    const pin = vms[v]?.pin;
    return pin === undefined || hosts[h]?.az === pin;
  }

  x(v: number, h: number): string {
    return `x${v}_${h}`;
  }

  /** Some of something over the VMs that may be on a host. */
  sum(h: number, of: (vm: Vm, v: number) => number): string {
    const terms = this.file.vms.flatMap((vm, v) =>
      this.possible[v]?.includes(h) ? [`+ ${of(vm, v)} ${this.x(v, h)}`] : [],
    );
    return terms.length === 0 ? '0 zero' : terms.join(' ');
  }

  /** The same over the VMs that are on a host at the start. */
  own(h: number, of: (vm: Vm) => number): number {
    let total = 0;
    this.file.vms.forEach((vm, v) => {
      if (this.home[v] === h) total += of(vm);
    });
    return total;
  }
}

/**
 * The spread problem as a mixed-integer program, written from the cluster file and sharing no code with the planner: x[v][h]
 * says where VM v ends; at most `budget` VMs leave their host; VMs go only where zones and pins allow, off hosts that are
 * up and onto hosts that are up and enabled; amounts fit; groups hold; no policy ends worse than the larger of its start and its
 * threshold. The order of the moves is no part of it; `forbidden` are sets of [VM, host] of which no plan has all.
 */
function program(file: ClusterFile, budget: number, restrictToAz: boolean, forbidden: readonly Pairs[]): string {
  const terms = new Terms(file, restrictToAz);
  const { home, possible } = terms;
  const { vms } = file;
  let total = 0;
  for (const weight of file.weights) total += weight;
  const lines: string[] = ['Minimize'];
  const goal = file.weights.map((weight, p) => `+ ${weight / total} M${p} - ${weight / total} m${p}`);
  lines.push(` obj: ${goal.join(' ')}`, 'Subject To');
  vms.forEach((_, v) => {
    lines.push(` one${v}: ${(possible[v] ?? []).map((h) => `+ ${terms.x(v, h)}`).join(' ')} = 1`);
  });
  if (vms.length > 0)
    lines.push(` budget: ${vms.map((_, v) => `+ ${terms.x(v, home[v] ?? 0)}`).join(' ')} >= ${vms.length - budget}`);
  file.policies.forEach((_, p) => {
    lines.push(...policyLines(terms, p));
  });
  lines.push(...roomLines(terms), ...groupLines(terms));
  for (const [i, pairs] of forbidden.entries())
    lines.push(` not${i}: ${pairs.map(([v, h]) => `+ ${terms.x(v, h)}`).join(' ')} <= ${pairs.length - 1}`);
  lines.push('Bounds', ' 0 <= zero <= 0');
  file.policies.forEach((_, p) => {
    lines.push(` M${p} free`, ` m${p} free`);
  });
  lines.push('Binary');
  vms.forEach((_, v) => {
    lines.push(` ${(possible[v] ?? []).map((h) => terms.x(v, h)).join(' ')}`);
  });
  lines.push('End', '');
  return lines.join('\n');
}

/** The highest and the lowest value of a policy, and how far apart they may end. */
function policyLines(terms: Terms, p: number): string[] {
  const { file, home, takes } = terms;
  const lines: string[] = [];
  const sizeOf = (h: number): number => file.hosts[h]?.size?.[p] ?? 1;
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  file.hosts.forEach((host, h) => {
    if (takes[h] !== true) return;
    const own = terms.own(h, (vm) => vm.w[p] ?? 0);
    const value = host.score?.[p] ?? own;
    least = Math.min(least, value);
    most = Math.max(most, value);
    const shares = terms.sum(h, (vm, v) => ((vm.w[p] ?? 0) * sizeOf(home[v] ?? 0)) / sizeOf(h));
    const base = own - value;
    lines.push(` hi${p}_${h}: ${shares} - M${p} <= ${base}`, ` lo${p}_${h}: ${shares} - m${p} >= ${base}`);
  });
  if (most < least) lines.push(` none${p}: M${p} - m${p} = 0`);
  else lines.push(` accept${p}: M${p} - m${p} <= ${Math.max(most - least, file.thresholds?.[p] ?? 0)}`);
  return lines;
}

/** The amounts that hosts have. */
function roomLines(terms: Terms): string[] {
  const { file, takes } = terms;
  const lines: string[] = [];
  const classes = new Set(file.vms.flatMap((vm) => Object.keys(vm.resources ?? {})));
  file.hosts.forEach((host, h) => {
    if (takes[h] !== true) return;
    const limit = (name: string, free: number | undefined, need: (vm: Vm) => number): void => {
      if (free !== undefined) lines.push(` ${name}_${h}: ${terms.sum(h, need)} <= ${free + terms.own(h, need)}`);
    };
    limit('mem', host.memFreeMb, (vm) => vm.memMb ?? 0);
    limit('cpu', host.vcpusFree, (vm) => vm.vcpus ?? 0);
    for (const name of classes) limit(name, host.free?.[name] ?? 0, (vm) => vm.resources?.[name] ?? 0);
  });
  return lines;
}

function groupLines(terms: Terms): string[] {
  const { vms, groups = [] } = terms.file;
  return groups.flatMap((group, g) => {
    const members = group.vms.map((id) => vms.findIndex((vm) => vm.id === id));
    if (group.policy.endsWith('anti-affinity')) return apartLines(terms, g, members, group.maxServerPerHost ?? 1);
    return togetherLines(terms, g, members, group.policy === 'affinity');
  });
}

function apartLines(terms: Terms, g: number, members: readonly number[], allowed: number): string[] {
  const { file, home, possible, takes } = terms;
  const lines: string[] = [];
  file.hosts.forEach((_, h) => {
    if (takes[h] !== true) return;
    const here = members.filter((v) => home[v] === h).length;
    // A host that already holds too many takes no more.
    const most = Math.max(allowed, here);
    lines.push(` group${g}_${h}: ${terms.sum(h, (_, v) => (members.includes(v) ? 1 : 0))} <= ${most}`);
    if (here <= allowed) return;
    for (const v of members)
      if (home[v] !== h && possible[v]?.includes(h)) lines.push(` full${g}_${h}_${v}: ${terms.x(v, h)} = 0`);
  });
  return lines;
}

function togetherLines(terms: Terms, g: number, members: readonly number[], hard: boolean): string[] {
  const { home, possible } = terms;
  const lines: string[] = [];
  for (const v of members)
    for (const h of possible[v] ?? []) {
      if (h === home[v]) continue;
      const mine = terms.x(v, h);
      // A member moves only to the host where all other members are and stay.
      for (const u of members)
        if (u !== v)
          lines.push(
            home[u] === h
              ? ` with${g}_${v}_${u}_${h}: ${mine} - ${terms.x(u, h)} <= 0`
              : ` apart${g}_${v}_${u}_${h}: ${mine} = 0`,
          );
      if (members.length === 1 && hard) lines.push(` alone${g}_${v}_${h}: ${mine} = 0`);
    }
  return lines;
}

/** Whether the moves to a placement have an order in which each one fits and breaks no anti-affinity group. */
function hasOrder(file: ClusterFile, moves: Pairs): boolean {
  const { hosts, vms, groups = [] } = file;
  const apart = groups.filter((group) => group.policy.endsWith('anti-affinity'));
  const place = [...homesOf(file)];
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
  const go = (left: Pairs): boolean => {
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

/** The host of each VM at the end, and which of them moved. */
function endsOf(file: ClusterFile, isOn: (name: string) => boolean) {
  const home = homesOf(file);
  const pairs = home.map((_, v) => [v, file.hosts.findIndex((_, h) => isOn(`x${v}_${h}`))] as const);
  return { pairs, moves: pairs.filter(([v, h]) => h !== home[v]) };
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
  { restrictToAz = false, ordered = false }: { readonly restrictToAz?: boolean; readonly ordered?: boolean } = {},
): Promise<Optimum> {
  const started = performance.now();
  const forbidden: Pairs[] = [];
  for (;;) {
    const left = timeLimitSeconds - (performance.now() - started) / 1000;
    const { status, value, isOn } = await solve(program(file, budget, restrictToAz, forbidden), left, 1e-7);
    const proven = status === 'Optimal';
    const { pairs, moves } = endsOf(file, isOn);
    if (!ordered || !proven || hasOrder(file, moves))
      return { proven, combined: value, seconds: (performance.now() - started) / 1000 };
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
  const home = homesOf(file);
  const stays = home.map((h, v) => `- ${costs[v] ?? 0} x${v}_${h}`).join(' ');
  let all = 0;
  for (const cost of costs) all += cost;
  const forbidden: Pairs[] = [];
  for (;;) {
    const text = program(file, file.vms.length, restrictToAz, forbidden)
      .replace(/^ obj:.*$/m, ` obj: ${stays}`)
      .replace(/^ accept(\d+): (.*) <= .*$/gm, (_, p, spread) => ` accept${p}: ${spread} <= ${targets[Number(p)]}`);
    const { status, value, isOn } = await solve(text, timeLimitSeconds - (performance.now() - started) / 1000, 0.5);
    if (status === 'Infeasible') return null;
    if (status !== 'Optimal') return 'unknown';
    const { pairs, moves } = endsOf(file, isOn);
    if (moves.length > 8 || hasOrder(file, moves)) return all + value;
    forbidden.push(pairs);
  }
}
