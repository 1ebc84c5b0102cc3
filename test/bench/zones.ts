import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type ClusterFile, parseClusterFile, planCluster } from '@kronos/placement';
import { type Placement, placementOf, spreadOf } from './peers/cluster.ts';
import { seeded } from './random.ts';

/**
 * One plan for a cluster of two zones that no VM leaves, beside separate plans for each zone with as many moves together. The hosts are
 * split into zones of unlike load: the heavier half and the lighter half, and draws in which a heavy host is three times as likely to be in
 * the first zone. Prints JSON; fails where the separate plans are better.
 *
 *   node test/bench/zones.ts CLUSTER.json [--moves 60] [--draws 1]
 *
 * `spread` is the sum over the policies of the highest minus the lowest host of the whole cluster. Of the separate plans the best division
 * of the moves between the zones counts.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { moves: { type: 'string', default: '60' }, draws: { type: 'string', default: '1' } },
});
const [path] = positionals;
if (path === undefined) throw new Error('name a cluster file: node test/bench/zones.ts CLUSTER.json');
const maxMigrations = Number(values.moves);
const file = parseClusterFile(JSON.parse(readFileSync(path, 'utf8')));

/** Moves of the first zone, as parts of all. */
const DIVISIONS = [0.25, 0.4, 0.5, 0.6, 0.75];
/** A difference below this is rounding. */
const ROUNDING = 1e-6;

const load = new Map(file.hosts.map((host) => [host.id, 0]));
for (const vm of file.vms) load.set(vm.host, (load.get(vm.host) ?? 0) + vm.w.reduce((sum, w) => sum + w, 0));
const byLoad = file.hosts.map((host) => host.id).sort((a, b) => (load.get(b) ?? 0) - (load.get(a) ?? 0));

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

function moved(
  of: ClusterFile,
  moves: number,
  restrictToAz: boolean,
): { placement: Placement; moves: number; ms: number } {
  const cpu = process.cpuUsage();
  const plan = planCluster(of, { maxMigrations: moves, restrictToAz });
  const { user, system } = process.cpuUsage(cpu);
  const placement = placementOf(of);
  for (const move of plan.moves) placement.set(move.vm, move.to);
  return { placement, moves: plan.moves.length, ms: (user + system) / 1000 };
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
    return { first, spread: spreadOf(file, new Map([...a.placement, ...b.placement])), moves: a.moves + b.moves };
  });
  const best = separate.reduce((x, y) => (y.spread < x.spread ? y : x));
  const spread = spreadOf(file, one.placement);
  return {
    zones: draw === 0 ? 'halves' : `draw ${draw}`,
    hosts: [...zones.values()].filter((zone) => zone === 'a').length,
    before: spreadOf(file, placementOf(file)),
    spread,
    moves: one.moves,
    cpuMs: one.ms,
    separate: best,
    ratio: spread / best.spread,
  };
});
const ok = rows.every((row) => row.spread <= row.separate.spread + ROUNDING);
console.log(JSON.stringify({ bench: 'zones', file: path, maxMigrations, ok, rows }, null, 2));
if (!ok) process.exitCode = 1;
