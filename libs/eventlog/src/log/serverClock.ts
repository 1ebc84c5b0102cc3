import type { ServerReading } from '@kronos/clock';
import { streamNames } from '@kronos/contracts';
import type { StreamInfo } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import type { Link } from '../wire/link.ts';
import { streamInfo } from './view.ts';

const LOG = streamNames.log;

/**
 * Reads the server's clock: from the answer about the log's stream, which has a time stamp (`ts`) since 2.10; from older
 * servers, which stamp no answer, from the time at which a consumer was made that is deleted at once.
 *
 * @throws StreamUnavailable, NatsRefused, NotProvisioned, Closed
 */
export async function readServerClock(link: Link): Promise<ServerReading> {
  const { clock } = link;
  const asked = clock.now();
  const info: StreamInfo & { readonly ts?: string } = await streamInfo(link, LOG);
  if (info.ts !== undefined) return { beforeMs: asked, serverMs: Date.parse(info.ts), afterMs: clock.now() };
  const beforeMs = clock.now();
  const { name, created } = await link.insist(
    () =>
      link.jsm.consumers.add(LOG, {
        name: link.wire.unique(),
        ack_policy: 'none',
        deliver_policy: 'new',
        mem_storage: true,
        num_replicas: 1,
        inactive_threshold: nanos(5_000),
      }),
    `stream ${LOG}`,
  );
  const afterMs = clock.now();
  link.forget(LOG, name);
  return { beforeMs, serverMs: Date.parse(created), afterMs };
}
