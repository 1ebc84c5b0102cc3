/**
 * A cloud whose load is a function of time and seed, for the stability bench: nothing in it depends on the order in which it is asked.
 * Load is a share of a host, 0..1. Hosts are alike.
 */
import { DAY_MS } from '@kronos/contracts';
import { random as seeded } from '@kronos/projections/testing';

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
/** 2026-01-05, a Monday. */
export const START_MS = Date.UTC(2026, 0, 5);

/** The course of a VM's load. `night` is the opposite of `day`; `job` is idle except for a job at the same time of each of its days. */
type Family = 'flat' | 'day' | 'night' | 'job';

export type BenchVm = {
  readonly id: string;
  readonly family: Family;
  /** Mean load of the CPUs, as a share of a host. */
  readonly cpu: number;
  readonly memory: number;
  readonly ramMb: number;
  /** The shift against its family, in hours; of a job the hour of the day at which it starts. */
  readonly phaseHours: number;
  /** A job's length in minutes, its load as a multiple of the mean, and its weekday (0: Sunday); null: every day. */
  readonly job: { readonly minutes: number; readonly times: number; readonly weekday: number | null } | null;
  readonly bornMs: number;
  /** Index of the host. */
  host: number;
};

export type Scenario = {
  readonly name: string;
  /** Standard deviation of what is measured, as a share of the value. */
  readonly noise: number;
  /** `opposite`: half of the hosts are full of day VMs. `mixed`: families by chance. */
  readonly placement: 'opposite' | 'mixed';
  /** Shares of the families; the rest is flat. */
  readonly day: number;
  readonly night: number;
  readonly job: number;
  /** VMs that are deleted, and created, a day. */
  readonly churn: number;
  /** A job starts later than on other days, at random by at most this number of hours. Absent: at the same time. */
  readonly lateHours?: number;
};

/** Load that does not change: once it is balanced there is nothing to do. */
const STEADY = { placement: 'mixed', day: 0, night: 0, job: 0, churn: 0 } as const;
export const scenarios: readonly Scenario[] = [
  { name: 'steady, noise 0 %', noise: 0, ...STEADY },
  { name: 'steady, noise 1 %', noise: 0.01, ...STEADY },
  { name: 'steady, noise 2 %', noise: 0.02, ...STEADY },
  { name: 'steady, noise 5 %', noise: 0.05, ...STEADY },
  { name: 'day and night', noise: 0.01, placement: 'opposite', day: 0.4, night: 0.4, job: 0, churn: 0 },
  { name: 'coming and going', noise: 0.01, placement: 'mixed', day: 0.2, night: 0.1, job: 0, churn: 20 },
];

const MONTH = { noise: 0.01, placement: 'mixed', night: 0, churn: 0.5 } as const;
/** Days and weeks: office hours, weekends, and jobs that start at the same time of each day, or of one day of the week. */
export const months: readonly Scenario[] = [
  { name: 'daily and weekly', ...MONTH, day: 0.15, job: 0.35 },
  { name: 'office', ...MONTH, day: 0.45, night: 0.15, job: 0.1 },
  { name: 'batch', ...MONTH, day: 0.05, job: 0.6 },
  // Former days mislead: the jobs start at another time each day, and VMs come and go.
  { name: 'irregular', ...MONTH, day: 0.15, job: 0.35, churn: 6, lateHours: 3 },
];

export type Size = { readonly hosts: number; readonly vmsPerHost: number };

export class World {
  readonly hosts: readonly string[];
  readonly vms: BenchVm[] = [];
  readonly #scenario: Scenario;
  readonly #seed: number;
  readonly #vmsPerHost: number;
  readonly #draw: () => number;
  #created = 0;

  constructor(scenario: Scenario, seed: number, { hosts, vmsPerHost }: Size) {
    this.#scenario = scenario;
    this.#seed = seed;
    this.#vmsPerHost = vmsPerHost;
    this.#draw = seeded(seed);
    this.hosts = Array.from({ length: hosts }, (_, h) => `compute-${String(h + 1).padStart(2, '0')}`);
    for (let h = 0; h < hosts; h++) for (let v = 0; v < vmsPerHost; v++) this.#create(h, START_MS);
  }

