import { type CompleteEngineOptions, type PlanLoads, type Reason, type Step, taskId } from '@kronos/contracts';
import { EPSILON } from '@kronos/rules';
import { byte, float, int, item } from '../base/array.ts';
import { type Cluster, shareOn } from '../cluster/cluster.ts';
import { Checker, Room } from '../cluster/constraints.ts';
import { Extremes } from '../cluster/extremes.ts';
import { observedCells } from '../cluster/hostCells.ts';
import { LoadOrder } from '../cluster/loadOrder.ts';
import type { Draft, Move } from '../draft/draft.ts';
import type { Arrangement } from '../draft/order.ts';
import { codeOfNumber, type ReasonCode, reasonMeanings } from '../reasons.ts';

/** The moves of a plan, with the order of their execution. */
type Ordered = {
  readonly moves: readonly Move[];
  readonly arrangement: Arrangement;
  /** Whether a move may go to another host in place of its own. */
  readonly allowed: (move: Move, host: number) => boolean;
  /** By VM: what its moves lower the combined imbalance by. */
  readonly gains: ReadonlyMap<number, number>;
};

/** The moves as the contract's steps, numbered in the arrangement's order. */
export function toSteps(
  planId: string,
  draft: Draft,
  { moves, arrangement, allowed, gains }: Ordered,
  options: Pick<CompleteEngineOptions, 'alternates' | 'staggerSeconds'>,
): Step[] {
  const { cluster } = draft;
  const number = new Map(arrangement.order.map((i, n) => [i, n + 1]));
  const alternates = new Alternates(draft, moves, options.alternates, allowed);
  const awaited = new Set(arrangement.dependsOn.flat());
  return arrangement.order.flatMap((i, n): Step[] => {
    const move = moves[i];
    if (move === undefined) return [];
    const { vm, from, to } = move;
    const weights: Step['weights'] = {};
    cluster.policies.forEach((policy, p) => {
      weights[policy.name] = { source: shareOn(cluster, vm, from, p), destination: shareOn(cluster, vm, to, p) };
    });
    const further = alternates.of(move);
    return [
      {
        step: n + 1,
        taskId: taskId(planId, n + 1),
        phase: move.phase,
        parking: move.parking,
        serverId: item(cluster.vmIds, vm),
        serverName: item(cluster.vmNames, vm),
        from: item(cluster.hostNames, from),
        to: item(cluster.hostNames, to),
        alternates: further.map((h) => item(cluster.hostNames, h)),
        dependsOn: (arrangement.dependsOn[i] ?? []).map((other) => taskId(planId, number.get(other) ?? 0)),
        delaySeconds: n * options.staggerSeconds,
        groups: (cluster.vmGroups[vm] ?? []).flatMap((g) => {
          const group = cluster.groups[g];
          return group === undefined ? [] : [{ id: group.id, policy: group.policy }];
        }),
        resources: { ...cluster.vmResources[vm] },
        ramMb: float(cluster.ramMb, vm),
        diskGb: float(cluster.diskGb, vm),
        weights,
        ...(cluster.alike || further.length === 0
          ? {}
          : { alternateWeights: further.map((h) => sharesOn(cluster, vm, h)) }),
        ...hostCellsOf(cluster, vm, [to, ...further]),
        why: why(cluster, move, gains.get(vm) ?? 0, awaited.has(i)),
      },
    ];
  });
}

function hostCellsOf({ numa, hostNames }: Cluster, vm: number, hosts: readonly number[]): Pick<Step, 'hostCells'> {
  const known = hosts.flatMap((h) => {
    const seen = observedCells(numa, vm, h);
    return seen === null
      ? []
      : [[item(hostNames, h), { cells: seen.cells.map((cell) => ({ ...cell })), ratios: { ...seen.ratios } }] as const];
  });
  return known.length === 0 ? {} : { hostCells: Object.fromEntries(known) };
}

const sharesOn = (cluster: Cluster, vm: number, host: number): Record<string, number> =>
  Object.fromEntries(cluster.policies.map(({ name }, p) => [name, shareOn(cluster, vm, host, p)]));

/** The loads of the hosts in the start state; null: no step needs them, because none that balances has an alternate. */
export function planLoads(cluster: Cluster, steps: readonly Step[]): PlanLoads | null {
  if (cluster.P === 0 || !steps.some(({ phase, alternates }) => phase === 'spread' && alternates.length > 0))
    return null;
  const values = (h: number): number[] =>
    cluster.policies.map((_, p) => Math.round(float(cluster.score, h * cluster.P + p) * 1e6) / 1e6);
  return {
    policies: cluster.policies.map(({ name, weight, threshold }) => ({ policy: name, weight, threshold })),
    hosts: cluster.hostNames.flatMap((host, h) =>
      byte(cluster.counted, h) === 1 ? [{ host, values: values(h) }] : [],
    ),
  };
}

