/** Messages that people publish: operators' commands, and raw messages. */
import { messageId, streamNames, subject } from '@kronos/contracts';
import type { SimulatedServer } from '@kronos/eventlog/simulated';
import { headers } from '@nats-io/transport-node';

const encoder = new TextEncoder();
/** Who publishes has no subscription, and waits for no answer. */
const nobody = { listens: () => false, send: () => undefined };

/** Publishes a message. Returns its sequence on KRONOS_LOG; null: it was not stored there. */
export function publish(server: SimulatedServer, to: string, data: Uint8Array, id: string): number | null {
  const log = server.stream(streamNames.log);
  const before = log?.last ?? 0;
  const h = headers();
  h.set('Nats-Msg-Id', id);
  server.receive(nobody, { subject: to, data, headers: h, reply: undefined });
  const last = log?.last ?? 0;
  return last === before ? null : last;
}

export class Commands {
  readonly #server: SimulatedServer;
  readonly #now: () => number;
  #count = 0;

  /** @param now ms since the epoch */
  constructor(server: SimulatedServer, now: () => number) {
    this.#server = server;
    this.#now = now;
  }

  /** Appends a command of an operator, or of the custodian who skips events. Returns its sequence; null: it was not stored. */
  append(type: string, aggregate: string, data: object): number | null {
    const [family, service] =
      type === 'event.skipped' ? (['custody', 'custodian'] as const) : (['controls', 'operator'] as const);
    const commandId = `c${++this.#count}`;
    const id = messageId.control(commandId);
    const body = {
      type,
      version: 1,
      id,
      time: new Date(this.#now()).toISOString(),
      aggregate,
      by: { service, instance: 'somebody', version: 'simulated' },
      correlationId: commandId,
      causationId: null,
      data: { commandId, comment: null, ...data },
    };
    return publish(this.#server, subject(family, aggregate), encoder.encode(JSON.stringify(body)), id);
  }
}
