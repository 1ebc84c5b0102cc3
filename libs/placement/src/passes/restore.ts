import { type CompleteEngineOptions, clause } from '@kronos/contracts';
import { byte, float, int, item } from '../base/array.ts';
import type { Draft } from '../draft/draft.ts';
import { place } from '../draft/placing.ts';
import { Targets } from '../draft/targets.ts';
import { codeNumber, codeOfNumber, type ReasonCode, reasonMeanings } from '../reasons.ts';

type Options = Pick<CompleteEngineOptions, 'evacuationThresholds'>;

/** Other VMs that may move for one VM. */
const MOST_OTHERS = 3;
/** Work of a search for others, and of all these, in legality checks: after a lowered ratio there may be hundreds of hosts to relieve. */
const WORK = { ofOne: 200_000, ofAll: 2_000_000 };
/** The start of a search costs as much as a check for each of this many VMs. */
const VMS_PER_CHECK = 10;

/** The state at the start of the pass, and what it has spent. */
type Pass = {
  readonly options: Options;
  /** By host: its VMs at the start, ascending. Arrivals are moved already. */
  readonly vmsOf: ReadonlyMap<number, readonly number[]>;
  readonly workOfOne: number;
  workLeft: number;
};

/**
 * Repairs what no group's rule describes: VMs outside of the availability zone that they are pinned to, and hosts on which more is claimed
 * than they have, because a ratio, a reservation or an inventory was changed. The fewest VMs leave such a host. Each goes where evacuated
 * VMs would go. What cannot be repaired is warned about.
 */
export function restore(draft: Draft, options: Options, work = WORK): void {
  const vms = Array.from({ length: draft.cluster.V }, (_, vm) => vm);
  const vmsOf = Map.groupBy(vms, (vm) => int(draft.place, vm));
  const pass: Pass = { options, vmsOf, workOfOne: work.ofOne, workLeft: work.ofAll };
  for (const vm of outsideOfPin(draft)) bringHome(draft, vm, pass);
  for (let host = 0; host < draft.cluster.H; host++) relieve(draft, host, pass);
}

/** VMs that their pin forbids to be where they are. A disabled host that is emptied is the evacuator's. */
function outsideOfPin({ cluster, place: at, moved }: Draft): readonly number[] {
  const pinned = codeNumber['pinned-zone'];
  return Array.from({ length: cluster.V }, (_, vm) => vm).filter((vm) => {
    const host = int(at, vm);
    if (moved[vm] === 1 || byte(cluster.leaving, host) === 1 || cluster.alsoOn.has(vm)) return false;
    return int(cluster.keyLegal, int(cluster.vmKey, vm) * cluster.classes + int(cluster.hostClass, host)) === pinned;
  });
}

function bringHome(draft: Draft, vm: number, pass: Pass): void {
  if (leave(draft, vm, 'returns-to-zone', pass)) return;
  const { cluster } = draft;
  const zone = cluster.hostZone[int(draft.place, vm)];
  const code = 'outside-pinned-zone' satisfies ReasonCode;
  draft.warnings.push({
    code,
    text: `${item(cluster.vmNames, vm)} is pinned to another zone than ${zone ?? 'none'}, where it is, and stays: ${obstacle(draft, vm)}`,
    detail: { server: item(cluster.vmIds, vm), host: item(cluster.hostNames, int(draft.place, vm)) },
  });
}

/** Moves VMs off a host until no more is claimed on it than it has. */
function relieve(draft: Draft, host: number, pass: Pass): void {
  const { cluster } = draft;
  if (byte(cluster.leaving, host) === 1) return;
  const tried = new Set<number>();
  for (let over = excess(draft, host); over.size > 0; over = excess(draft, host)) {
    const vm = mostRelieving(draft, host, { over, tried }, pass);
    if (vm === null) {
      warnOver(draft, host, { over, tried });
      return;
    }
    tried.add(vm);
    leave(draft, vm, 'relieves-host', pass);
  }
}

