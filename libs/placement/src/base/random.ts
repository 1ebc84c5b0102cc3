/** A seeded generator (xorshift32 over integers): the search's only source of chance, the same on every machine. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = (seed | 0) === 0 ? 0x9e3779b9 | 0 : seed | 0;
  }

  /** A whole number in [0, below). */
  below(below: number): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return Math.floor(((x >>> 0) / 4294967296) * below);
  }

  /** A number in [0, 1). */
  unit(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return (x >>> 0) / 4294967296;
  }
}
