/** One call as the simulated APIs see it, and the answer they give. */
export interface Call {
  readonly method: string;
  /** Without the API's prefix and without the query: `/v2.1/servers/detail`. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly rawQuery: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
  readonly nowMs: number;
  readonly requestId: string;
  /** `http://127.0.0.1:8774/compute`: where the API stands, for links. */
  readonly base: string;
}

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string;
}

export const JSON_TYPE = 'application/json';

export function json(status: number, body: unknown, headers: Reply['headers'] = {}): Reply {
  return { status, headers: { 'Content-Type': JSON_TYPE, ...headers }, body: JSON.stringify(body) };
}

/** `2026-11-20T15:04:40.000000`: how Nova's database times look in most answers. */
export function micros(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}.000000`;
}

/** `2026-11-20T15:04:40Z`: how a server's created and updated look. */
export function isoSeconds(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** A value as Python prints it: Nova and Placement quote bodies that way in their errors. */
export function python(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (typeof value === 'string')
    return value.includes("'") && !value.includes('"') ? `"${value}"` : `'${value.replaceAll("'", "\\'")}'`;
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`;
  if (typeof value === 'object')
    return `{${Object.entries(value)
      .map(([key, each]) => `${python(key)}: ${python(each)}`)
      .join(', ')}}`;
  return String(value);
}

/** The value as an object; undefined when it is not one. */
export function object(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}

export function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** undefined when the text is not JSON. */
export function bodyJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
