/** The cookie of a session. Pure. */
import type { IncomingHttpHeaders } from 'node:http';

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
