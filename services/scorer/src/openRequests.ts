/** The operators' requests that still want a snapshot. */
import type { Clock } from '@kronos/clock';
import { ALL, type Control } from '@kronos/contracts';
import type { EventLog } from '@kronos/eventlog';
import type { Logger } from '@kronos/telemetry';
import { commandRequests, type SnapshotRequest } from './requests.ts';
import type { Seen } from './seen.ts';

/** An older request is not answered: its sender has stopped waiting. */
export const REQUEST_KEPT_MS = 120_000;
/** A request whose snapshot could not be taken is tried again after this long. */
const REQUEST_AGAIN_MS = 5_000;

export interface OpenRequestsDeps {
  readonly log: Pick<EventLog, 'tail'>;
  readonly seen: Pick<Seen, 'has'>;
  readonly scope: readonly string[];
  readonly clock: Pick<Clock, 'now'>;
  readonly logger: Pick<Logger, 'warn'>;
}

/** A request is open until its snapshot is on the stream, from any replica, or its sender has stopped waiting. */
export class OpenRequests {
  readonly #deps: OpenRequestsDeps;
  readonly #open = new Map<string, { readonly request: SnapshotRequest; readonly untilMs: number }>();
  #againMs = 0;

  constructor(deps: OpenRequestsDeps) {
    this.#deps = deps;
  }

  /** Follows the requests, those of a short while before the start too; `added`: there is one to answer. */
  async listen(added: () => void): Promise<void> {
    const { log, seen, scope, clock } = this.#deps;
    const since = new Date(clock.now() - REQUEST_KEPT_MS);
    for await (const one of log.tail({ families: ['controls'], aggregates: [...scope, ALL], since })) {
      if (one.problem !== undefined) continue;
      for (const request of commandRequests(one.message as Control, one.traceparent, scope)) {
        const untilMs = one.storedAt + REQUEST_KEPT_MS;
        if (!seen.has(request.aggregate, request.id)) this.#open.set(request.id, { request, untilMs });
      }
      if (this.#open.size > 0) added();
    }
  }

  /** The requests to answer now: none for a while after a failure. */
  due(nowMs: number): SnapshotRequest[] {
    if (nowMs < this.#againMs) return [];
    for (const [id, { request, untilMs }] of this.#open) {
      const { aggregate, purpose } = request;
      const seen = this.#deps.seen.has(aggregate, id);
      if (!seen && nowMs <= untilMs) continue;
      this.#open.delete(id);
      const kept = `${REQUEST_KEPT_MS / 1000} s`;
      if (!seen)
        this.#deps.logger.warn(
          { aggregate, snapshotId: id, purpose },
          `a request had no snapshot within ${kept}: dropped`,
        );
    }
    return [...this.#open.values()].map((one) => one.request);
  }

  /** Time until the next try; infinite while no request is open. */
  waitMs(nowMs: number): number {
    return this.#open.size > 0 ? Math.max(0, this.#againMs - nowMs) : Number.POSITIVE_INFINITY;
  }

  answered(requests: readonly SnapshotRequest[]): void {
    for (const { id } of requests) this.#open.delete(id);
  }

  /** A snapshot could not be taken: all that is still open is tried again later. */
  failed(): void {
    this.#againMs = this.#deps.clock.now() + REQUEST_AGAIN_MS;
  }
}
