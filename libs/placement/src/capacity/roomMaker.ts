/** Moves that make room for new VMs. */
import { float, int, item } from '../base/array.ts';
import { Random } from '../base/random.ts';
import { subsets } from '../base/sort.ts';
import { type Cluster, destinationsOf } from '../cluster/cluster.ts';
import { Checker, Room } from '../cluster/constraints.ts';
import type { ShapeSlots } from './slots.ts';

export type RoomStep = { readonly vm: number; readonly from: number; readonly to: number };

export type Made = {
  readonly steps: readonly RoomStep[];
  /** New VMs that fit after the steps. */
  readonly after: number;
  /** No plan has fewer moves, or none makes room for all. */
  readonly proven: boolean;
};

/** Legality checks, and moves of a plan, at most. */
export type RoomLimits = { readonly work: number; readonly moves: number };

/** The work of one attempt for one slot, and of one improvement. */
const MOST_OF_ONE = 40_000;
/** The share of the work that the search for a proof gets. */
const EXACT_SHARE = 0.4;
/** Attempts in a row that improve nothing, after which the search ends. */
const PATIENCE = 400;
const SEED = 20_260_101;

/** A number of further slots on a host, and the fewest VMs that must leave it for them. */
type Gain = { readonly host: number; readonly more: number; readonly least: number };

/**
 * Finds few moves after which a number of new VMs fit. Room is asked of hosts; a host that has too little for what is asked of it, or for
 * what has arrived, must give VMs away, which may in turn ask too much of where they go. First one slot at a time, then all together
 * from the fewest moves on, then parts of the best plan again. A VM moves at most once.
 */
export class RoomMaker {
  readonly #cluster: Cluster;
  readonly #slots: ShapeSlots;
  readonly #limits: RoomLimits;
  readonly #flow: Flow;
  /** A look at one move sums over the hosts. */
  readonly #costOfOne: number;
  #work = 0;

  constructor(cluster: Cluster, slots: ShapeSlots, limits: RoomLimits) {
    this.#cluster = cluster;
    this.#slots = slots;
    this.#limits = limits;
    this.#costOfOne = 1 + cluster.H / 8;
    this.#flow = new Flow(cluster, slots);
  }

  run(wanted: number, now: number): Made {
    const more = wanted - now;
    let best = this.#oneByOne(more);
    const exact = this.#together(more, best);
    if (exact.steps !== null) best = exact.steps;
    if (!exact.proven && best !== null) best = this.#improved(best, more);
    const steps = best ?? this.#part(more);
    const ordered = this.#inOrder(steps) ?? [];
    return { steps: ordered, after: this.#after(ordered), proven: exact.proven };
  }

  /** As many slots as can be made one by one, where not all of them can. */
  #part(more: number): readonly RoomStep[] {
    let steps: readonly RoomStep[] = [];
    for (let slots = 1; slots < more; slots++) {
      const found = this.#oneByOne(slots);
      if (found === null) break;
      steps = found;
    }
    return steps;
  }

  #after(steps: readonly RoomStep[]): number {
    const room = new Room(this.#cluster, { departuresFree: true });
    for (const { vm, from, to } of steps) room.move(vm, from, to);
    return this.#slots.all(room);
  }

  /** Makes one slot after the other, each with the fewest moves. Where that fails, in another order of hosts. */
  #oneByOne(more: number): readonly RoomStep[] | null {
    const random = new Random(SEED);
    for (let attempt = 0; attempt < 8; attempt++) {
      this.#flow.reset();
      let steps: readonly RoomStep[] | null = [];
      for (let slot = 0; slot < more && steps !== null; slot++) {
        const left: number = this.#limits.moves - steps.length;
        steps = this.#oneMore(left, attempt === 0 ? null : random);
      }
      if (steps !== null) return steps;
      if (this.#work >= this.#limits.work / 2) break;
    }
    return null;
  }

