import { float, item } from '../base/array.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { NO_REPAIR } from '../cluster/constraints.ts';
import type { Move } from './draft.ts';

/**
 * The order of a plan's moves, and the moves that each one waits for.
 *
 * Each host has an account for each resource class, and for the places of each anti-affinity group. An arrival is paid from the amount
 * that was free at the start. If that is too little, departures pay, and the arrival depends on exactly these departures. Nothing is
 * spent twice. So the moves are legal in every order of completion that respects the dependencies. A running move counts on both hosts,
 * because its departure pays only for arrivals that wait for its end.
 */
export type Arrangement = {
  /** Indexes into the given moves, in an order that respects the dependencies. */
  readonly order: readonly number[];
  /** For each given move the indexes of the moves that it waits for, ascending. */
  readonly dependsOn: readonly (readonly number[])[];
  /** Moves that are impossible in every order that was tried; empty when the whole plan can run. */
  readonly blocked: readonly number[];
  /** Moves that were tried at a place of a sequence: what the arrangement cost. */
  readonly tried: number;
};

type Account = {
  /** The amount that was free at the start, minus the arrivals that it paid for. Below 0 while the host exceeds its limit. */
  base: number;
  /** The amount that departures freed, minus the arrivals that it paid for. */
  readonly credits: { readonly move: number; left: number }[];
  /** Departures that bring an account back to 0 which began below it: every arrival waits for these. */
  readonly cover: number[];
};

type Payment = { readonly account: Account; readonly base: number; readonly parts: [credit: number, amount: number][] };

/** Sequences in which the moves are tried while some have no place: those that had none come first in the next one. */
const MOST_TRIES = 24;
/** The same, in moves of all sequences: plans with many moves get fewer. */
const MOST_TRIED = 1200;
/** Sets of ended moves that an exact search for a sequence finds hopeless, at most; and moves, which are the bits of a number. */
const MOST_STATES = 400;
const MOST_MASKED = 30;

/**
 * Arranges the moves. Two moves of one VM are the halves of a parking move and stay in their order. The amount that a departure frees is paid
 * to the first move that asks for it, so other sequences are tried while some move has no place.
 */
export function arrange(cluster: Cluster, moves: readonly Move[]): Arrangement {
  let sequence = moves.map((_, i) => i);
  let best = arrangeIn(cluster, moves, sequence, true);
  let last = best;
  let { tried } = best;
  const tries = Math.min(MOST_TRIES, Math.floor(MOST_TRIED / Math.max(1, moves.length)));
  for (let n = 0; n < tries && best.blocked.length > 0; n++) {
    const late = new Set(last.blocked);
    sequence = [...last.blocked, ...sequence.filter((i) => !late.has(i))];
    last = arrangeIn(cluster, moves, sequence, n % 2 === 1);
    tried += last.tried;
    if (last.blocked.length < best.blocked.length) best = last;
    if (last.blocked.length === 0) break;
  }
  if (best.blocked.length === 0 || moves.length > MOST_MASKED) return { ...best, tried };
  const legal = legalSequence(cluster, moves, last.blocked);
  tried += legal.tried;
  return { ...(legal.sequence === null ? best : arrangeIn(cluster, moves, legal.sequence, false)), tried };
}

/** Exact search for a sequence in which each move is legal once those before it have ended, the moves in `first` early; null: not found. */
function legalSequence(
  cluster: Cluster,
  moves: readonly Move[],
  first: readonly number[],
): { readonly sequence: readonly number[] | null; readonly tried: number } {
  const indexes = [...new Set([...first, ...moves.keys()])];
  const accounts = new Accounts(cluster);
  const hopeless = new Set<number>();
  const sequence: number[] = [];
  let tried = 0;
  const isNext = (i: number): boolean => {
    tried++;
    const move = item(moves, i);
    const firstHalf = moves.findIndex(({ vm }) => vm === move.vm);
    if (firstHalf !== i && !sequence.includes(firstHalf)) return false;
    return accounts.holds(move) && affinityDependency(cluster, moves, sequence, move) !== null;
  };
  const complete = (done: number): boolean => {
    if (sequence.length === moves.length) return true;
    if (hopeless.has(done) || hopeless.size >= MOST_STATES) return false;
    for (const i of indexes) {
      if ((done & (1 << i)) !== 0 || !isNext(i)) continue;
      accounts.shift(item(moves, i), 1);
      sequence.push(i);
      if (complete(done | (1 << i))) return true;
      sequence.pop();
      accounts.shift(item(moves, i), -1);
    }
    hopeless.add(done);
    return false;
  };
  return { sequence: complete(0) ? sequence : null, tried };
}

/** @param freeFirst moves that need no departure come before all others. */
function arrangeIn(
  cluster: Cluster,
  moves: readonly Move[],
  sequence: readonly number[],
  freeFirst: boolean,
): Arrangement {
  const accounts = new Accounts(cluster);
  const dependsOn: number[][] = moves.map(() => []);
  const order: number[] = [];
  const lastOfVm = new Map<number, number>();
  const firstOfVm = new Map<number, number>();
  moves.forEach((move, i) => {
    if (!firstOfVm.has(move.vm)) firstOfVm.set(move.vm, i);
  });
  let waiting = [...sequence];
  let tried = 0;

  const tryPlace = (i: number, free: boolean): boolean => {
    tried++;
    const move = moves[i];
    if (move === undefined) return false;
    if (firstOfVm.get(move.vm) !== i && !lastOfVm.has(move.vm)) return false;
    const gathered = affinityDependency(cluster, moves, order, move);
    if (gathered === null) return false;
    const deps = accounts.pay(move, free);
    if (deps === null) return false;
    const half = lastOfVm.get(move.vm);
    const all = new Set([...deps, ...gathered, ...(half === undefined ? [] : [half])]);
    dependsOn[i] = [...all].sort((a, b) => a - b);
    order.push(i);
    lastOfVm.set(move.vm, i);
    accounts.credit(move, i);
    return true;
  };

  // First the moves that need no departure; then, one at a time, those that need one.
  if (freeFirst) waiting = waiting.filter((i) => !tryPlace(i, true));
  for (let progress = true; progress && waiting.length > 0; ) {
    progress = false;
    const rest: number[] = [];
    for (const i of waiting)
      if (tryPlace(i, false)) progress = true;
      else rest.push(i);
    waiting = rest;
  }
  return { order, dependsOn, blocked: waiting, tried };
}

