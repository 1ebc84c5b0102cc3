/** Something that happens at a moment; of two at the same moment the one scheduled first goes first. */
export interface Timed {
  atMs: number;
  readonly seq: number;
}

/** The events still to come, earliest first. */
export class Agenda<T extends Timed> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    const items = this.#items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const up = (at - 1) >> 1;
      const parent = items[up];
      if (parent === undefined || !before(item, parent)) break;
      items[at] = parent;
      at = up;
    }
    items[at] = item;
  }

  pop(): T | undefined {
    const items = this.#items;
    const first = items[0];
    const last = items.pop();
    if (first === undefined || last === undefined || items.length === 0) return first;
    let at = 0;
    for (;;) {
      const left = items[2 * at + 1];
      const right = items[2 * at + 2];
      if (left === undefined) break;
      const [child, index] = right !== undefined && before(right, left) ? [right, 2 * at + 2] : [left, 2 * at + 1];
      if (!before(child, last)) break;
      items[at] = child;
      at = index;
    }
    items[at] = last;
    return first;
  }

  /** Moves every moment by one order-keeping rule. */
  retime(rule: (atMs: number) => number): void {
    for (const item of this.#items) item.atMs = rule(item.atMs);
  }
}

function before(a: Timed, b: Timed): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.seq < b.seq);
}
