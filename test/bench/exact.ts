import type { ClusterFile } from '@kronos/placement';
import { homesOf, solve } from './highs.ts';

type Program = {
  readonly objective: readonly string[];
  readonly rows: readonly string[];
  readonly binary: readonly string[];
};

/** The variable that is 1 when a VM ends on a host, both by number. */
const x = (v: number, h: number): string => `x${v}_${h}`;

/** Maximises with HiGHS: the value of each binary variable that is 1, or null when nothing is proven in the time. */
async function maximise({ objective, rows, binary }: Program, seconds = 20): Promise<ReadonlySet<string> | null> {
  const text = [
    'Maximize',
    ` obj: ${objective.join(' ')}`,
    'Subject To',
    ...rows.map((row, i) => ` r${i}: ${row}`),
    'Binary',
    ` ${binary.join(' ')}`,
    'End',
    '',
  ].join('\n');
  const { status, isOn } = await solve(text, seconds, 0.5);
  return status === 'Optimal' ? new Set(binary.filter(isOn)) : null;
}

/** Whether moves have an order in which each fits: VM and destination by number. */
function hasOrder(file: ClusterFile, moves: readonly (readonly [number, number])[]): boolean {
  const at = [...homesOf(file)];
  const memory = file.hosts.map((host) => host.memFreeMb ?? Number.POSITIVE_INFINITY);
  const cpus = file.hosts.map((host) => host.vcpusFree ?? Number.POSITIVE_INFINITY);
  const apart = (file.groups ?? []).filter((group) => group.policy === 'anti-affinity');
  /** Whether no group keeps a VM off a host. */
  const admits = (id: string, to: number): boolean =>
    apart.every(
      (group) =>
        !group.vms.includes(id) ||
        group.vms.filter((other) => at[file.vms.findIndex((one) => one.id === other)] === to).length <
          (group.maxServerPerHost ?? 1),
    );
  const claim = (v: number, h: number, sign: 1 | -1): void => {
    memory[h] = (memory[h] ?? 0) - sign * (file.vms[v]?.memMb ?? 0);
    cpus[h] = (cpus[h] ?? 0) - sign * (file.vms[v]?.vcpus ?? 0);
  };
  let left = [...moves];
  while (left.length > 0) {
    const next = left.find(([v, to]) => {
      const vm = file.vms[v];
      if (vm === undefined || (vm.memMb ?? 0) > (memory[to] ?? 0) || (vm.vcpus ?? 0) > (cpus[to] ?? 0)) return false;
      return admits(vm.id, to);
    });
    if (next === undefined) return false;
    const [v, to] = next;
    claim(v, to, 1);
    claim(v, at[v] ?? 0, -1);
    at[v] = to;
    left = left.filter((move) => move !== next);
  }
  return true;
}

/** The moves of the best solution whose moves have an order, and its variables that are 1. Null: not proven in the time. */
async function bestInOrder(file: ClusterFile, { objective, rows, binary }: Program) {
  const cuts: string[] = [];
  for (let cut = 0; cut < 30; cut++) {
    const on = await maximise({ objective, rows: [...rows, ...cuts], binary });
    if (on === null) return null;
    const moves = homesOf(file).flatMap((home, v) =>
      file.hosts.flatMap((_, h) => (h !== home && on.has(x(v, h)) ? [[v, h] as const] : [])),
    );
    if (hasOrder(file, moves)) return { moves, on };
    cuts.push(`${[...on].map((name) => `+ ${name}`).join(' ')} <= ${on.size - 1}`);
  }
  return null;
}

