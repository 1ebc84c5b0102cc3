/** Requests for room on random clusters, with the fewest moves by HiGHS: flows out of and into each host, by size. */
import { fit as makeRoom } from '@kronos/placement';
import { decideInput } from '@kronos/placement/testing';
import { random as seeded } from '@kronos/projections/testing';
import { cpuMs } from './cpuTime.ts';
import { solve } from './highs.ts';

type Asked = {
  readonly from: number;
  readonly clusters: number;
  readonly hosts: readonly [number, number];
  readonly wanted: number;
  /** Of the solver, for one cluster. */
  readonly seconds: number;
};

/** vCPUs and GiB of the flavors, the most usual first. */
const FLAVORS = [
  [2, 4],
  [4, 8],
  [2, 8],
  [4, 16],
  [8, 16],
  [8, 32],
  [16, 32],
  [16, 64],
] as const;
const HOST = [64, 256] as const;

type Site = { readonly hosts: number; readonly vms: readonly { readonly host: number; readonly flavor: number }[] };

/** Hosts that are filled to between 80 and 97 %. */
function siteOf(seed: number, [least, most]: readonly [number, number]): Site {
  const next = seeded(seed);
  const hosts = least + Math.floor(next() * (most - least + 1));
  const vms: Site['vms'][number][] = [];
  for (let host = 0; host < hosts; host++) {
    const aim = 0.8 + next() * 0.17;
    let [vcpus, gib] = [0, 0];
    for (let misses = 0; misses < 4; ) {
      const flavor = Math.floor(next() ** 1.5 * FLAVORS.length);
      const [v, g] = FLAVORS[flavor] ?? [1, 1];
      if (vcpus + v > HOST[0] * aim || gib + g > HOST[1] * aim) {
        misses += 1;
        continue;
      }
      [vcpus, gib] = [vcpus + v, gib + g];
      vms.push({ host, flavor });
    }
  }
  return { hosts, vms };
}

const NONE = { minUnit: null, maxUnit: null, stepSize: null };

function inputOf({ hosts, vms }: Site) {
  const used = (host: number, of: 0 | 1): number =>
    vms.reduce((sum, vm) => sum + (vm.host === host ? (FLAVORS[vm.flavor]?.[of] ?? 0) : 0), 0);
  return decideInput({
    policies: { cpu: { threshold: 0.2 } },
    hosts: Object.fromEntries(
      Array.from({ length: hosts }, (_, h) => {
        const inventory = {
          VCPU: { ...NONE, capacity: HOST[0], used: used(h, 0) },
          MEMORY_MB: { ...NONE, capacity: 1024 * HOST[1], used: 1024 * used(h, 1) },
        };
        return [`h${h}`, { set: { inventory } }];
      }),
    ),
    vms: Object.fromEntries(
      vms.map(({ host, flavor }, v) => {
        const [vcpus = 0, gib = 0] = FLAVORS[flavor] ?? [];
        const set = { flavor: `f${flavor}`, resources: { VCPU: vcpus, MEMORY_MB: 1024 * gib } };
        return [`v${v}`, { host: `h${host}`, w: { cpu: 0.01 }, ramMb: 1024 * gib, vcpus, set }];
      }),
    ),
  });
}

