/** Loopback names and addresses. */
const LOOPBACK = ['localhost', '127.0.0.1', '::1'];

/** Whether the host of a URL is this machine, so that what is sent to it does not leave it. */
export const isLoopback = (hostname: string): boolean => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);

/** Wildcard addresses. They are never a valid `Host`. */
const EVERY_ADDRESS = ['0.0.0.0', '::', ''];

/**
 * The name in a `Host` header, as it is compared: in lower case, without port, brackets and the dot at the end. Null for
 * a header that is missing or holds anything else than a name or an address.
 */
export function hostName(header: string | undefined): string | null {
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?$/i.exec(header ?? '');
  const name = match?.[1] ?? match?.[2];
  return name === undefined ? null : name.toLowerCase().replace(/\.$/, '');
}

/**
 * Whether a request may be answered, by its `Host` header. A web page can give its own name the address of this server
 * and so read what the server answers (DNS rebinding); the header then holds the name of that page.
 *
 * Allowed: loopback names, the configured address and names, and the address that the connection came to, which no page
 * can have as its name.
 *
 * @param address `[http] address`
 * @param names `[http] allowed_hosts`
 */
export function hostGuard(
  address: string,
  names: readonly string[],
): (header: string | undefined, local: string | undefined) => boolean {
  const known = new Set([...LOOPBACK, address, ...names].map((name) => hostName(bracketed(name)) ?? ''));
  for (const every of EVERY_ADDRESS) known.delete(every);
  return (header, local) => {
    const name = hostName(header);
    if (name === null) return false;
    return known.has(name) || name === local?.toLowerCase().replace(/^::ffff:/, '');
  };
}

/** An address of IPv6 as a header has it. */
const bracketed = (name: string): string => (name.includes(':') && !name.startsWith('[') ? `[${name}]` : name);