/** The best evacuation: VMs that leave, and all moves, the VMs that make room included. Null: not proven in the time. */
export async function bestEvacuation(
  file: ClusterFile,
): Promise<{ readonly left: number; readonly moves: number } | null> {
  const { hosts, vms, groups = [] } = file;
  const home = homesOf(file);
  const open = hosts.flatMap((host, h) => (host.status === 'disabled' ? [] : [h]));
  const leaves = (v: number): boolean => hosts[home[v] ?? 0]?.status === 'disabled';
  const places = vms.map((_, v) => [...new Set([home[v] ?? 0, ...open])]);
  const rows = vms.map((_, v) => `${(places[v] ?? []).map((h) => `+ ${x(v, h)}`).join(' ')} = 1`);
  for (const h of open) {
    const here = vms.flatMap((vm, v) => (home[v] === h ? [vm] : []));
    for (const [need, free] of [
      [(v: number) => vms[v]?.memMb ?? 0, hosts[h]?.memFreeMb],
      [(v: number) => vms[v]?.vcpus ?? 0, hosts[h]?.vcpusFree],
    ] as const) {
      if (free === undefined) continue;
      const used = here.reduce((sum, vm) => sum + need(vms.indexOf(vm)), 0);
      rows.push(`${vms.map((_, v) => `+ ${need(v)} ${x(v, h)}`).join(' ')} <= ${free + used}`);
    }
    for (const group of groups)
      if (group.policy === 'anti-affinity')
        rows.push(`${vms.flatMap((vm, v) => (group.vms.includes(vm.id) ? [`+ ${x(v, h)}`] : [])).join(' ')} <= 1`);
  }
  const objective = vms.flatMap((_, v) =>
    (places[v] ?? []).filter((h) => h !== home[v]).map((h) => `+ ${leaves(v) ? 999 : -1} ${x(v, h)}`),
  );
  const binary = vms.flatMap((_, v) => (places[v] ?? []).map((h) => x(v, h)));
  const best = await bestInOrder(file, { objective, rows, binary });
  return best && { left: best.moves.filter(([v]) => leaves(v)).length, moves: best.moves.length };
}

/** Rows of an anti-affinity group that is whole when y is 1. */
function apartRows(home: readonly number[], all: readonly number[], members: readonly number[], g: number): string[] {
  return all.flatMap((h) => {
    const count = members.filter((v) => home[v] === h).length;
    const sum = members.map((v) => `+ ${x(v, h)}`).join(' ');
    const most = Math.max(1, count);
    // A host that holds one may take none.
    const taken = count < 1 ? [] : members.filter((v) => home[v] !== h);
    return [
      `${sum} + ${most - 1} y${g} <= ${most}`,
      ...taken.map((v) => `${x(v, h)} + ${sum} <= ${most + (most > 1 ? 0 : 1)}`),
    ];
  });
}

/** Rows of an affinity group that is whole when y is 1: z is the host on which it gathers, one of those that it has. */
function togetherRows(
  { home, all, own }: Readonly<Record<'home' | 'all' | 'own', readonly number[]>>,
  members: readonly number[],
  g: number,
): string[] {
  const moves = members.flatMap((v) => all.filter((h) => h !== home[v]).map((h) => [v, h] as const));
  return [
    `${own.map((h) => `+ z${g}_${h}`).join(' ')} - y${g} = 0`,
    ...moves.map(([v, h]) => (own.includes(h) ? `${x(v, h)} - z${g}_${h} = 0` : `${x(v, h)} = 0`)),
  ];
}

/** The best repair: groups that are whole at the end, and all moves. Null: not proven in the time. */
export async function bestRepair(
  file: ClusterFile,
): Promise<{ readonly whole: number; readonly moves: number } | null> {
  const { hosts, vms, groups = [] } = file;
  const home = homesOf(file);
  const all = hosts.map((_, h) => h);
  const rows = vms.map((_, v) => `${all.map((h) => `+ ${x(v, h)}`).join(' ')} = 1`);
  for (const h of all) {
    const used = vms.reduce((sum, vm, v) => sum + (home[v] === h ? (vm.memMb ?? 0) : 0), 0);
    rows.push(
      `${vms.map((vm, v) => `+ ${vm.memMb ?? 0} ${x(v, h)}`).join(' ')} <= ${used + (hosts[h]?.memFreeMb ?? 0)}`,
    );
  }
  const binary = vms.flatMap((_, v) => all.map((h) => x(v, h)));
  const objective = vms.flatMap((_, v) => all.filter((h) => h !== home[v]).map((h) => `- 1 ${x(v, h)}`));
  for (const [g, group] of groups.entries()) {
    const members = group.vms.map((id) => vms.findIndex((vm) => vm.id === id));
    binary.push(`y${g}`);
    objective.push(`+ 999 y${g}`);
    if (group.policy === 'anti-affinity') rows.push(...apartRows(home, all, members, g));
    else {
      const own = all.filter((h) => members.some((v) => home[v] === h));
      for (const h of own) binary.push(`z${g}_${h}`);
      rows.push(...togetherRows({ home, all, own }, members, g));
    }
  }
  const best = await bestInOrder(file, { objective, rows, binary });
  return best && { whole: groups.filter((_, g) => best.on.has(`y${g}`)).length, moves: best.moves.length };
}

