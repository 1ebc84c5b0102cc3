import { byText, type CompleteEngineOptions, type Decision, type Stuck } from '@kronos/contracts';
import { EPSILON } from '@kronos/rules';
import { float, int, item } from '../base/array.ts';
import { imbalances, worsened } from '../cluster/measure.ts';
import type { Draft } from '../draft/draft.ts';
import { type Placing, place, type WantedPlaces } from '../draft/placing.ts';
import { type Target, Targets } from '../draft/targets.ts';
import { codeOfNumber, type ReasonCode, reasonMeanings } from '../reasons.ts';

/** Legality checks of one packing: about a second. Fewer left VMs behind on two of 150 tight clusters. */
const WORK = 6_000_000;

/**
 * Evacuator: moves VMs off hosts that are disabled and up. Among all (VM, destination) pairs that are legal and push no policy past its
 * threshold, it takes the pair with the lowest combined imbalance (ties: the largest VM, then the least loaded host), applies it and
 * repeats. If this strands VMs, it looks for a packing of all VMs. If the thresholds still strand VMs and are only preferred, each of
 * these goes where it exceeds them least. If there is no room, other VMs move to make room. The plan is the part of all this that the
 * budget allows. The next cycles make the rest.
 */
export function evacuate(draft: Draft, options: Pick<CompleteEngineOptions, 'evacuationThresholds'>): void {
  const { cluster, place: at, budget } = draft;
  const vms: number[] = [];
  for (let vm = 0; vm < cluster.V; vm++) if (cluster.leaving[int(at, vm)] === 1 && draft.evacuable(vm)) vms.push(vm);
  if (vms.length === 0) return;
  const mark = draft.moves.length;
  const make = (moves: Placing['moves']): void => {
    draft.rollback(mark);
    draft.budget = budget;
    for (const { vm, to, wanted } of moves.slice(0, budget))
      draft.apply(vm, to, { phase: 'evacuate', why: wanted ? 'leaves-disabled-host' : 'makes-room' });
  };
  const before = imbalances(cluster, draft.score);
  // Without a limit to the budget, which shows the effect of the first moves on the later ones.
  const required = options.evacuationThresholds === 'require';
  const { oneByOne, best } = ways(draft, vms, required);
  make(best);
  // The whole packing pushes no policy past its threshold. A part of it might.
  if (required && best.length > budget && worsened(cluster, before, imbalances(cluster, draft.score))) make(oneByOne);
}

/** The moves one by one, and those that strand the fewest VMs. */
function ways(
  draft: Draft,
  vms: readonly number[],
  required: boolean,
): { readonly oneByOne: Placing['moves']; readonly best: Placing['moves'] } {
  const mark = draft.moves.length;
  const left = leaveOneByOne(draft, vms, new Targets(draft));
  const oneByOne = wantedMoves(draft, mark);
  let best = oneByOne;
  let stranded = left.length;
  const offer = (wanted: Omit<WantedPlaces, 'vms' | 'stranded'>): void => {
    if (stranded === 0) return;
    draft.rollback(mark);
    const found = place(draft, { vms, stranded, work: WORK, ...wanted });
    if (found !== null) [best, stranded] = [found.moves, found.stranded];
  };
  offer({ residents: false, thresholds: true });
  if (!required && stranded > 0) {
    draft.rollback(mark);
    for (const { vm, to } of oneByOne) draft.apply(vm, to, { phase: 'evacuate', why: 'leaves-disabled-host' });
    const still = leaveOneByOne(draft, left, new Targets(draft, { past: true }));
    if (still.length < stranded) [best, stranded] = [wantedMoves(draft, mark), still.length];
  }
  offer({ residents: true, thresholds: required });
  return { oneByOne, best };
}

const wantedMoves = (draft: Draft, mark: number): Placing['moves'] =>
  draft.moves.slice(mark).map(({ vm, to }) => ({ vm, to, wanted: true }));

/** Applies the best pair until none is left; returns the VMs without a host. */
function leaveOneByOne(draft: Draft, vms: readonly number[], targets: Targets): readonly number[] {
  const { cluster } = draft;
  let waiting = [...vms];
  const ram = (vm: number): number => float(cluster.ramMb, vm);
  waiting.sort((a, b) => ram(b) - ram(a) || a - b);
  while (waiting.length > 0) {
    let best: Target | null = null;
    const enough = targets.least + EPSILON;
    for (const vm of waiting) {
      // No remaining pair can be better.
      if (best !== null && best.combined <= enough) break;
      const target = targets.of(vm);
      if (target === null) continue;
      if (best === null || target.combined < best.combined - EPSILON) best = target;
    }
    if (best === null) break;
    const taken = best;
    const from = int(draft.place, taken.vm);
    draft.apply(taken.vm, taken.to, { phase: 'evacuate', why: 'leaves-disabled-host' });
    waiting = waiting.filter((vm) => vm !== taken.vm);
    targets.moved(from, taken.to);
  }
  return waiting;
}

