import { type EngineOptions, type Step, taskId } from '@kronos/contracts';
import type { Cluster } from './cluster.ts';
import { check, Room } from './constraints.ts';
import type { Draft, Move } from './draft.ts';
import { EPSILON, Extremes, shareOn } from './measure.ts';
import type { Arrangement } from './order.ts';
import { reasonMeanings } from './reasons.ts';

/** The moves as the contract's steps, numbered in the arrangement's order. */
export function toSteps(
  planId: string,
  draft: Draft,
  moves: readonly Move[],
  arrangement: Arrangement,
  options: Pick<EngineOptions, 'alternates' | 'staggerSeconds'>,
  allowed: (move: Move, host: number) => boolean,
): Step[] {
  const { cluster } = draft;
  const number = new Map(arrangement.order.map((i, n) => [i, n + 1]));
  const alternates = new Alternates(draft, moves, options.alternates, allowed);
  return arrangement.order.flatMap((i, n): Step[] => {
    const move = moves[i];
    if (move === undefined) return [];
    const { vm, from, to } = move;
    const weights: Step['weights'] = {};
    cluster.policies.forEach((policy, p) => {
      weights[policy.name] = { source: shareOn(cluster, vm, from, p), destination: shareOn(cluster, vm, to, p) };
    });
    return [
      {
        step: n + 1,
        taskId: taskId(planId, n + 1),
        phase: move.phase,
        parking: move.parking,
        serverId: cluster.vmIds[vm] ?? '',
        serverName: cluster.vmNames[vm] ?? '',
        from: cluster.hostNames[from] ?? '',
        to: cluster.hostNames[to] ?? '',
        alternates: alternates.of(move).map((h) => cluster.hostNames[h] ?? ''),
        dependsOn: (arrangement.dependsOn[i] ?? []).map((other) => taskId(planId, number.get(other) ?? 0)),
        delaySeconds: n * options.staggerSeconds,
        groups: (cluster.vmGroups[vm] ?? []).flatMap((g) => {
          const group = cluster.groups[g];
          return group === undefined ? [] : [{ id: group.id, policy: group.policy }];
        }),
        resources: { ...cluster.vmResources[vm] },
        ramMb: cluster.ramMb[vm] ?? 0,
        diskGb: cluster.diskGb[vm] ?? 0,
        weights,
        why: { code: move.why, text: reasonMeanings[move.why], detail: whyDetail(cluster, move) },
      },
    ];
  });
}

function whyDetail(cluster: Cluster, move: Move): Record<string, string> {
  const detail: Record<string, string> = {};
  const group = cluster.groups[move.repairs];
  if (group !== undefined) detail.group = group.id;
  const from = cluster.hostZone[move.from] ?? null;
  const to = cluster.hostZone[move.to] ?? null;
  if (from !== null && to !== null && from !== to) {
    detail.fromZone = from;
    detail.toZone = to;
  }
  return detail;
}

/**
 * Further legal destinations of a step, best first: those that leave the combined imbalance lowest, all other moves of
 * the plan done. Legal beside all arrivals of the plan, no departure counted.
 */
class Alternates {
  readonly #draft: Draft;
  readonly #count: number;
  readonly #allowed: (move: Move, host: number) => boolean;
  readonly #room: Room;
  readonly #extremes: Extremes;
  readonly #destinations: number[] = [];
  readonly #halves: ReadonlySet<number>;

  constructor(draft: Draft, moves: readonly Move[], count: number, allowed: (move: Move, host: number) => boolean) {
    const { cluster } = draft;
    this.#draft = draft;
    this.#count = count;
    this.#allowed = allowed;
    this.#room = new Room(cluster, false);
    for (const move of moves) this.#room.move(move.vm, move.from, move.to);
    this.#extremes = new Extremes(cluster);
    this.#extremes.update(draft.score);
    for (let h = 0; h < cluster.H; h++) if (cluster.hostRefusal[h] === 0) this.#destinations.push(h);
    this.#halves = new Set(moves.filter((move) => move.parking).map((move) => move.vm));
  }

  of(move: Move): number[] {
    if (this.#count === 0 || this.#halves.has(move.vm)) return [];
    const { cluster, score, place } = this.#draft;
    const { P, policies } = cluster;
    const best: { host: number; combined: number; sum: number }[] = [];
    for (const host of this.#destinations) {
      if (host === move.to || host === move.from) continue;
      let combined = 0;
      let sum = 0;
      for (let p = 0; p < P; p++) {
        const weight = policies[p]?.weight ?? 0;
        combined += weight * this.#extremes.after(score, move.vm, move.to, host, p);
        sum += weight * ((score[host * P + p] ?? 0) + shareOn(cluster, move.vm, host, p));
      }
      const last = best[this.#count - 1];
      if (last !== undefined && !lower({ combined, sum }, last)) continue;
      if (check(cluster, place, this.#room, move.vm, host) !== 0 || !this.#allowed(move, host)) continue;
      const at = best.findIndex((other) => lower({ combined, sum }, other));
      best.splice(at < 0 ? best.length : at, 0, { host, combined, sum });
      if (best.length > this.#count) best.pop();
    }
    return best.map(({ host }) => host);
  }
}

const lower = (a: { combined: number; sum: number }, b: { combined: number; sum: number }): boolean =>
  a.combined < b.combined - EPSILON || (a.combined <= b.combined + EPSILON && a.sum < b.sum - EPSILON);
