import type { Config } from '@kronos/config';
import { UsageError } from '../errors.ts';

/** Where the nats-server of `kronos up` listens. */
export type Address = { readonly host: string; readonly port: number };

const CLUSTER =
  'kronos up runs one nats-server on this machine. With servers of your own, run kronos provision and the services instead: docs/install.md.';

/**
 * The address of `[nats] servers`, if a nats-server of one's own can listen there: one, of this machine alone, without TLS.
 *
 * @throws UsageError
 */
export function ownAddress({ nats }: Config): Address {
  const [server = '', ...more] = nats.servers;
  if (more.length > 0) throw new UsageError('[nats] servers names several servers', CLUSTER);
  const url = new URL(server.includes('://') ? server : `nats://${server}`);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (url.protocol !== 'nats:' || nats.tlsCa !== null || nats.tlsCert !== null || nats.tlsHandshakeFirst)
    throw new UsageError('[nats] asks for TLS', `On one machine it is not needed: remove it. ${CLUSTER}`);
  if (!['127.0.0.1', 'localhost', '::1'].includes(host))
    throw new UsageError(
      `[nats] servers is ${server}, which is not an address of this machine alone`,
      `Set servers = nats://127.0.0.1:4222. ${CLUSTER}`,
    );
  if (nats.replicas > 1)
    throw new UsageError(`[nats] replicas is ${nats.replicas}, and one server keeps one copy`, `Set 1. ${CLUSTER}`);
  return { host: host === 'localhost' ? '127.0.0.1' : host, port: url.port === '' ? 4222 : Number(url.port) };
}