  #create(host: number, ms: number): void {
    const { placement, day, night, job } = this.#scenario;
    const draw = this.#draw;
    const [share, size, ram, phase, length, weekday] = [draw(), draw(), draw(), draw(), draw(), draw()] as const;
    let family: Family = 'flat';
    if (placement === 'opposite') {
      const own = host % 2 === 0 ? ['day', 'night'] : ['night', 'day'];
      if (share < day + night) family = (share < 0.75 * (day + night) ? own[0] : own[1]) as Family;
    } else if (share < day) family = 'day';
    else if (share < day + night) family = 'night';
    else if (share < day + night + job) family = 'job';
    const mean = 0.5 / this.#vmsPerHost;
    const spread = 0.4 + 1.2 * size;
    this.#created++;
    this.vms.push({
      id: `${String(this.#created).padStart(8, '0')}-0000-4000-8000-000000000000`,
      family,
      cpu: mean * spread * (family === 'job' ? 0.6 : 1),
      memory: mean * spread,
      ramMb: 4096 * 2 ** Math.floor(ram * 5),
      phaseHours: family === 'job' ? Math.floor(phase * 96) / 4 : 3 * (phase - 0.5),
      job:
        family === 'job'
          ? {
              minutes: 5 + Math.floor(length * 26),
              times: 5,
              weekday: weekday < 0.3 ? Math.floor(weekday * 23) : null,
            }
          : null,
      bornMs: ms,
      host,
    });
  }

  /** Load of the CPUs at this time, without noise. */
  cpuAt(vm: BenchVm, ms: number): number {
    const hour = ((ms % DAY_MS) / HOUR_MS + 24) % 24;
    const weekday = (Math.floor(ms / DAY_MS) + 4) % 7;
    switch (vm.family) {
      case 'flat':
        return vm.cpu;
      case 'job': {
        if (vm.job === null || (vm.job.weekday !== null && vm.job.weekday !== weekday)) return 0.4 * vm.cpu;
        const since = 60 * (hour - vm.phaseHours - this.#late(vm, Math.floor(ms / DAY_MS)));
        return since >= 0 && since < vm.job.minutes ? vm.job.times * vm.cpu : 0.4 * vm.cpu;
      }
      default: {
        const wave = Math.cos((2 * Math.PI * (hour - 14 - vm.phaseHours)) / 24);
        const high = vm.family === 'day' ? wave : -wave;
        const weekend = vm.family === 'day' && (weekday === 0 || weekday === 6) ? 0.3 : 1;
        return vm.cpu * (1 + 0.7 * high * weekend);
      }
    }
  }

  /** The delay of the VM's job on a day, in hours. */
  #late({ id }: BenchVm, day: number): number {
    const { lateHours } = this.#scenario;
    return lateHours === undefined ? 0 : lateHours * drawn(this.#seed, day, Number(id.slice(0, 8)))();
  }

  /** Writes the load of the hosts without noise: `values[host * 2]` of the CPUs, `values[host * 2 + 1]` of the memory. */
  valuesAt(ms: number, values: Float64Array): void {
    values.fill(0);
    for (const vm of this.vms) {
      const at = vm.host * 2;
      values[at] = (values[at] ?? 0) + this.cpuAt(vm, ms);
      values[at + 1] = (values[at + 1] ?? 0) + vm.memory;
    }
  }

  /** Memory that the VMs claim, by host, in MiB. */
  usedMb(): number[] {
    return this.hosts.map((_, h) => this.vms.reduce((sum, vm) => sum + (vm.host === h ? vm.ramMb : 0), 0));
  }

  /** A value as it is measured. @param key what is measured; the same one has the same noise at a time */
  measured(value: number, ms: number, key: number): number {
    if (this.#scenario.noise === 0) return Math.min(1, value);
    return Math.min(1, Math.max(0, value * (1 + this.#scenario.noise * normal(this.#seed, ms / MINUTE_MS, key))));
  }

  measuredCpu(vm: BenchVm, ms: number): number {
    return this.measured(this.cpuAt(vm, ms), ms, 1000 + Number(vm.id.slice(0, 8)));
  }

  /** VMs are deleted and created, as far as this minute has any. @returns the deleted ones */
  churn(ms: number): BenchVm[] {
    const gone: BenchVm[] = [];
    const { churn } = this.#scenario;
    if (churn === 0) return gone;
    if (this.#draw() >= churn / 1440) return gone;
    const [vm] = this.vms.splice(Math.floor(this.#draw() * this.vms.length), 1);
    if (vm !== undefined) gone.push(vm);
    // As Nova's weigher of memory chooses: the host with the most free memory.
    const used = this.usedMb();
    this.#create(used.indexOf(Math.min(...used)), ms);
    return gone;
  }
}

/** Roughly normal, mean 0 and standard deviation 1, from nothing but its arguments. */
function normal(seed: number, minute: number, key: number): number {
  const draw = drawn(seed, minute, key);
  return 2 * (draw() + draw() + draw() - 1.5);
}

function drawn(seed: number, time: number, key: number): () => number {
  return seeded(Math.imul(seed, 0x9e3779b1) ^ Math.imul(time, 0x85ebca6b) ^ Math.imul(key + 1, 0xc2b2ae35));
}
