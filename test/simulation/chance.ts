/** Chance of the simulation: every part draws from a source of its own, so that one part's draws never move another's. */

/** FNV-1a, 32 bits. */
function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h >>> 0;
}

export class Chance {
  readonly #seed: string;
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  constructor(seed: string) {
    this.#seed = seed;
    this.#a = hash(`${seed}/a`);
    this.#b = hash(`${seed}/b`);
    this.#c = hash(`${seed}/c`);
    this.#d = 1;
    for (let i = 0; i < 12; i++) this.next();
  }

  /** A source of its own for a part. */
  fork(part: string): Chance {
    return new Chance(`${this.#seed}/${part}`);
  }

  /** Uniform in [0, 1): sfc32. */
  next(): number {
    const t = (((this.#a + this.#b) | 0) + this.#d) | 0;
    this.#d = (this.#d + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + t;
    this.#c |= 0;
    return (t >>> 0) / 0x1_0000_0000;
  }

  flip(probability: number): boolean {
    return this.next() < probability;
  }

  /** Uniform in [low, high). */
  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  /** An integer in [low, high]. */
  int(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  /** Positive, with this mean, at most 20 times the mean. */
  exponential(mean: number): number {
    return Math.min(20, -Math.log(1 - this.next())) * mean;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.next() * items.length)];
    if (item === undefined) throw new RangeError('nothing to pick from');
    return item;
  }

  shuffle<T>(items: readonly T[]): T[] {
    const all = [...items];
    for (let i = all.length - 1; i > 0; i--) {
      const j = this.int(0, i);
      [all[i], all[j]] = [all[j] as T, all[i] as T];
    }
    return all;
  }
}
