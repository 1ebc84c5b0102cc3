import type { IncomingHttpHeaders } from 'node:http';
import { isLoopback } from '@kronos/telemetry/hosts';

/** Where a request comes from, by its headers. */
export type Came = { readonly ok: true; readonly tls: boolean } | { readonly ok: false; readonly problem: string };

/**
 * Whether a request that changes something comes from a page of this console: its Origin is the host that it was sent to,
 * or one of `allowedHosts` (a reverse proxy may send another Host). Passwords and cookies travel over HTTPS, or stay on the
 * machine.
 */
export function cameFrom(headers: IncomingHttpHeaders, allowedHosts: readonly string[]): Came {
  const origin = URL.parse(headers.origin ?? '');
  if (origin === null || origin.origin !== headers.origin)
    return { ok: false, problem: 'the Origin header is missing or wrong: commands come from the console only' };
  const own = origin.host === headers.host?.toLowerCase() || allowedHosts.some((name) => same(name, origin.hostname));
  const site = headers['sec-fetch-site'];
  if (!own || (site !== undefined && site !== 'same-origin'))
    return { ok: false, problem: `a page of ${origin.origin} may not give commands here; see [http] allowed_hosts` };
  if (origin.protocol === 'https:') return { ok: true, tls: true };
  if (isLoopback(origin.hostname)) return { ok: true, tls: false };
  return { ok: false, problem: 'log in over HTTPS, through a reverse proxy, or over an SSH tunnel to localhost' };
}

const same = (a: string, b: string): boolean => a.toLowerCase().replace(/\.$/, '') === b.toLowerCase();