/** The fewest moves, or null when there is no room; `proven` false: the solver ran out of time. */
async function fewest({ hosts, vms }: Site, shape: readonly [number, number], wanted: number, seconds: number) {
  const all = Array.from({ length: hosts }, (_, h) => h);
  const sizes = FLAVORS.map((_, f) => f);
  const on = (h: number, f: number): number => vms.filter((vm) => vm.host === h && vm.flavor === f).length;
  const sum = (terms: readonly string[]): string => terms.join(' + ');
  const room = (h: number, of: 0 | 1): string => {
    const left = HOST[of] - vms.reduce((n, vm) => n + (vm.host === h ? (FLAVORS[vm.flavor]?.[of] ?? 0) : 0), 0);
    const size = (f: number): number => FLAVORS[f]?.[of] ?? 0;
    const out = sizes.map((f) => `- ${size(f)} o${h}_${f}`).join(' ');
    return `${sum([...sizes.map((f) => `${size(f)} i${h}_${f}`), `${shape[of]} s${h}`])} ${out} <= ${left}`;
  };
  const program = [
    'Minimize',
    ` obj: ${sum(all.flatMap((h) => sizes.map((f) => `o${h}_${f}`)))}`,
    'Subject To',
    ...all.flatMap((h) => [` c${h}: ${room(h, 0)}`, ` m${h}: ${room(h, 1)}`]),
    ...sizes.map((f) => ` f${f}: ${sum(all.map((h) => `o${h}_${f}`))} ${all.map((h) => `- i${h}_${f}`).join(' ')} = 0`),
    ` want: ${sum(all.map((h) => `s${h}`))} >= ${wanted}`,
    'Bounds',
    ...all.flatMap((h) => sizes.map((f) => ` 0 <= o${h}_${f} <= ${on(h, f)}`)),
    'General',
    ` ${all.flatMap((h) => [`s${h}`, ...sizes.flatMap((f) => [`o${h}_${f}`, `i${h}_${f}`])]).join(' ')}`,
    'End',
  ].join('\n');
  const { status, value } = await solve(program, seconds, 1e-6);
  if (status === 'Infeasible') return { moves: null, proven: true };
  return status === 'Optimal' ? { moves: Math.round(value), proven: true } : { moves: null, proven: false };
}

/** Clusters between two reports of progress. */
const REPORTED = 10;

/**
 * The results of `fit` for random requests, and the proven fewest moves.
 *
 * @param progress is called with the figures so far, after every tenth cluster.
 */
export async function fitTrials(
  { from, clusters, hosts, wanted, seconds }: Asked,
  progress: (figures: Record<string, unknown>) => void = () => {},
) {
  const total = { clusters: 0, feasible: 0, givenUp: 0, unproven: 0, moves: 0, fewest: 0, provenByFit: 0, worst: 1 };
  const failed: { seed: number; moves: number; after: number; fewest: number | null }[] = [];
  let cpu = 0;
  let slowest = 0;
  const figures = () => {
    const ratio = total.fewest === 0 ? 1 : total.moves / total.fewest;
    return { ...total, ratio, cpuSeconds: cpu, slowestCpuSeconds: slowest, failed };
  };
  for (let seed = from; seed < from + clusters; seed++) {
    const site = siteOf(seed, hosts);
    const input = inputOf(site);
    const shape = [16, 64] as const;
    const asked = {
      name: 'new',
      resources: { VCPU: shape[0], MEMORY_MB: 1024 * shape[1] },
      requiredTraits: [],
      forbiddenTraits: [],
    };
    const { now } = makeRoom(input, asked, 0);
    const more = now + 1 + (seed % wanted);
    const before = cpuMs();
    const found = makeRoom(input, asked, more);
    const took = (cpuMs() - before) / 1000;
    cpu += took;
    slowest = Math.max(slowest, took);
    const best = await fewest(site, shape, more, seconds);
    const made = found.after >= more;
    total.clusters += 1;
    if (!best.proven) total.unproven += 1;
    else {
      if (found.proven) total.provenByFit += 1;
      if (made !== (best.moves !== null))
        failed.push({ seed, moves: found.moves.length, after: found.after, fewest: best.moves });
      if (best.moves !== null) {
        total.feasible += 1;
        if (!made) total.givenUp += 1;
        else {
          total.moves += found.moves.length;
          total.fewest += best.moves;
          total.worst = Math.max(total.worst, found.moves.length / Math.max(1, best.moves));
        }
      }
    }
    if (total.clusters % REPORTED === 0) progress(figures());
  }
  return figures();
}
