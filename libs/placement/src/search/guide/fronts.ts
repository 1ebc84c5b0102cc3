import { float, int, item } from '../../base/array.ts';
import type { Room } from '../../cluster/constraints.ts';
import type { Field } from '../problem/field.ts';

const CLOSED = -2;
const FRONT = -3;

/**
 * The front of each class of hosts: the destinations that no other destination beats in every policy. Guides are convex, so an arrival
 * costs no less on a host with higher values. The best destination of a VM is therefore on the front, unless the front refuses the VM.
 */
export class Fronts {
  readonly #field: Field;
  readonly #score: Float64Array;
  readonly #room: Room;
  /** The need of the smallest movable VM, by resource class. */
  readonly #smallest: Float64Array;
  readonly #fronts: number[][];
  /** Front host that dominates each host, FRONT for those on a front, CLOSED for those without room. */
  readonly #dominator: Int32Array;

  /** @param score host values, @param room free amounts: the caller changes both and reports each change. */
  constructor(field: Field, score: Float64Array, room: Room) {
    const { cluster, H, V } = field;
    this.#field = field;
    this.#score = score;
    this.#room = room;
    this.#smallest = new Float64Array(cluster.R).fill(Number.POSITIVE_INFINITY);
    for (let v = 0; v < V; v++)
      if (field.movable[v] === 1)
        for (let r = 0; r < cluster.R; r++)
          this.#smallest[r] = Math.min(float(this.#smallest, r), float(cluster.demand, v * cluster.R + r));
    this.#dominator = new Int32Array(H).fill(CLOSED);
    this.#fronts = Array.from({ length: cluster.classes }, () => []);
    for (const h of field.destinations) if (this.#receives(h)) this.#enter(h);
  }

  of(hostClass: number): readonly number[] {
    return item(this.#fronts, hostClass);
  }

  /** A host became fuller: it may leave the front, and hosts that it dominated may join the front. */
  fill(b: number): void {
    const { cluster, destinations } = this.#field;
    const c = int(cluster.hostClass, b);
    const front = item(this.#fronts, c);
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
      const h = int(destinations, i);
      if (this.#dominator[h] !== b) continue;
      if (open && this.#dominator[b] === FRONT && this.#dominates(b, h)) continue;
      this.#enter(h);
    }
  }

  /** A host became emptier: true when it is on the front now. */
  rise(a: number): boolean {
    if (!this.#receives(a)) return false;
    if (this.#dominator[a] === FRONT) {
      const c = int(this.#field.cluster.hostClass, a);
      const front = item(this.#fronts, c);
      front.splice(front.indexOf(a), 1);
    } else {
      const above = int(this.#dominator, a);
      if (above >= 0 && this.#dominator[above] === FRONT && this.#dominates(above, a)) return false;
    }
    return this.#enter(a);
  }

  /** True for hosts with room for the smallest VM: only these can be on the front. */
  #receives(h: number): boolean {
    const { R } = this.#field.cluster;
    for (let r = 0; r < R; r++) if (float(this.#room.free, h * R + r) < float(this.#smallest, r)) return false;
    return true;
  }

  /** True when host `a` is at most as full as `b` in every policy (ties: the lower index), and no smaller. */
  #dominates(a: number, b: number): boolean {
    const { P, cluster } = this.#field;
    let equal = true;
    for (let p = 0; p < P; p++) {
      const x = float(this.#score, a * P + p);
      const y = float(this.#score, b * P + p);
      if (x > y) return false;
      if (x < y) equal = false;
      if (!cluster.alike && float(cluster.size, a * P + p) < float(cluster.size, b * P + p)) return false;
    }
    return !equal || a < b;
  }

  /** Puts an open host on its class's front, or under the host that dominates it. */
  #enter(h: number): boolean {
    const front = item(this.#fronts, int(this.#field.cluster.hostClass, h));
    for (let i = 0; i < front.length; i++)
      if (this.#dominates(item(front, i), h)) {
        this.#dominator[h] = item(front, i);
        return false;
      }
    let kept = 0;
    for (let i = 0; i < front.length; i++) {
      const other = item(front, i);
      if (this.#dominates(h, other)) this.#dominator[other] = h;
      else front[kept++] = other;
    }
    front.length = kept;
    front.push(h);
    this.#dominator[h] = FRONT;
    return true;
  }
}