/** The reasons for the VM and for the destination. `gain`: the increase of the final combined imbalance without the move. */
function why(cluster: Cluster, move: Move, gain: number, awaited: boolean): Reason {
  const balances = move.why === 'lowers-imbalance' || move.why === 'part-of-course';
  const code = balances && awaited && gain <= EPSILON ? 'makes-room' : move.why;
  const detail: Record<string, string | number> = {};
  if (balances) detail.gain = gain;
  const group = cluster.groups[move.repairs];
  if (group !== undefined) detail.group = group.id;
  const from = cluster.hostZone[move.from] ?? null;
  const to = cluster.hostZone[move.to] ?? null;
  if (from !== null && to !== null && from !== to) {
    detail.fromZone = from;
    detail.toZone = to;
  }
  const back = wayBack(cluster, move);
  if (back !== null) detail.oneWay = back;
  return { code, text: reasonMeanings[code], detail };
}

/** Why a VM cannot move back, whatever changes in load: newer CPUs or a newer hypervisor. Null: it can. */
function wayBack(
  { keyLegal, vmKind, sources, classes, hostSource, hostClass }: Cluster,
  move: Move,
): ReasonCode | null {
  const key = int(vmKind, move.vm) * sources + int(hostSource, move.to);
  const refusal = int(keyLegal, key * classes + int(hostClass, move.from));
  const code = refusal === 0 ? null : codeOfNumber(refusal);
  return code === 'cpu-traits' || code === 'older-hypervisor' ? code : null;
}

/**
 * Further legal destinations of a step, best first: by the combined imbalance with all other moves done, then by load. They are legal
 * with all arrivals of the plan and without its departures.
 */
class Alternates {
  readonly #draft: Draft;
  readonly #count: number;
  readonly #allowed: (move: Move, host: number) => boolean;
  readonly #checker: Checker;
  readonly #extremes: Extremes;
  readonly #byLoad: LoadOrder;
  /** Only lowest hosts: only these can do better than the other destinations. */
  readonly #cold: readonly number[];
  readonly #parked: ReadonlySet<number>;

  constructor(draft: Draft, moves: readonly Move[], count: number, allowed: (move: Move, host: number) => boolean) {
    const { cluster, score } = draft;
    this.#draft = draft;
    this.#count = count;
    this.#allowed = allowed;
    const room = new Room(cluster, { departuresFree: false });
    for (const move of moves) room.move(move.vm, move.from, move.to);
    this.#checker = new Checker(draft.place, room, { strict: true });
    this.#extremes = new Extremes(cluster, score);
    this.#byLoad = new LoadOrder(cluster, score);
    this.#cold = cluster.policies
      .map((_, p) => this.#extremes.onlyLowest(p))
      .filter((h) => this.#byLoad.hosts.includes(h));
    this.#parked = new Set(moves.filter((move) => move.parking).map((move) => move.vm));
  }

  of(move: Move): number[] {
    if (this.#count === 0 || this.#parked.has(move.vm)) return [];
    const { cluster } = this.#draft;
    let enough = 0;
    for (let p = 0; p < cluster.P; p++)
      enough += item(cluster.policies, p).weight * this.#extremes.afterLeaving(move.vm, move.to, p);
    const best: Alternate[] = [];
    for (const host of this.#cold) this.#offer(best, move, host);
    for (const host of this.#byLoad.hosts) {
      const last = best[this.#count - 1];
      // The other hosts are more loaded, and none of them gives a lower combined imbalance.
      if (cluster.P > 0 && last !== undefined && last.combined <= enough + EPSILON) break;
      this.#offer(best, move, host);
    }
    return best.map(({ host }) => host);
  }

  #offer(best: Alternate[], move: Move, host: number): void {
    if (host === move.to || host === move.from || best.some((other) => other.host === host)) return;
    const { cluster } = this.#draft;
    let combined = 0;
    for (let p = 0; p < cluster.P; p++)
      combined += item(cluster.policies, p).weight * this.#extremes.after(move.vm, move.to, host, p);
    const candidate = { host, combined, load: this.#byLoad.load(host) };
    const last = best[this.#count - 1];
    if (last !== undefined && !isBetter(candidate, last)) return;
    if (this.#checker.refusal(move.vm, host) !== 0 || !this.#allowed(move, host)) return;
    const at = best.findIndex((other) => isBetter(candidate, other));
    best.splice(at < 0 ? best.length : at, 0, candidate);
    if (best.length > this.#count) best.pop();
  }
}

type Alternate = { readonly host: number; readonly combined: number; readonly load: number };

const isBetter = (a: Alternate, b: Alternate): boolean =>
  a.combined < b.combined - EPSILON || (a.combined <= b.combined + EPSILON && a.load < b.load - EPSILON);
