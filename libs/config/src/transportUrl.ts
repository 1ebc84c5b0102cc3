/** `[inventory] transport_url`, in the form that nova.conf has. */

export interface Broker {
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
}

export interface BrokerTransport {
  /** At least one; they are tried in turn. */
  readonly brokers: readonly Broker[];
  readonly virtualHost: string;
  /** `?ssl=1` */
  readonly tls: boolean;
}

export type ParsedTransport =
  | { readonly ok: true; readonly transport: BrokerTransport }
  | { readonly ok: false; readonly problem: string; readonly remedy: string };

const FORM = 'rabbit://USER:PASSWORD@HOST:PORT[,USER:PASSWORD@HOST:PORT]/VHOST';
const REMEDY = `Copy transport_url of [oslo_messaging_notifications] or [DEFAULT] from nova.conf: ${FORM}`;
const TLS_PORT = 5671;
const PORT = 5672;
const YES = new Set(['1', 'true', 'yes', 'on']);

const refused = (problem: string): ParsedTransport => ({ ok: false, problem, remedy: REMEDY });

/** Reads a transport URL of oslo.messaging. A problem never quotes the URL, which holds passwords. */
export function parseTransportUrl(url: string): ParsedTransport {
  const parts = /^rabbit:\/\/([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/.exec(url.trim());
  if (parts === null) return refused('is not of the form rabbit://');
  const [, authority = '', path = '', query = ''] = parts;
  const tls = YES.has((new URLSearchParams(query).get('ssl') ?? '').toLowerCase());
  const brokers: Broker[] = [];
  for (const [at, one] of authority.split(',').entries()) {
    const broker = brokerOf(one, brokers.at(-1), tls);
    if (broker === null) return refused(`names no host and port in place ${at + 1} of its hosts`);
    brokers.push(broker);
  }
  const virtualHost = decoded(path);
  if (virtualHost === null) return refused('has a virtual host that is not percent-encoded');
  return { ok: true, transport: { brokers, virtualHost: virtualHost === '' ? '/' : virtualHost, tls } };
}

/** A host without a user has that of the host before it. */
function brokerOf(text: string, before: Broker | undefined, tls: boolean): Broker | null {
  const at = text.lastIndexOf('@');
  const address = /^(\[[0-9a-fA-F:.]+\]|[^:[\]@\s]+)(?::(\d{1,5}))?$/.exec(text.slice(at + 1));
  if (address === null) return null;
  const [, host = '', digits] = address;
  const port = digits === undefined ? (tls ? TLS_PORT : PORT) : Number(digits);
  if (port < 1 || port > 65_535) return null;
  const place = { host: host.replace(/^\[|\]$/g, ''), port };
  if (at < 0) return { ...place, username: before?.username ?? 'guest', password: before?.password ?? 'guest' };
  const [user = '', ...rest] = text.slice(0, at).split(':');
  const username = decoded(user);
  const password = decoded(rest.join(':'));
  return username === null || password === null ? null : { ...place, username, password };
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
