import type { Field } from './field.ts';
import type { Walk } from './walk.ts';

/** So many extreme hosts are found at once, and found anew when fewer than that are left. */
const FOUND = 16;
const ENOUGH = 7;

/**
 * The extreme hosts of each policy at one end, best first, while a walk changes hosts. No host that is not listed is
 * beyond the bar, and every listed one is at least on it: after a proposal the extreme among the hosts that it does not
 * touch is the first listed one of these.
 */
export class End {
  readonly #field: Field;
  readonly #score: Float64Array;
  /** 1 for the highest, -1 for the lowest. */
  readonly #sign: 1 | -1;
  readonly #hosts: Int32Array;
  readonly #count: Int32Array;
  readonly #bar: Float64Array;

  constructor(field: Field, score: Float64Array, sign: 1 | -1) {
    this.#field = field;
    this.#score = score;
    this.#sign = sign;
    this.#hosts = new Int32Array(field.P * (FOUND + 1));
    this.#count = new Int32Array(field.P);
    this.#bar = new Float64Array(field.P);
    for (let p = 0; p < field.P; p++) this.#find(p);
  }

  /** The policy's most extreme host; -1 when no host is counted. */
  first(p: number): number {
    return (this.#count[p] as number) === 0 ? -1 : (this.#hosts[p * (FOUND + 1)] as number);
  }

  /** The most extreme value among the hosts that the walk's proposal does not touch; `otherwise` when there is none. */
  untouched(p: number, walk: Walk, otherwise: number): number {
    const at = p * (FOUND + 1);
    const n = this.#count[p] as number;
    const touched = walk.touched;
    const m = walk.touchedCount;
    for (let k = 0; k < n; k++) {
      const h = this.#hosts[at + k] as number;
      let isTouched = false;
      for (let i = 0; i < m; i++) if (touched[i] === h) isTouched = true;
      if (!isTouched) return this.#score[h * this.#field.P + p] as number;
    }
    return otherwise;
  }

  /** To be called before a commit, while the old values stand: takes the touched hosts off the lists. */
  forget(walk: Walk): void {
    const { P, cluster } = this.#field;
    for (let i = 0; i < walk.touchedCount; i++) {
      const h = walk.touched[i] as number;
      if (cluster.counted[h] !== 1) continue;
      for (let p = 0; p < P; p++)
        if (this.#sign * (this.#score[h * P + p] as number) >= (this.#bar[p] as number)) this.#remove(p, h);
    }
  }

  /** To be called after a commit: lists the touched hosts where they belong now. */
  learn(walk: Walk): void {
    const { P, cluster } = this.#field;
    for (let i = 0; i < walk.touchedCount; i++) {
      const h = walk.touched[i] as number;
      if (cluster.counted[h] !== 1) continue;
      for (let p = 0; p < P; p++) {
        const key = this.#sign * (this.#score[h * P + p] as number);
        if (key > (this.#bar[p] as number)) this.#insert(p, h, key);
      }
    }
    for (let p = 0; p < P; p++) if ((this.#count[p] as number) < ENOUGH) this.#find(p);
  }

  #remove(p: number, h: number): void {
    const at = p * (FOUND + 1);
    const n = this.#count[p] as number;
    let k = 0;
    while (k < n && this.#hosts[at + k] !== h) k++;
    if (k === n) return;
    for (; k + 1 < n; k++) this.#hosts[at + k] = this.#hosts[at + k + 1] as number;
    this.#count[p] = n - 1;
  }

  #insert(p: number, h: number, key: number): void {
    const { P } = this.#field;
    const at = p * (FOUND + 1);
    const n = this.#count[p] as number;
    let k = n;
    for (; k > 0; k--) {
      const other = this.#hosts[at + k - 1] as number;
      if (this.#sign * (this.#score[other * P + p] as number) >= key) break;
      this.#hosts[at + k] = other;
    }
    this.#hosts[at + k] = h;
    if (n < FOUND) {
      this.#count[p] = n + 1;
      return;
    }
    // The list is full: what falls off is the bar now.
    const last = this.#hosts[at + FOUND] as number;
    this.#bar[p] = this.#sign * (this.#score[last * P + p] as number);
  }

  #find(p: number): void {
    const { H, P, cluster } = this.#field;
    this.#count[p] = 0;
    this.#bar[p] = Number.NEGATIVE_INFINITY;
    for (let h = 0; h < H; h++) {
      if (cluster.counted[h] !== 1) continue;
      const key = this.#sign * (this.#score[h * P + p] as number);
      if (key > (this.#bar[p] as number)) this.#insert(p, h, key);
    }
  }
}
