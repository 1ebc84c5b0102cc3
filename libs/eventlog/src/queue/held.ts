import type { Cancel } from '@kronos/clock';
import { nanos } from '@nats-io/transport-node';
import type { Link } from '../wire/link.ts';
import { troubleOf } from '../wire/trouble.ts';

const RETRY_MS = 250;

export type Settlement = 'done' | 'dead' | 'handOver' | { readonly delayMs: number };

const bodyOf = (settlement: Settlement): string => {
  if (settlement === 'done') return '+ACK';
  // Without a reason: servers before 2.10.4 ignore a term that has one.
  if (settlement === 'dead') return '+TERM';
  if (settlement === 'handOver' || settlement.delayMs <= 0) return '-NAK';
  return `-NAK ${JSON.stringify({ delay: nanos(Math.ceil(settlement.delayMs)) })}`;
};

/**
 * One delivery, and whether it still belongs to this worker.
 *
 * The server redelivers a message to another worker when it has heard nothing for the ack wait. It would still accept an ack, nak, term or
 * working of the former worker then, so this worker sends nothing once that can have happened. Each heartbeat is a `working` that the
 * consumer's leader confirms. A confirmed heartbeat restarts the ack wait at the time at which it was sent. The first ack wait starts when the
 * message was requested, because it cannot have been delivered earlier. The monotonic clock is read before each send, so a process that was
 * stopped notices when it continues.
 */
export class Held {
  readonly #link: Link;
  readonly #reply: string;
  readonly #ackWaitMs: number;
  readonly #lost = new AbortController();
  readonly #unhook: () => void;
  #confirmedAt: number;
  #settled = false;
  #beating = false;
  #beat: Cancel | undefined;
  #expiry: Cancel | undefined;

  /** @param askedAt the monotonic clock when the message was asked for */
  constructor(link: Link, reply: string, ackWaitMs: number, askedAt: number) {
    this.#link = link;
    this.#reply = reply;
    this.#ackWaitMs = ackWaitMs;
    this.#confirmedAt = askedAt;
    this.#unhook = link.onReconnect(() => void this.#heartbeat());
    if (this.mine()) {
      this.#watch();
      void this.#heartbeat();
    }
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** The delivery may be another's, or nobody's, by now: nothing is sent for it any more. */
  giveUp(): void {
    this.#rest();
    this.#lost.abort();
  }

  #left(): number {
    return this.#confirmedAt + this.#ackWaitMs - this.#link.clock.monotonic();
  }

  /** Looks at the clock: to be called before each send. False: the delivery was given up, now or before. */
  mine(): boolean {
    if (this.#lost.signal.aborted) return false;
    if (this.#left() > 0) return true;
    this.giveUp();
    return false;
  }

  #rest(): void {
    this.#settled = true;
    this.#beat?.();
    this.#expiry?.();
    this.#unhook();
  }

  #watch(): void {
    this.#expiry?.();
    if (!this.#settled && this.mine()) this.#expiry = this.#link.clock.after(this.#left() + 1, () => this.#watch());
  }

  async #heartbeat(): Promise<void> {
    if (this.#beating || this.#settled || !this.mine()) return;
    this.#beating = true;
    this.#beat?.();
    const confirmed = await this.#send('+WPI');
    this.#beating = false;
    if (this.#settled || !this.mine()) return;
    if (confirmed) this.#watch();
    const waitMs = confirmed ? this.#ackWaitMs / 3 : this.#retryMs();
    this.#beat = this.#link.clock.after(waitMs, () => void this.#heartbeat());
  }

  #retryMs(): number {
    return Math.min(RETRY_MS, this.#ackWaitMs / 10);
  }

  /** True when the consumer's leader confirmed it. Sends nothing without a connection: it would go out late. */
  async #send(body: string): Promise<boolean> {
    if (!this.#link.connected) return false;
    const sentAt = this.#link.clock.monotonic();
    try {
      await this.#link.request(this.#reply, body, Math.min(this.#ackWaitMs / 3, this.#left()));
    } catch (error) {
      if (troubleOf(error) === 'refused')
        this.#link.warn('ack_refused', this.#link.refusal('answer deliveries', error).message);
      return false;
    }
    this.#confirmedAt = Math.max(this.#confirmedAt, sentAt);
    return true;
  }

  /**
   * Answers the delivery; true when the server confirmed. An ack or a term is repeated while the delivery is ours. A nak
   * is sent once: after it the message may be another's, so that a second one could hit that delivery.
   */
  async settle(settlement: Settlement): Promise<boolean> {
    if (this.#settled || !this.mine()) return false;
    this.#rest();
    const repeat = settlement === 'done' || settlement === 'dead';
    while (this.mine()) {
      const sent = this.#link.connected;
      if (sent && (await this.#send(bodyOf(settlement)))) return true;
      if (sent && !repeat) break;
      if (this.#link.closed) break;
      await this.#link.clock.sleep(this.#retryMs());
    }
    this.giveUp();
    return false;
  }
}
