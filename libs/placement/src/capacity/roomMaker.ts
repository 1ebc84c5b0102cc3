/** Moves that make room for new VMs. */
import { item } from '../base/array.ts';
import { Random } from '../base/random.ts';
import { subsets } from '../base/sort.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { Checker, Room } from '../cluster/constraints.ts';
import { Flow, type Gain, type RoomStep } from './flow.ts';
import type { ShapeSlots } from './slots.ts';

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
/** Moves for one slot, at most. */
const MOST_DEPTH = 8;
/** Slots of today that may be given up for others. */
const MOST_GIVEN_UP = 2;

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
  /** Judging one move sums over the hosts. */
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
