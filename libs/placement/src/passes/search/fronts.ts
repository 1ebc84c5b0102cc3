import type { Room } from '../../constraints.ts';
import type { Field } from './field.ts';

const CLOSED = -2;
const FRONT = -3;

/**
 * Of each class of hosts the front: the destinations that no other one beats in every policy. As guides are convex, an
 * arrival costs no less where it meets higher values: the best destination of a VM is on the front, unless it refuses it.
 */
export class Fronts {
  readonly #field: Field;
  readonly #score: Float64Array;
  readonly #room: Room;
  /** What the smallest movable VM needs of each resource class. */
  readonly #smallest: Float64Array;
  readonly #fronts: number[][];
  /** Front host that dominates each host, FRONT for those on a front, CLOSED for those without room. */
  readonly #dominator: Int32Array;

  /** @param score host values, and @param room what is free: the caller changes them and says so. */
  constructor(field: Field, score: Float64Array, room: Room) {
    const { cluster, H, V } = field;
    this.#field = field;
    this.#score = score;
    this.#room = room;
    this.#smallest = new Float64Array(cluster.R).fill(Number.POSITIVE_INFINITY);
    for (let v = 0; v < V; v++)
      if (field.movable[v] === 1)
        for (let r = 0; r < cluster.R; r++)
          this.#smallest[r] = Math.min(this.#smallest[r] as number, cluster.demand[v * cluster.R + r] as number);
    this.#dominator = new Int32Array(H).fill(CLOSED);
    this.#fronts = Array.from({ length: cluster.classes }, () => []);
    for (const h of field.destinations) if (this.#receives(h)) this.#enter(h);
  }

  of(hostClass: number): readonly number[] {
    return this.#fronts[hostClass] as number[];
  }

  /** A host has got fuller: it may fall off the front, and those that it dominated may rise. */
  fill(b: number): void {
    const { cluster, destinations } = this.#field;
    const c = cluster.hostClass[b] as number;
    const front = this.#fronts[c] as number[];
    const at = front.indexOf(b);
    if (at < 0) {
      if (!this.#receives(b)) this.#dominator[b] = CLOSED;
      return;
    }
    front.splice(at, 1);
    const open = this.#receives(b);
    this.#dominator[b] = CLOSED;
    if (open) this.#enter(b);
    for (let i = 0; i < destinations.length; i++) {
      const h = destinations[i] as number;
      if (this.#dominator[h] !== b) continue;
      if (open && this.#dominator[b] === FRONT && this.#dominates(b, h)) continue;
      this.#enter(h);
    }
  }

  /** A host has got emptier: true when it is on the front now. */
  rise(a: number): boolean {
    if (!this.#receives(a)) return false;
    if (this.#dominator[a] === FRONT) {
      const c = this.#field.cluster.hostClass[a] as number;
      const front = this.#fronts[c] as number[];
      front.splice(front.indexOf(a), 1);
    } else {
      const above = this.#dominator[a] as number;
      if (above >= 0 && this.#dominator[above] === FRONT && this.#dominates(above, a)) return false;
    }
    return this.#enter(a);
  }

  /** True for hosts with room for the smallest VM: only these can be on the front. */
  #receives(h: number): boolean {
    const { R } = this.#field.cluster;
    for (let r = 0; r < R; r++)
      if ((this.#room.free[h * R + r] as number) < (this.#smallest[r] as number)) return false;
    return true;
  }

  /** True when host `a` is at most as full as `b` in every policy (ties: the lower index), and no smaller. */
  #dominates(a: number, b: number): boolean {
    const { P, cluster } = this.#field;
    let equal = true;
    for (let p = 0; p < P; p++) {
      const x = this.#score[a * P + p] as number;
      const y = this.#score[b * P + p] as number;
      if (x > y) return false;
      if (x < y) equal = false;
      if (!cluster.alike && (cluster.size[a * P + p] as number) < (cluster.size[b * P + p] as number)) return false;
    }
    return !equal || a < b;
  }

  /** Puts an open host on its class's front, or under the host that dominates it. */
  #enter(h: number): boolean {
    const front = this.#fronts[this.#field.cluster.hostClass[h] as number] as number[];
    for (let i = 0; i < front.length; i++)
      if (this.#dominates(front[i] as number, h)) {
        this.#dominator[h] = front[i] as number;
        return false;
      }
    let kept = 0;
    for (let i = 0; i < front.length; i++) {
      const other = front[i] as number;
      if (this.#dominates(h, other)) this.#dominator[other] = h;
      else front[kept++] = other;
    }
    front.length = kept;
    front.push(h);
    this.#dominator[h] = FRONT;
    return true;
  }
}
