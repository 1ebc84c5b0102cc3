/** Whether a move that balances still helps, judged on what the hosts carry at that moment. */
import type { PlanLoads } from '@kronos/contracts';
import { EPSILON, isWorse } from './threshold.ts';

/** A server's move from one host to another, with the share of each by policy name. */
export type LoadMove = {
  readonly from: string;
  readonly to: string;
  readonly leaves: Readonly<Record<string, number>>;
  readonly adds: Readonly<Record<string, number>>;
};

export type Usefulness = {
  /** The combined imbalance is lower with the move, and no policy ends worse than without it and above its threshold. */
  readonly helps: boolean;
  /** The combined imbalance without the move, and with it. */
  readonly without: number;
  readonly withMove: number;
};

/**
 * Judges a move on top of other moves.
 *
 * @param others the moves that are done, and those that are still to be done
 * @param out hosts that have ceased to be destinations: they take part in no imbalance
 */
export function usefulness(
  { policies, hosts }: PlanLoads,
  move: LoadMove,
  others: readonly LoadMove[],
  out: ReadonlySet<string>,
): Usefulness {
  const after = (moves: readonly LoadMove[]): number[] =>
    policies.map(({ policy }, p) => {
      const values = new Map(hosts.map(({ host, values: of }) => [host, of[p] ?? 0]));
      const add = (host: string, share: number): void => {
        const value = values.get(host);
        if (value !== undefined) values.set(host, value + share);
      };
      for (const { from, to, leaves, adds } of moves) {
        add(from, -(leaves[policy] ?? 0));
        add(to, adds[policy] ?? 0);
      }
      const counted = [...values].flatMap(([host, value]) => (out.has(host) ? [] : [value]));
      return counted.length === 0 ? 0 : Math.max(...counted) - Math.min(...counted);
    });
  const [before, moved] = [after(others), after([...others, move])];
  const combined = (imbalances: readonly number[]): number =>
    policies.reduce((sum, { weight }, p) => sum + weight * (imbalances[p] ?? 0), 0);
  const [without, withMove] = [combined(before), combined(moved)];
  const worse = policies.some(({ threshold }, p) => isWorse(moved[p] ?? 0, before[p] ?? 0, threshold));
  return { helps: withMove < without - EPSILON && !worse, without, withMove };
}