/**
 * The moves that a move to an affinity group's gathering host waits for: none when a member is there from the start and stays, else the
 * first move that brings a member. Null: that move has no place yet.
 */
function affinityDependency(
  cluster: Cluster,
  moves: readonly Move[],
  placed: readonly number[],
  move: Move,
): number[] | null {
  if (move.repairs === NO_REPAIR) return [];
  const group = cluster.groups[move.repairs];
  if (group === undefined || !group.affine) return [];
  const moving = new Set(moves.map((other) => other.vm));
  if (group.members.some((v) => cluster.vmHost[v] === move.to && !moving.has(v) && !cluster.alsoOn.has(v))) return [];
  if (!group.hard) return [];
  const first = placed.find((i) => moves[i]?.to === move.to && moves[i]?.repairs === move.repairs);
  return first === undefined ? null : [first];
}

class Accounts {
  readonly #cluster: Cluster;
  readonly #accounts = new Map<number, Account>();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** True when the destination has what the move needs now. For {@link shift}, which knows no credits. */
  holds({ vm, to }: Move): boolean {
    for (const [account, amount] of this.#claims(vm, to)) if (account.base < amount) return false;
    return true;
  }

  /** Makes a move that ends at once, or takes it back. */
  shift({ vm, from, to }: Move, sign: 1 | -1): void {
    for (const [account, amount] of this.#claims(vm, to)) account.base -= sign * amount;
    for (const [account, amount] of this.#claims(vm, from)) account.base += sign * amount;
  }

  /** Pays for an arrival and returns the departures that it waits for. Returns null, and pays nothing, when the accounts do not suffice. */
  pay(move: Move, fromBaseOnly: boolean): number[] | null {
    const payments: Payment[] = [];
    const deps = new Set<number>();
    for (const [account, amount] of this.#claims(move.vm, move.to)) {
      const payment = quote(account, amount, deps, fromBaseOnly);
      if (payment === null) return null;
      payments.push(payment);
      for (const credit of account.cover) deps.add(credit);
      for (const [credit] of payment.parts) deps.add(account.credits[credit]?.move ?? -1);
    }
    for (const { account, base, parts } of payments) {
      account.base -= base;
      for (const [i, amount] of parts) {
        const credit = account.credits[i];
        if (credit !== undefined) credit.left -= amount;
      }
    }
    return [...deps];
  }

  /** Credits a departure. */
  credit(move: Move, index: number): void {
    for (const [account, amount] of this.#claims(move.vm, move.from)) {
      const cover = Math.min(amount, Math.max(0, -account.base));
      if (cover > 0) {
        account.base += cover;
        account.cover.push(index);
      }
      if (amount > cover) account.credits.push({ move: index, left: amount - cover });
    }
  }

  /** The accounts that a VM draws on at a host, with the amounts. */
  *#claims(vm: number, host: number): Generator<[Account, number]> {
    const { R, demand, groups, vmGroups, free } = this.#cluster;
    const width = R + groups.length;
    for (let r = 0; r < R; r++) {
      const amount = float(demand, vm * R + r);
      if (amount > 0) yield [this.#account(host * width + r, () => float(free, host * R + r)), amount];
    }
    for (const g of vmGroups[vm] ?? []) {
      const group = groups[g];
      if (group === undefined || group.affine || !group.strict) continue;
      yield [this.#account(host * width + R + g, () => group.max - this.#membersAt(g, host)), 1];
    }
  }

  #account(key: number, base: () => number): Account {
    const known = this.#accounts.get(key);
    if (known !== undefined) return known;
    const account: Account = { base: base(), credits: [], cover: [] };
    this.#accounts.set(key, account);
    return account;
  }

  #membersAt(g: number, host: number): number {
    const { groups, vmHost, alsoOn } = this.#cluster;
    let count = 0;
    for (const v of groups[g]?.members ?? []) if (vmHost[v] === host || alsoOn.get(v)?.includes(host) === true) count++;
    return count;
  }
}

/** The sources from which an account would pay an amount, credits of departures in `known` first; null when it cannot pay. */
function quote(account: Account, amount: number, known: ReadonlySet<number>, fromBaseOnly: boolean): Payment | null {
  if (account.base >= amount) return { account, base: amount, parts: [] };
  if (fromBaseOnly || account.base < 0) return null;
  let missing = amount - account.base;
  const parts: Payment['parts'] = [];
  const take = (i: number): void => {
    const left = item(account.credits, i).left;
    const part = Math.min(left, missing);
    if (part <= 0) return;
    parts.push([i, part]);
    missing -= part;
  };
  const indexes = account.credits.map((_, i) => i);
  const isKnown = (i: number): boolean => known.has(item(account.credits, i).move);
  for (const i of indexes) if (isKnown(i)) take(i);
  const single = indexes.find((i) => !isKnown(i) && item(account.credits, i).left >= missing);
  if (missing > 0 && single !== undefined) take(single);
  else for (const i of indexes) if (!isKnown(i)) take(i);
  return missing > 0 ? null : { account, base: account.base, parts };
}