/** The constraints of a host; `home` by VM. The capacity value stays below its threshold: the weights are multiples of 1/1000. */
function hostRows(file: ClusterFile, home: readonly number[], h: number): string[] {
  const { hosts, vms, groups = [], policies, capacityThresholds = [] } = file;
  const guests = vms.flatMap((vm, v) => (home[v] === h ? [] : [{ vm, name: x(v, h) }]));
  const atMost = (amount: (vm: ClusterFile['vms'][number]) => number, most: number): string[] => {
    const sum = guests.flatMap(({ vm, name }) => (amount(vm) === 0 ? [] : [`+ ${amount(vm)} ${name}`]));
    return sum.length === 0 ? [] : [`${sum.join(' ')} <= ${most}`];
  };
  const loads = policies.flatMap((_, p) => {
    const load = vms.reduce((sum, vm, v) => sum + (home[v] === h ? (vm.w[p] ?? 0) : 0), 0);
    const left = (capacityThresholds[p] ?? 1) - load - 0.0005;
    return left < 0 ? guests.map(({ name }) => `${name} = 0`) : atMost((vm) => vm.w[p] ?? 0, left);
  });
  const members = groups.flatMap((group) => {
    const here = vms.filter((vm, v) => home[v] === h && group.vms.includes(vm.id)).length;
    return atMost((vm) => Number(group.vms.includes(vm.id)), 1 - here);
  });
  return [
    ...guests.map(({ name }) => `${name} + y${h} <= 1`),
    ...atMost((vm) => vm.memMb ?? 0, hosts[h]?.memFreeMb ?? 0),
    ...atMost((vm) => vm.vcpus ?? 0, hosts[h]?.vcpusFree ?? 0),
    ...loads,
    ...members,
  ];
}

/**
 * The most hosts that moves of their own VMs empty, and the fewest such moves; none goes to a host that was empty. Null: not proven in the time.
 */
export async function bestPacking(
  file: ClusterFile,
  budget: number,
): Promise<{ readonly emptied: number; readonly moves: number } | null> {
  const { hosts, vms } = file;
  const home = homesOf(file);
  const used = hosts.flatMap((_, h) => (home.includes(h) ? [h] : []));
  const leaves = vms.map((_, v) => used.filter((h) => h !== home[v]).map((h) => x(v, h)));
  const moves = leaves.flat();
  const emptied = used.map((h) => `y${h}`);
  const found = await maximise({
    objective: [...emptied.map((name) => `+ 999 ${name}`), ...moves.map((name) => `- 1 ${name}`)],
    rows: [
      ...leaves.map((names, v) => `${names.map((name) => `+ ${name}`).join(' ')} - y${home[v]} = 0`),
      `${moves.map((name) => `+ ${name}`).join(' ')} <= ${budget}`,
      ...used.flatMap((h) => hostRows(file, home, h)),
    ],
    binary: [...emptied, ...moves],
  });
  if (found === null) return null;
  return {
    emptied: emptied.filter((name) => found.has(name)).length,
    moves: moves.filter((name) => found.has(name)).length,
  };
}

/** The groups that are whole when the VMs are at these hosts: `at` by VM id. */
export function wholeGroups({ groups = [] }: ClusterFile, at: ReadonlyMap<string, string>): number {
  return groups.filter(({ policy, vms }) => {
    const hosts = new Set(vms.map((id) => at.get(id)));
    return policy === 'affinity' ? hosts.size === 1 : hosts.size === vms.length;
  }).length;
}
