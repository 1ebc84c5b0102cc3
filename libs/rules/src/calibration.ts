/** Whether measured loads of hosts follow the predicted ones after moves, and why not. */

/** When the loads of hosts are compared with the predicted ones, after the last move has ended: one and ten minutes. */
export const COMPARED_SOON_MS = 60_000;
export const COMPARED_LATER_MS = 600_000;
/** A measurement counts for one of these times when it was made at most this much later. */
export const COMPARED_LATE_MS = 600_000;

/** One host under one policy: the change that completed moves were to bring, and what was measured after them. */
export type Comparison = {
  readonly host: string;
  /** Predicted change of the host's value: what its moves brought less what they took. */
  readonly change: number;
  /** Measured value less the predicted one, and less what the host's other VMs changed by meanwhile. */
  readonly error: number;
};

/** Why measured loads differ from predicted ones. */
export type CalibrationCause = 'wrong-label' | 'host-sizes' | 'load-depends-on-host';

export const CALIBRATION_CAUSES: Readonly<Record<CalibrationCause, string>> = {
  'wrong-label':
    'the hosts did not change with the moves: the series of VMs may be of other VMs (vm_profile_label, vm_profile_label_type)',
  'host-sizes':
    'sources lost what was predicted and destinations gained another part: the sizes or the speed of hosts may be wrong (host_size_query)',
  'load-depends-on-host': 'the load of the VMs may depend on their host, or changed at the same time by itself',
};

/** Predictions that are off; `hosts`: the measured part of the predicted change where it is off, the largest difference first. */
export type JudgedPredictions = {
  readonly cause: CalibrationCause;
  readonly hosts: readonly { readonly host: string; readonly gains: boolean; readonly part: number }[];
  /** Median difference of a value, and the comparisons that are judged. */
  readonly error: number;
  readonly comparisons: number;
};

/** A change that is this part of the predicted one or less is none. */
const NOTHING = 0.25;
/** A part of the predicted change that is this far from the whole is off. */
const OFF = 0.2;
/** A part is off by its standard error times this: loads change by themselves. */
const SURE = 5;
/** Fewer comparisons in one direction of a host prove nothing. */
const LEAST = 8;
/** A smaller predicted change is lost in the noise. */
const SMALLEST = 0.005;

type Sums = { count: number; xx: number; xy: number; yy: number };
const none = (): Sums => ({ count: 0, xx: 0, xy: 0, yy: 0 });
function add(sums: Sums, { change, error }: Comparison): void {
  const measured = change + error;
  sums.count += 1;
  sums.xx += change * change;
  sums.xy += change * measured;
  sums.yy += measured * measured;
}
const partOf = ({ xx, xy }: Sums): number => xy / xx;
/** Sum of the squared distances from the least squares fit through the origin. */
const restOf = ({ xx, xy, yy }: Sums): number => Math.max(0, yy - (xy * xy) / xx);
/** @param variance of one comparison, over all hosts: a few of one host may lie on a line by chance */
const isOff = (sums: Sums, variance: number): boolean => {
  const off = Math.abs(partOf(sums) - 1);
  const own = restOf(sums) / Math.max(1, sums.count - 1);
  return sums.count >= LEAST && off >= OFF && off >= SURE * Math.sqrt(Math.max(own, variance) / sums.xx);
};

/**
 * Judges the latest comparisons of a policy; null: nothing is off, or too few are known to say. Pure.
 *
 * Predictions are off where a host gains or loses surely another part than was predicted, or where the median difference is larger than the
 * policy's threshold.
 */
export function judgePredictions(all: readonly Comparison[], threshold: number): JudgedPredictions | null {
  const judged = all.filter(({ change }) => Math.abs(change) >= SMALLEST);
  if (judged.length < LEAST) return null;
  const sums = new Map<string, { readonly host: string; readonly gains: boolean; readonly of: Sums }>();
  const whole = none();
  for (const one of judged) {
    const gains = one.change > 0;
    const key = `${gains} ${one.host}`;
    const own = sums.get(key) ?? { host: one.host, gains, of: none() };
    sums.set(key, own);
    add(own.of, one);
    add(whole, one);
  }
  const errors = judged.map(({ error }) => Math.abs(error)).sort((a, b) => a - b);
  const error = errors[Math.floor((errors.length - 1) / 2)] ?? 0;
  const each = [...sums.values()];
  const rest = each.reduce((sum, { of }) => sum + restOf(of), 0);
  const variance = rest / Math.max(1, judged.length - each.length);
  const hosts = each
    .filter(({ of }) => isOff(of, variance))
    .map(({ host, gains, of }) => ({ host, gains, part: partOf(of) }))
    .sort((a, b) => Math.abs(b.part - 1) - Math.abs(a.part - 1));
  const nothing = isOff(whole, variance) && Math.abs(partOf(whole)) <= NOTHING;
  if (hosts.length === 0 && !nothing && error <= threshold) return null;
  const found = { hosts, error, comparisons: judged.length };
  if (nothing) return { cause: 'wrong-label', ...found };
  return { cause: sizesAreOff(judged, hosts) ? 'host-sizes' : 'load-depends-on-host', ...found };
}

/** Whether what hosts gain is off, and what they lose is as predicted: a loss is measured where the VM ran, and no size counts in it. */
function sizesAreOff(judged: readonly Comparison[], hosts: JudgedPredictions['hosts']): boolean {
  const [worst] = hosts;
  if (worst === undefined || hosts.some(({ gains }) => !gains)) return false;
  const names = new Set(hosts.map(({ host }) => host));
  const losses = judged.filter(({ change }) => change < 0);
  const own = losses.filter(({ host }) => names.has(host));
  const sums = none();
  for (const one of own.length >= LEAST ? own : losses) add(sums, one);
  return sums.count > 0 && Math.abs(partOf(sums) - 1) < Math.abs(worst.part - 1) / 2;
}