  /** All steps with one more slot; null: none was found. */
  #oneMore(most: number, random: Random | null): readonly RoomStep[] | null {
    const gains = this.#flow.gains(1);
    if (random !== null) shuffle(gains, random);
    const deepest = Math.min(most, MOST_DEPTH);
    for (let depth = 1; depth <= deepest; depth++)
      for (const gain of gains) {
        if (gain.least > depth) continue;
        const found = this.#search([gain], depth, MOST_OF_ONE / 4);
        if (found !== null) return found;
      }
    return null;
  }

  /** The fewest moves for all slots at once; `proven` when every smaller number was tried. */
  #together(more: number, known: readonly RoomStep[] | null): { steps: readonly RoomStep[] | null; proven: boolean } {
    this.#flow.reset();
    const gains = this.#flow.gains(more + MOST_GIVEN_UP);
    const spare = this.#flow.spare;
    // With more slots of today, a plan could give up more of them than are tried.
    const whole = this.#flow.today <= MOST_GIVEN_UP;
    const limit = this.#work + this.#limits.work * EXACT_SHARE;
    const most = Math.min(known === null ? this.#cluster.V : known.length - 1, this.#limits.moves);
    for (let depth = 1; depth <= most; depth++)
      for (const chosen of exchanges({ gains, spare, more, moves: depth, may: this.#until(limit) })) {
        if (this.#work >= limit) return { steps: null, proven: false };
        const before = this.#work;
        const found = this.#search(chosen, depth, limit - before);
        if (found !== null) return { steps: found, proven: whole || depth <= more + MOST_GIVEN_UP + 1 };
        if (this.#work >= limit) return { steps: null, proven: false };
        this.#flow.reset();
      }
    return { steps: null, proven: whole };
  }

  /** Takes parts of the plan back and looks for fewer moves in their place. */
  #improved(known: readonly RoomStep[], more: number): readonly RoomStep[] {
    const random = new Random(SEED);
    let best = known;
    let misses = 0;
    while (misses < PATIENCE && this.#work < this.#limits.work && best.length > 1) {
      this.#work += this.#cluster.H;
      const part = partOf(best, random);
      const kept = best.filter((step) => !part.has(step));
      const found = this.#again(kept, { fewer: part.size - 1, more, random });
      if (found === null) misses += 1;
      else {
        best = found;
        misses = 0;
      }
    }
    return best;
  }

  /** Completes a part of a plan with at most the given number of moves. */
  #again(
    kept: readonly RoomStep[],
    { fewer, more, random }: { readonly fewer: number; readonly more: number; readonly random: Random },
  ): readonly RoomStep[] | null {
    this.#flow.reset();
    for (const step of kept) this.#flow.apply(step.vm, step.to);
    this.#flow.askWhatIs();
    const missing = more - this.#flow.asked;
    if (missing <= 0) return this.#search([], fewer, MOST_OF_ONE);
    const gains = this.#flow.gains(Math.min(missing, 2));
    shuffle(gains, random);
    let tried = 0;
    const may = this.#until(Math.min(this.#limits.work, this.#work + MOST_OF_ONE));
    for (const chosen of choices({ gains, more: missing, moves: fewer, may })) {
      if (tried++ > 12 || this.#work >= this.#limits.work) break;
      const found = this.#search(chosen, fewer, MOST_OF_ONE / 4);
      if (found !== null) return found;
    }
    return null;
  }

  /** Counts one unit of work with each call; false from a limit on. */
  #until(limit: number): () => boolean {
    return () => ++this.#work < limit;
  }

  /** The steps so far and at most `depth` more, after which each host has what is asked of it; the state is as before when null. */
  #search(gains: readonly Gain[], depth: number, work: number): readonly RoomStep[] | null {
    const flow = this.#flow;
    this.#work += this.#cluster.H;
    for (const { host, more } of gains) flow.ask(host, more);
    const limit = this.#work + work;
    let found: readonly RoomStep[] | null = null;
    const next = (left: number): boolean => {
      if (flow.leastMoves > left || this.#work >= limit) return false;
      const host = flow.neediest();
      if (host < 0) {
        found = this.#inOrder(flow.steps);
        return found !== null;
      }
      for (const { vm, to } of this.#candidates(host, left)) {
        const before = flow.apply(vm, to);
        if (next(left - 1)) return true;
        flow.undo(vm, to, before);
        if (this.#work >= limit) return false;
      }
      return false;
    };
    if (next(depth)) return found;
    for (const { host, more } of gains) flow.ask(host, -more);
    return null;
  }

  /** VMs that may leave the host, and where they go: those first that leave least undone, into the tightest gap. */
  #candidates(host: number, left: number): readonly { readonly vm: number; readonly to: number }[] {
    const flow = this.#flow;
    const found: { vm: number; to: number; least: number; gap: number }[] = [];
    for (const vm of flow.mayLeave(host))
      for (const to of flow.destinations) {
        this.#work += this.#costOfOne;
        if (to === host || !flow.lawful(vm, to)) continue;
        const { least, gap } = flow.preview(vm, to);
        if (least <= left - 1) found.push({ vm, to, least, gap });
      }
    return found.sort((a, b) => a.least - b.least || a.gap - b.gap || a.vm - b.vm || a.to - b.to);
  }

  /** The steps in an order in which each is legal once the ones before it have ended; null: none was found. */
  #inOrder(steps: readonly RoomStep[]): readonly RoomStep[] | null {
    const place = Int32Array.from(this.#cluster.vmHost);
    const room = new Room(this.#cluster, { departuresFree: true });
    const checker = new Checker(place, room);
    const ordered: RoomStep[] = [];
    let waiting = [...steps];
    while (waiting.length > 0) {
      this.#work += waiting.length;
      const step = waiting.find(({ vm, to }) => checker.refusal(vm, to) === 0);
      if (step === undefined) return null;
      room.move(step.vm, step.from, step.to);
      place[step.vm] = step.to;
      ordered.push(step);
      waiting = waiting.filter((one) => one !== step);
    }
    return ordered;
  }
}

/** Moves for one slot, at most. */
const MOST_DEPTH = 8;

function shuffle<T extends object>(items: T[], random: Random): void {
  for (let i = items.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [items[i], items[j]] = [item(items, j), item(items, i)];
  }
}

/** Two to six steps that have to do with each other. */
function partOf(steps: readonly RoomStep[], random: Random): ReadonlySet<RoomStep> {
  const size = Math.min(steps.length, 2 + random.below(5));
  const part = new Set([item(steps, random.below(steps.length))]);
  const hosts = new Set([...part].flatMap(({ from, to }) => [from, to]));
  while (part.size < size) {
    const near = steps.filter((step) => !part.has(step) && (hosts.has(step.from) || hosts.has(step.to)));
    const from = near.length === 0 || random.below(4) === 0 ? steps.filter((step) => !part.has(step)) : near;
    const step = item(from, random.below(from.length));
    part.add(step);
    hosts.add(step.from);
    hosts.add(step.to);
  }
  return part;
}

/** Slots of today that may be given up for others. */
const MOST_GIVEN_UP = 2;

/**
 * The ways to get the wanted slots from hosts, for which the given moves may be enough: at most one gain of each host, and at most two
 * slots of today that are given up.
 */
function* exchanges(asked: Asked & { readonly spare: readonly number[] }): Generator<readonly Gain[]> {
  const { spare, more } = asked;
  yield* choices(asked);
  for (let given = 1; given <= Math.min(MOST_GIVEN_UP, spare.length); given++)
    for (const chosen of choices({ ...asked, more: more + given })) {
      const others = spare.filter((host) => chosen.every((gain) => gain.host !== host));
      for (const hosts of subsets(others, given))
        yield [...chosen, ...hosts.map((host) => ({ host, more: -1, least: 0 }))];
    }
}

/** The slots to get and the moves for them, at most. `may`: false once no more work may be done. */
type Asked = {
  readonly gains: readonly Gain[];
  readonly more: number;
  readonly moves: number;
  readonly may: () => boolean;
};

/** The ways to get the wanted slots from hosts, at most one gain of each, for which the given moves may be enough. */
function* choices({ gains, more, moves, may }: Asked): Generator<readonly Gain[]> {
  function* from(i: number, missing: number, left: number): Generator<readonly Gain[]> {
    if (missing === 0) {
      yield [];
      return;
    }
    for (let at = i; at < gains.length && may(); at++) {
      const gain = item(gains, at);
      if (gain.more > missing || gain.least > left) continue;
      let next = at + 1;
      while (gains[next]?.host === gain.host) next += 1;
      for (const rest of from(next, missing - gain.more, left - gain.least)) yield [gain, ...rest];
    }
  }
  yield* from(0, more, moves);
}

/** The amounts on each host while VMs move, with what is asked of it. */
class Flow {
  readonly #cluster: Cluster;
  readonly #slots: ShapeSlots;
  readonly #checker: Checker;
  readonly #place: Int32Array;
  readonly #room: Room;
  readonly destinations: readonly number[];
  /** By host: the VMs that may leave it, the largest first. */
  readonly #movable: readonly (readonly number[])[];
  /** Place of each VM in that list. */
  readonly #rank: Int32Array;
  /** Rank of the last VM that left each host: later ones have a higher rank, so that no set of VMs is tried in two orders. */
  readonly #last: Int32Array;
  /** Slots that are asked of each host. */
  readonly #wanted: Int32Array;
  /** The fewest VMs that must still leave each host; infinite when no VMs are enough. */
  readonly #needs: Float64Array;
  readonly steps: RoomStep[] = [];
  /** Slots that are asked for beyond those that there are at the start. */
  asked = 0;

  constructor(cluster: Cluster, slots: ShapeSlots) {
    const { H, V, R } = cluster;
    this.#cluster = cluster;
    this.#slots = slots;
    this.#place = Int32Array.from(cluster.vmHost);
    this.#room = new Room(cluster, { departuresFree: true });
    this.#checker = new Checker(this.#place, this.#room);
    this.destinations = [...destinationsOf(cluster)];
    const size = (vm: number): number => {
      let most = 0;
      for (let r = 0; r < R; r++)
        if (float(slots.amounts, r) > 0)
          most = Math.max(most, float(cluster.demand, vm * R + r) / float(slots.amounts, r));
      return most;
    };
    const movable = Array.from({ length: V }, (_, vm) => vm).filter(
      (vm) => int(cluster.vmRefusal, vm) === 0 && int(cluster.evacuationOnly, vm) === 0,
    );
    const by = Map.groupBy(movable, (vm) => int(cluster.vmHost, vm));
    this.#movable = Array.from({ length: H }, (_, h) =>
      (by.get(h) ?? []).sort(
        (a, b) => size(b) - size(a) || float(cluster.copyGib, a) - float(cluster.copyGib, b) || a - b,
      ),
    );
    this.#rank = new Int32Array(V).fill(-1);
    for (const vms of this.#movable) for (const [rank, vm] of vms.entries()) this.#rank[vm] = rank;
    this.#last = new Int32Array(H).fill(-1);
    this.#wanted = new Int32Array(H);
    this.#needs = new Float64Array(H);
    this.reset();
  }

  /** Takes all back: each host has the VMs that it has, and is asked for the slots that it has. */
  reset(): void {
    for (const { vm, from, to } of this.steps.toReversed()) {
      this.#room.undo(vm, from, to);
      this.#place[vm] = from;
    }
    this.steps.length = 0;
    this.#last.fill(-1);
    this.asked = 0;
    for (let h = 0; h < this.#cluster.H; h++) {
      this.#wanted[h] = this.#slots.on(h, this.#room);
      this.#needs[h] = 0;
    }
  }

  /** Asks of each host for the slots that it has now. */
  askWhatIs(): void {
    for (let h = 0; h < this.#cluster.H; h++) {
      const before = int(this.#wanted, h);
      this.#wanted[h] = this.#slots.on(h, this.#room);
      this.asked += int(this.#wanted, h) - before;
      this.#needs[h] = this.#least(h);
    }
  }

  ask(host: number, more: number): void {
    this.#wanted[host] = int(this.#wanted, host) + more;
    this.asked += more;
    this.#needs[host] = this.#least(host);
  }

  /** Further slots of each host up to a number of them, those for which the fewest VMs must leave first. */
  gains(most: number): Gain[] {
    const found: Gain[] = [];
    for (let host = 0; host < this.#cluster.H; host++) {
      const limit = Math.min(most, this.#slots.most(host) - int(this.#wanted, host));
      for (let more = 1; more <= limit; more++) {
        this.#wanted[host] = int(this.#wanted, host) + more;
        const least = this.#least(host);
        this.#wanted[host] = int(this.#wanted, host) - more;
        if (!Number.isFinite(least)) break;
        found.push({ host, more, least });
      }
    }
    const first = new Map<number, number>();
    for (const { host, least } of found) if (!first.has(host)) first.set(host, least);
    return found.sort(
      (a, b) => (first.get(a.host) ?? 0) - (first.get(b.host) ?? 0) || a.host - b.host || a.more - b.more,
    );
  }

  /** Slots that are asked of the hosts, and the hosts that have some: one of theirs could be given up. */
  get today(): number {
    return this.#wanted.reduce((sum, slots) => sum + slots, 0);
  }

  get spare(): readonly number[] {
    return [...this.#wanted.keys()].filter((host) => int(this.#wanted, host) > 0);
  }

  get leastMoves(): number {
    let sum = 0;
    for (const need of this.#needs) sum += need;
    return sum;
  }

  /** The host that most VMs must leave; -1: none. */
  neediest(): number {
    let best = -1;
    for (let h = 0; h < this.#cluster.H; h++)
      if (float(this.#needs, h) > (best < 0 ? 0 : float(this.#needs, best))) best = h;
    return best;
  }

  /** VMs that may leave a host, one of those that are alike. */
  mayLeave(host: number): readonly number[] {
    const { R, demand, vmKey, vmGroups } = this.#cluster;
    const seen = new Set<string>();
    return item(this.#movable, host).filter((vm) => {
      if (int(this.#rank, vm) <= int(this.#last, host) || this.#place[vm] !== host) return false;
      if ((vmGroups[vm] ?? []).length > 0) return true;
      const key = `${int(vmKey, vm)} ${demand.subarray(vm * R, (vm + 1) * R).join()}`;
      if (seen.has(key)) return false;
      seen.add(key);
      return true;
    });
  }

  /** Whether the host may ever take the VM: by its own rules, and by members of an anti-affinity group that stay on it. */
  lawful(vm: number, to: number): boolean {
    const { groups, vmGroups, vmHost } = this.#cluster;
    if (this.#checker.rule(vm, to) !== 0) return false;
    return (vmGroups[vm] ?? []).every((g) => {
      const group = item(groups, g);
      if (!group.strict || group.affine) return true;
      const stay = group.members.filter(
        (other) => this.#place[other] === to && (int(this.#rank, other) < 0 || int(vmHost, other) !== to),
      );
      return stay.length < group.max;
    });
  }

  /** The fewest moves left after a move, and how little room it leaves on its destination. */
  preview(vm: number, to: number): { readonly least: number; readonly gap: number } {
    const from = int(this.#place, vm);
    const least = this.leastMoves - float(this.#needs, from) - float(this.#needs, to);
    const last = int(this.#last, from);
    this.#shift(vm, from, to);
    const after = least + this.#least(from) + this.#least(to);
    const gap = this.#gap(to);
    this.#shift(vm, to, from);
    this.#last[from] = last;
    return { least: after, gap };
  }

  /** @returns the rank of the last VM that left before */
  apply(vm: number, to: number): number {
    const from = int(this.#place, vm);
    const last = int(this.#last, from);
    this.#shift(vm, from, to);
    this.#needs[from] = this.#least(from);
    this.#needs[to] = this.#least(to);
    this.steps.push({ vm, from, to });
    return last;
  }

  undo(vm: number, to: number, last: number): void {
    const from = int(this.#cluster.vmHost, vm);
    this.#shift(vm, to, from);
    this.#last[from] = last;
    this.#needs[from] = this.#least(from);
    this.#needs[to] = this.#least(to);
    this.steps.pop();
  }

  #shift(vm: number, from: number, to: number): void {
    if (from === int(this.#cluster.vmHost, vm)) {
      this.#room.move(vm, from, to);
      this.#last[from] = int(this.#rank, vm);
    } else this.#room.undo(vm, to, from);
    this.#place[vm] = to;
  }

  #gap(host: number): number {
    const { R } = this.#cluster;
    let gap = 0;
    for (let r = 0; r < R; r++) {
      const amount = float(this.#slots.amounts, r);
      if (amount > 0) gap += Math.max(0, float(this.#room.free, host * R + r) / amount - int(this.#wanted, host));
    }
    return gap;
  }

  /** The fewest VMs that must leave the host for what is asked of it; infinite when all are not enough. */
  #least(host: number): number {
    const { R, demand } = this.#cluster;
    let most = 0;
    for (let r = 0; r < R; r++) {
      let missing = int(this.#wanted, host) * float(this.#slots.amounts, r) - float(this.#room.free, host * R + r);
      if (missing <= 0) continue;
      const own = float(this.#cluster.free, host * R + r);
      // More was claimed on it than it has: that is no matter of the new VMs.
      if (int(this.#wanted, host) === 0 && own < 0 && missing <= -own) continue;
      const amounts: number[] = [];
      for (const vm of item(this.#movable, host))
        if (int(this.#rank, vm) > int(this.#last, host) && this.#place[vm] === host)
          amounts.push(float(demand, vm * R + r));
      amounts.sort((a, b) => b - a);
      let count = 0;
      while (missing > 0 && count < amounts.length) missing -= item(amounts, count++);
      if (missing > 0) return Number.POSITIVE_INFINITY;
      most = Math.max(most, count);
    }
    return most;
  }
}
