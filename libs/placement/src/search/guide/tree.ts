import { float, int } from '../../base/array.ts';
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
    return float(this.#keys, host);
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
    return int(this.#winner, 1);
  }

  topKey(): number {
    return float(this.#keys, int(this.#winner, 1));
  }

  #play(node: number): void {
    const winner = this.#winner;
    const left = int(winner, 2 * node);
    const right = int(winner, 2 * node + 1);
    winner[node] = float(this.#keys, left) >= float(this.#keys, right) ? left : right;
  }
}
