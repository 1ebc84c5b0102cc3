/**
 * A tournament over hosts: the host with the largest key, and the key of any host changed, in O(log hosts). Among equal keys the
 * lowest host wins.
 */
export class Tournament {
  readonly #leaves: number;
  readonly #keys: Float64Array;
  /** Winner of each inner node; the root is 1. */
  readonly #winner: Int32Array;

  constructor(size: number) {
    let leaves = 1;
    while (leaves < size) leaves *= 2;
    this.#leaves = leaves;
    this.#keys = new Float64Array(leaves).fill(Number.NEGATIVE_INFINITY);
    this.#winner = new Int32Array(2 * leaves);
    for (let i = 0; i < leaves; i++) this.#winner[leaves + i] = i;
    this.rebuild();
  }

  key(host: number): number {
    return this.#keys[host] as number;
  }

  /** Sets a key without replaying its matches; {@link rebuild} must follow. */
  put(host: number, key: number): void {
    this.#keys[host] = key;
  }

  rebuild(): void {
    for (let node = this.#leaves - 1; node >= 1; node--) this.#play(node);
  }

  set(host: number, key: number): void {
    this.#keys[host] = key;
    for (let node = (this.#leaves + host) >> 1; node >= 1; node >>= 1) this.#play(node);
  }

  top(): number {
    return this.#winner[1] as number;
  }

  topKey(): number {
    return this.#keys[this.#winner[1] as number] as number;
  }

  #play(node: number): void {
    const winner = this.#winner;
    const left = winner[2 * node] as number;
    const right = winner[2 * node + 1] as number;
    winner[node] = (this.#keys[left] as number) >= (this.#keys[right] as number) ? left : right;
  }
}
