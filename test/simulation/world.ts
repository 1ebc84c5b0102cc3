import { type Cancel, type Clock, sleepWith } from '@kronos/clock';
import type { Chance } from './chance.ts';

/** 2026-01-05T00:00:00Z, a Monday: when every simulation begins. */
export const EPOCH_MS = Date.UTC(2026, 0, 5);

interface Entry {
  readonly at: number;
  /** Orders what is due at the same time: drawn. */
  readonly tie: number;
  readonly serial: number;
  act: (() => void) | null;
}

const before = (a: Entry, b: Entry): boolean =>
  a.at !== b.at ? a.at < b.at : a.tie !== b.tie ? a.tie < b.tie : a.serial < b.serial;

/** True time, and everything that is to happen. One event at a time; what it sets off at once is over before the next. */
export class World {
  /** ms since the start of the simulation */
  now = 0;
  events = 0;
  readonly #heap: Entry[] = [];
  readonly #chance: Chance;
  #serial = 0;
  #failure: unknown = null;

  constructor(chance: Chance) {
    this.#chance = chance.fork('order');
  }

  /** Wall clock without error. */
  get wall(): number {
    return Math.floor(EPOCH_MS + this.now);
  }

  at(time: number, act: () => void): Cancel {
    const entry: Entry = {
      at: Math.max(time, this.now),
      tie: this.#chance.next(),
      serial: this.#serial++,
      act,
    };
    this.#push(entry);
    return () => {
      entry.act = null;
    };
  }

  after(ms: number, act: () => void): Cancel {
    return this.at(this.now + Math.max(0, ms), act);
  }

  /** The simulation itself is broken, or a checker wants it to end: `run` throws it. */
  fail(error: unknown): void {
    this.#failure ??= error;
  }

  /** Runs until a time, or until `over` holds. */
  async run(until: number, over: () => boolean = () => false): Promise<void> {
    await quiet();
    for (;;) {
      if (this.#failure !== null) throw this.#failure;
      const [next] = this.#heap;
      if (next === undefined || next.at > until || over()) break;
      this.#pop();
      if (next.act === null) continue;
      this.now = next.at;
      this.events++;
      next.act();
      await quiet();
      if (this.events % TURN_EVENTS === 0) await turn();
    }
    if (!over()) this.now = Math.max(this.now, until);
  }

  /** Runs until something has ended. Throws what it throws, and when it has not ended after `ms`. */
  async runThrough(what: string, ended: Promise<unknown>, ms: number): Promise<void> {
    let over = false;
    ended.then(
      () => {
        over = true;
      },
      (error: unknown) => this.fail(error),
    );
    await this.run(this.now + ms, () => over);
    if (!over) throw new Error(`${what} did not end`);
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let i = heap.length;
    heap.push(entry);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      const above = heap[parent] as Entry;
      if (!before(entry, above)) break;
      heap[i] = above;
      i = parent;
    }
    heap[i] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop() as Entry;
    if (heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      const right = child + 1;
      if (right < heap.length && before(heap[right] as Entry, heap[child] as Entry)) child = right;
      if (!before(heap[child] as Entry, last)) break;
      heap[i] = heap[child] as Entry;
      i = child;
    }
    heap[i] = last;
  }
}

/** Events after which Node's event loop has a turn: for signals, and for rejections that nobody handles. */
const TURN_EVENTS = 1000;

/**
 * Resolves when every promise that can settle has settled: a tick comes when no such promise is left. What other ticks of that
 * moment settle comes before the second one. An immediate would do the same, at the cost of a turn of the event loop for each
 * event, which is more than most events take.
 */
const quiet = (): Promise<void> => new Promise((resolve) => process.nextTick(process.nextTick, resolve));
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The server's clock: right by definition. */
export function trueClock(world: World): Clock {
  const after: Clock['after'] = (ms, act) => world.after(ms, act);
  return {
    read: () => ({ mono: world.now, wall: world.wall }),
    now: () => world.wall,
    monotonic: () => world.now,
    after,
    every: repeat(after),
    soon: (act) => world.after(0, act),
    sleep: sleepWith(after),
  };
}

const repeat =
  (after: Clock['after']): Clock['every'] =>
  (ms, act) => {
    let cancel: Cancel = () => undefined;
    let over = false;
    const again = (): void => {
      cancel = after(ms, () => {
        again();
        act();
      });
      if (over) cancel();
    };
    again();
    return () => {
      over = true;
      cancel();
    };
  };

/**
 * A process: it can be stopped for a while (what should have happened meanwhile happens when it goes on), and it can be
 * killed (nothing of it ever runs again). It has a wall clock of its own, which may be wrong, and late timers.
 */
export class Process {
  readonly name: string;
  readonly clock: Clock;
  readonly random: () => number;
  alive = true;
  /** How far its wall clock is ahead, ms. */
  skewMs = 0;
  readonly #world: World;
  readonly #lateness: Chance;
  readonly #whenKilled: (() => void)[] = [];
  #held: (() => void)[] | null = null;

  constructor(world: World, name: string, chance: Chance) {
    this.#world = world;
    this.name = name;
    const own = chance.fork(name);
    this.#lateness = own.fork('lateness');
    const random = own.fork('random');
    this.random = () => random.next();
    const after: Clock['after'] = (ms, act) =>
      world.after(Math.max(1, Math.min(ms, 2 ** 31 - 1)) + this.#late(), () => this.enter(act));
    this.clock = {
      read: () => ({ mono: world.now, wall: this.wall }),
      now: () => this.wall,
      monotonic: () => world.now,
      after,
      every: repeat(after),
      soon: (act) => world.after(0, () => this.enter(act)),
      sleep: sleepWith(after),
    };
  }

  get wall(): number {
    return this.#world.wall + Math.floor(this.skewMs);
  }

  #late(): number {
    return this.#lateness.flip(0.02) ? this.#lateness.exponential(20) : this.#lateness.next();
  }

  /** Runs something in this process: now, when it goes on, or never. */
  enter(act: () => void): void {
    if (!this.alive) return;
    if (this.#held !== null) this.#held.push(act);
    else act();
  }

  get paused(): boolean {
    return this.#held !== null;
  }

  pause(): void {
    this.#held ??= [];
  }

  /** Delivers the held messages in their order: no connection changes the order of its messages. */
  resume(): void {
    const held = this.#held ?? [];
    this.#held = null;
    this.#catchUp(held);
  }

  #catchUp(held: readonly (() => void)[]): void {
    const [next, ...later] = held;
    if (next === undefined) return;
    this.#world.after(0, () => {
      if (!this.alive) return;
      if (this.#held !== null) {
        this.#held.unshift(...held);
        return;
      }
      next();
      this.#catchUp(later);
    });
  }

  onKilled(act: () => void): void {
    this.#whenKilled.push(act);
  }

  kill(): void {
    if (!this.alive) return;
    this.alive = false;
    this.#held = null;
    for (const act of this.#whenKilled) act();
  }
}