/** Reasons that end by themselves: a VM is not stuck with one of them, nor while a host refuses it for one. */
const passing: ReadonlySet<ReasonCode> = new Set([
  'vm-in-flight',
  'vm-cooling-down',
  'vm-busy',
  'vm-migrating',
  'vm-seen-twice',
  'vm-outside-window',
  'host-broken',
]);

/** Progress of the evacuation of each disabled host. Adds the VMs that cannot leave, with reasons, to `draft.stuck`. */
export function evacuationEnds(draft: Draft): Decision['evacuations'] {
  const { cluster } = draft;
  const left = new Int32Array(cluster.H);
  const running = new Uint8Array(cluster.H);
  const waits = new Map<number, Waits>();
  const why = whyNot(draft);
  const wait = (host: number, vm: number, code: ReasonCode | null): void => {
    running[host] = 1;
    if (code === null) return;
    const of = waits.get(host) ?? new Map();
    waits.set(host, of.set(code, [...(of.get(code) ?? []), vm]));
  };
  for (let vm = 0; vm < cluster.V; vm++) {
    const host = int(cluster.vmHost, vm);
    for (const other of cluster.alsoOn.get(vm) ?? [])
      if (cluster.leaving[other] === 1 && cluster.leaving[host] === 0) {
        left[other] = int(left, other) + 1;
        wait(other, vm, 'vm-in-flight');
      }
    if (cluster.leaving[host] !== 1) continue;
    left[host] = int(left, host) + 1;
    const found = why(vm);
    if (found.stuck) draft.addStuck(vm, 'evacuate', found.reason);
    else wait(host, vm, found.code);
  }
  const ends: Decision['evacuations'] = [];
  for (let h = 0; h < cluster.H; h++) {
    if (cluster.leaving[h] !== 1) continue;
    const count = int(left, h);
    const state = count === 0 ? 'done' : running[h] === 1 ? 'running' : 'stuck';
    const of = waitsOf(draft, waits.get(h));
    ends.push({ host: item(cluster.hostNames, h), state, left: count, ...(of.length === 0 ? {} : { waits: of }) });
  }
  return ends;
}

/** The VMs that wait, by what they wait for. */
type Waits = Map<ReasonCode, number[]>;

type WaitsOfHost = NonNullable<Decision['evacuations'][number]['waits']>;

const waitsOf = ({ cluster }: Draft, waits: Waits | undefined): WaitsOfHost =>
  [...(waits ?? [])]
    .sort(([a], [b]) => byText(a, b))
    .map(([code, vms]) => ({
      code,
      text: reasonMeanings[code],
      count: vms.length,
      serverName: item(cluster.vmNames, vms[0] ?? 0),
    }));

type WhyNot =
  | { readonly stuck: true; readonly reason: Stuck['reason'] }
  /** It leaves with this plan or the next ones (`code` null), or waits for something that ends by itself. */
  | { readonly stuck: false; readonly code: ReasonCode | null };

/** Why a VM of a disabled host is still there after the passes. */
function whyNot(draft: Draft): (vm: number) => WhyNot {
  const { cluster, moved, budget } = draft;
  let targets: Targets | null = null;
  return (vm) => {
    if (moved[vm] === 1) return { stuck: false, code: null };
    const refusal = int(cluster.vmRefusal, vm);
    if (refusal !== 0) {
      const code = codeOfNumber(refusal);
      if (passing.has(code)) return { stuck: false, code };
      return { stuck: true, reason: { code, text: reasonMeanings[code], detail: { refusals: {} } } };
    }
    targets ??= new Targets(draft);
    if (budget === 0 && targets.of(vm) !== null) return { stuck: false, code: null };
    const { code, counts } = targets.whyNot(vm);
    const ends = Object.keys(counts).find((reason) => passing.has(reason as ReasonCode));
    if (ends !== undefined) return { stuck: false, code: ends as ReasonCode };
    const text = code === 'no-destination' ? reasonMeanings[code] : `No host takes it: ${targets.obstacle(vm)}.`;
    return { stuck: true, reason: { code, text, detail: { refusals: counts } } };
  };
}
