const SECRET_PARAMETER = /token|password|passwd|secret|signature|api[-_]?key|credential/i;

/** A URL as it may stand in a log or an error: without user and password, secret query values as `***`, query cut at 300 characters. */
export function safeUrl(url: string | URL): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return '(not a URL)';
  }
  parsed.username = '';
  parsed.password = '';
  for (const name of [...parsed.searchParams.keys()]) {
    if (SECRET_PARAMETER.test(name)) parsed.searchParams.set(name, '***');
  }
  const text = parsed.toString();
  const base = text.length - parsed.search.length - parsed.hash.length;
  return parsed.search.length > 300 ? `${text.slice(0, base + 300)}...` : text;
}

/** Joins an endpoint and a path with exactly one slash, and adds the query; parameters with an undefined value are left out, arrays repeat the name. */
export function joinUrl(
  endpoint: string,
  path: string,
  query: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>> = {},
): string {
  const url = new URL(`${endpoint.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`);
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) url.searchParams.append(name, String(one));
  }
  return url.toString();
}
