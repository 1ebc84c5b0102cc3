import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type ClusterFile, type PlannedCluster, parseClusterFile, planCluster } from '@kronos/placement';
import { random as seeded } from '@kronos/projections/testing';
import { cpuMs } from './cpuTime.ts';

/**
 * One plan for a cluster of two zones that no VM leaves, beside separate plans for each zone with as many moves together. The hosts are
 * split into zones of unlike load: the heavier half and the lighter half, and draws in which a heavy host is three times as likely to be in
 * the first zone. Prints JSON; fails where the separate plans are better.
 *
 *   node test/bench/zones.ts CLUSTER.json [--moves 60] [--draws 1] [--capacity]
 *
 * With `--capacity` a host has room for shares that sum to 1 in each policy, or for what it holds where that is more.
 * The combined imbalance of the whole cluster is compared. Of the separate plans the best division of the moves between the zones counts.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    moves: { type: 'string', default: '60' },
    draws: { type: 'string', default: '1' },
    capacity: { type: 'boolean', default: false },
  },
});
const [path] = positionals;
if (path === undefined) throw new Error('name a cluster file: node test/bench/zones.ts CLUSTER.json');
const maxMigrations = Number(values.moves);
const given = parseClusterFile(JSON.parse(readFileSync(path, 'utf8')));
const file = values.capacity ? limited(given) : given;

/** Moves of the first zone, as parts of all. */
const DIVISIONS = [0.25, 0.4, 0.5, 0.6, 0.75];
/** A difference below this is rounding. */
const ROUNDING = 1e-6;

const load = new Map(file.hosts.map((host) => [host.id, 0]));
for (const vm of file.vms) load.set(vm.host, (load.get(vm.host) ?? 0) + vm.w.reduce((sum, w) => sum + w, 0));
const byLoad = file.hosts.map((host) => host.id).sort((a, b) => (load.get(b) ?? 0) - (load.get(a) ?? 0));

/** Amounts are whole numbers: millionths of a host. */
function limited(of: ClusterFile): ClusterFile {
  const amounts = (w: readonly number[]): Record<string, number> =>
    Object.fromEntries(of.policies.map((name, p) => [name, Math.round(1e6 * (w[p] ?? 0))]));
  const vms = of.vms.map((vm) => ({ ...vm, resources: amounts(vm.w) }));
  const used = new Map(of.hosts.map(({ id }) => [id, amounts([])]));
  for (const { host, resources } of vms) {
    const sum = used.get(host) ?? {};
    for (const [name, amount] of Object.entries(resources)) sum[name] = (sum[name] ?? 0) + amount;
  }
  const free = (id: string): Record<string, number> =>
    Object.fromEntries(Object.entries(used.get(id) ?? {}).map(([name, amount]) => [name, Math.max(0, 1e6 - amount)]));
  return { ...of, vms, hosts: of.hosts.map((host) => ({ ...host, free: free(host.id) })) };
}

/** @param draw 0: the heavier half and the lighter half. */
function zonesOf(draw: number): ReadonlyMap<string, string> {
  const random = seeded(draw);
  const half = byLoad.length >> 1;
  const isFirst = (rank: number): boolean => (draw === 0 ? rank < half : random() < (rank < half ? 0.75 : 0.25));
  return new Map(byLoad.map((host, rank) => [host, isFirst(rank) ? 'a' : 'b']));
}

function only(zones: ReadonlyMap<string, string>, zone: string): ClusterFile {
  return {
    ...file,
    hosts: file.hosts.filter((host) => zones.get(host.id) === zone),
    vms: file.vms.filter((vm) => zones.get(vm.host) === zone),
    groups: [],
  };
}

type Moved = Pick<PlannedCluster, 'moves'> & { readonly cpuMs: number };

function moved(of: ClusterFile, maxMigrations: number, restrictToAz: boolean): Moved {
  const cpu = cpuMs();
  const { moves } = planCluster(of, { maxMigrations, restrictToAz });
  return { moves, cpuMs: cpuMs() - cpu };
}

/** The combined imbalance after these moves. */
function combinedAfter(whole: ClusterFile, moves: PlannedCluster['moves']): number {
  const at = new Map(moves.map(({ vm, to }) => [vm, to]));
  const vms = whole.vms.map((vm) => ({ ...vm, host: at.get(vm.id) ?? vm.host }));
  const hosts = whole.hosts.map(({ score: _, ...host }) => host);
  return planCluster({ ...whole, hosts, vms }, { maxMigrations: 0 }).before.combined;
}

const rows = Array.from({ length: 1 + Number(values.draws) }, (_, draw) => {
  const zones = zonesOf(draw);
  const whole: ClusterFile = {
    ...file,
    groups: [],
    hosts: file.hosts.map((host) => ({ ...host, az: zones.get(host.id) ?? 'a' })),
  };
  const one = moved(whole, maxMigrations, true);
  const separate = DIVISIONS.map((part) => {
    const first = Math.round(part * maxMigrations);
    const [a, b] = [moved(only(zones, 'a'), first, false), moved(only(zones, 'b'), maxMigrations - first, false)];
    const moves = [...a.moves, ...b.moves];
    return { first, combined: combinedAfter(whole, moves), moves: moves.length };
  });
  const best = separate.reduce((x, y) => (y.combined < x.combined ? y : x));
  const combined = combinedAfter(whole, one.moves);
  return {
    zones: draw === 0 ? 'halves' : `draw ${draw}`,
    hosts: [...zones.values()].filter((zone) => zone === 'a').length,
    before: combinedAfter(whole, []),
    combined,
    moves: one.moves.length,
    cpuMs: one.cpuMs,
    separate: best,
    ratio: combined / best.combined,
  };
});
const ok = rows.every((row) => row.combined <= row.separate.combined + ROUNDING);
console.log(JSON.stringify({ bench: 'zones', file: path, maxMigrations, ok, rows }, null, 2));
if (!ok) process.exitCode = 1;
