import { MAX_DEPTH, MAX_MESSAGE_VALUES } from './limits.ts';
import { MAX_MESSAGE_BYTES } from './streams.ts';

export type JsonLimits = { readonly bytes: number; readonly depth: number; readonly values: number };

/** Limits of a message. */
export const messageLimits: JsonLimits = {
  bytes: MAX_MESSAGE_BYTES,
  depth: MAX_DEPTH,
  values: MAX_MESSAGE_VALUES,
};

/** Limits of a stored body (a snapshot, details, a large checkpoint). Its reference bounds its bytes. */
export const bodyLimits: JsonLimits = { bytes: 512 * 1024 ** 2, depth: MAX_DEPTH, values: Number.POSITIVE_INFINITY };

export type ParsedJson =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problem: string };

/** Whether a value is an object of JSON or YAML, and no list. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const decoder = new TextDecoder();

/** Parses bytes as JSON within limits that are checked before anything is built. Never throws. */
export function parseJson(data: Uint8Array, limits: JsonLimits = messageLimits): ParsedJson {
  if (data.length === 0) return { ok: false, problem: 'the body is empty' };
  const problem = excess(data, limits);
  if (problem !== null) return { ok: false, problem };
  try {
    return { ok: true, value: JSON.parse(decoder.decode(data)) };
  } catch {
    return { ok: false, problem: 'the body is no JSON' };
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** The limit that these bytes exceed; null when none. One pass, no allocation. */
export function excess(data: Uint8Array, limits: JsonLimits = messageLimits): string | null {
  if (data.length > limits.bytes) return `the body has ${data.length} bytes, more than ${limits.bytes}`;
  let depth = 0;
  let values = 0;
  for (let i = 0; i < data.length; i++) {
    switch (data[i]) {
      case QUOTE:
        for (i++; i < data.length && data[i] !== QUOTE; i++) if (data[i] === BACKSLASH) i++;
        break;
      case COMMA:
        values++;
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        values++;
        if (++depth > limits.depth) return `the body nests more than ${limits.depth} arrays and objects`;
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth--;
        break;
      default:
    }
  }
  return values > limits.values ? `the body has more than ${limits.values} values` : null;
}
