import type { SnapshotTaken } from '@kronos/contracts';
import { asksForPlan } from '@kronos/cycle';
import type { Delivered } from '@kronos/eventlog';

/** Whether a person waits for an answer to the snapshot. */
export const isRequest = (delivered: Delivered<SnapshotTaken>): boolean =>
  delivered.problem === undefined && asksForPlan(delivered.message.data);

/** The snapshots that wait for a decision: of each aggregate the newest, and all requests for plans, since each has an answer. */
export class Undecided {
  readonly #newest = new Map<string, Delivered<SnapshotTaken>>();
  readonly #requests = new Map<string, Delivered<SnapshotTaken>[]>();
  /** The requests that were taken and are not settled yet, with their aggregates. */
  readonly #unsettled = new Map<Delivered<SnapshotTaken>, string>();

  put(aggregate: string, delivered: Delivered<SnapshotTaken>): void {
    if (isRequest(delivered)) this.#requests.set(aggregate, [...(this.#requests.get(aggregate) ?? []), delivered]);
    else this.#newest.set(aggregate, delivered);
  }

  /** Whether the request waits, or was taken and is not settled. */
  has(aggregate: string, { sequence }: Delivered<SnapshotTaken>): boolean {
    const known = [...(this.#requests.get(aggregate) ?? []), ...this.#unsettled.keys()];
    return known.some((one) => one.sequence === sequence);
  }

  /** Removes the one to decide next; undefined: none waits. */
  take(aggregate: string): Delivered<SnapshotTaken> | undefined {
    const request = this.#requests.get(aggregate)?.shift();
    if (request !== undefined) {
      this.#unsettled.set(request, aggregate);
      return request;
    }
    const newest = this.#newest.get(aggregate);
    this.#newest.delete(aggregate);
    return newest;
  }

  /** The request has its answer, or gets none. */
  settle(delivered: Delivered<SnapshotTaken>): void {
    this.#unsettled.delete(delivered);
  }

  /** Puts back the requests that are not settled, so that they wait again. @returns the aggregate of each */
  restore(): string[] {
    const again = [...this.#unsettled];
    this.#unsettled.clear();
    for (const [delivered, aggregate] of again) this.put(aggregate, delivered);
    return again.map(([, aggregate]) => aggregate);
  }
}