/** By resource class: what is claimed on the host beyond its capacity, once the moves from it have ended. */
function excess({ cluster, moves }: Draft, host: number): ReadonlyMap<number, number> {
  const { R, free, demand, alsoOn } = cluster;
  const going = [
    ...moves.filter(({ from }) => from === host).map(({ vm }) => vm),
    ...[...alsoOn].filter(([, hosts]) => hosts.includes(host)).map(([vm]) => vm),
  ];
  const over = new Map<number, number>();
  for (let r = 0; r < R; r++) {
    const left = -float(free, host * R + r) - going.reduce((sum, vm) => sum + float(demand, vm * R + r), 0);
    if (left > 0) over.set(r, left);
  }
  return over;
}

type Over = { readonly over: ReadonlyMap<number, number>; readonly tried: ReadonlySet<number> };

/** The VM that relieves the host most; of those that relieve it wholly, the one that copies least. Null: none is left. */
function mostRelieving(draft: Draft, host: number, { over, tried }: Over, { vmsOf }: Pass): number | null {
  const { cluster } = draft;
  const { R, demand } = cluster;
  /** The share of the excess that goes with the VM: 1 where it relieves the host wholly. */
  const share = (vm: number): number =>
    [...over].reduce((sum, [r, amount]) => sum + Math.min(1, float(demand, vm * R + r) / amount), 0) / over.size;
  const candidates = (vmsOf.get(host) ?? []).filter(
    (vm) => int(draft.place, vm) === host && !tried.has(vm) && draft.movable(vm) && share(vm) > 0,
  );
  const [best] = candidates.sort(
    (a, b) => share(b) - share(a) || float(cluster.copyGib, a) - float(cluster.copyGib, b) || a - b,
  );
  return best ?? null;
}

function warnOver(draft: Draft, host: number, { over, tried }: Over): void {
  const { cluster } = draft;
  const name = item(cluster.hostNames, host);
  const amounts = [...over].map(([r, amount]) => `${amount} ${item(cluster.resourceClasses, r)}`);
  const [first] = tried;
  const why = first === undefined ? 'no VM on it can move' : obstacle(draft, first);
  const code = 'host-over-capacity' satisfies ReasonCode;
  draft.warnings.push({
    code,
    text: `${name} has ${amounts.join(' and ')} more claimed than its capacity, and no move relieves it: ${why}`,
    detail: {
      host: name,
      ...Object.fromEntries([...over].map(([r, amount]) => [item(cluster.resourceClasses, r), amount])),
    },
  });
}

/** Moves one VM off its host. False when no legal move was found that does it within the budget. */
function leave(draft: Draft, vm: number, why: ReasonCode, pass: Pass): boolean {
  if (draft.budget <= 0 || !draft.movable(vm)) return false;
  const required = pass.options.evacuationThresholds === 'require';
  for (const past of required ? [false] : [false, true]) {
    const target = new Targets(draft, { past }).of(vm);
    if (target === null) continue;
    draft.apply(vm, target.to, { phase: 'repair', why });
    return true;
  }
  if (pass.workLeft <= 0) return false;
  const wanted = { vms: [vm], residents: true, most: MOST_OTHERS, stranded: 1, thresholds: required };
  const before = draft.evaluated;
  const found = place(draft, { ...wanted, work: Math.min(pass.workOfOne, pass.workLeft) });
  pass.workLeft -= draft.evaluated - before + draft.cluster.V / VMS_PER_CHECK;
  if (found === null || found.moves.length > draft.budget) return false;
  for (const { vm: other, to, wanted } of found.moves)
    draft.apply(other, to, { phase: 'repair', why: wanted ? why : 'makes-room' });
  return true;
}

/** Why a VM stays, as a clause. */
function obstacle(draft: Draft, vm: number): string {
  const own = draft.refusalOf(vm);
  if (own !== 0) return clause(reasonMeanings[codeOfNumber(own)]);
  if (draft.budget <= 0) return clause(reasonMeanings['budget-used']);
  return new Targets(draft).obstacle(vm);
}
