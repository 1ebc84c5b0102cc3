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

/** The name of the session's cookie. With its prefix, a browser takes it over TLS only, and from this host only. */
const cookieName = (tls: boolean): string => (tls ? '__Host-kronos-session' : 'kronos-session');

/** The value of the session's cookie; null: there is none. */
export function cookieOf(headers: IncomingHttpHeaders): string | null {
  const parts = (headers.cookie ?? '').split(';').map((part) => part.trim());
  for (const name of [cookieName(true), cookieName(false)]) {
    const found = parts.find((part) => part.startsWith(`${name}=`));
    if (found !== undefined) return found.slice(name.length + 1);
  }
  return null;
}

/** The `Set-Cookie` header of a session; `value` null takes the cookie away. */
export const setCookie = (value: string | null, { tls }: { readonly tls: boolean }): string =>
  `${cookieName(tls)}=${value ?? ''}; Path=/; HttpOnly; SameSite=Strict${tls ? '; Secure' : ''}${value === null ? '; Max-Age=0' : ''}`;
