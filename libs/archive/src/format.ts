/**
 * The form of an archive: files of JSON lines. The first line of a file is its head, which names the digest of the file
 * before it; each further line is one event. Files that are closed are compressed with gzip.
 */

/** An event as the stream holds it. */
export type RawEvent = {
  /** Stream sequence in KRONOS_LOG. */
  readonly sequence: number;
  /** The server's stamp, ms since the epoch. */
  readonly storedAt: number;
  readonly subject: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: Uint8Array;
};

export type Head = {
  readonly kronosArchive: 1;
  readonly stream: 'KRONOS_LOG';
  /** Sequence of the first event of this file. */
  readonly first: number;
  /** `sha256:<hex>` of the uncompressed bytes of the file before this one; null in the first. */
  readonly previous: string | null;
};

const DIGITS = 16;
const NAME = /^events-(\d{16})\.jsonl(\.gz)?$/;

/** The name of the file that begins with this event; names sort as events do. */
export const fileName = (first: number, closed: boolean): string =>
  `events-${String(first).padStart(DIGITS, '0')}.jsonl${closed ? '.gz' : ''}`;

/** What a file name says; null for a file that is none of the archive's. */
export function parseFileName(name: string): { first: number; closed: boolean } | null {
  const match = NAME.exec(name);
  return match === null ? null : { first: Number(match[1]), closed: match[2] !== undefined };
}

export const headLine = (first: number, previous: string | null): string =>
  `${JSON.stringify({ kronosArchive: 1, stream: 'KRONOS_LOG', first, previous } satisfies Head)}\n`;

/** A body of UTF-8 text is kept as it is, for people; any other in base64. */
export function eventLine({ sequence, storedAt, subject, headers, data }: RawEvent): string {
  const text = asText(data);
  const body = text === null ? { base64: Buffer.from(data).toString('base64') } : { body: text };
  return `${JSON.stringify({ sequence, storedAt: new Date(storedAt).toISOString(), subject, headers, ...body })}\n`;
}

function asText(data: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data);
  } catch {
    return null;
  }
}

/** The head that a line is, or what is wrong with it. */
export function parseHead(line: string): Head | string {
  const head = parse(line);
  if (head === null) return 'the first line is no JSON object';
  if (head.kronosArchive !== 1) return 'it is no archive of this version of Kronos';
  const { stream, first, previous } = head;
  if (stream !== 'KRONOS_LOG') return `it is of the stream ${String(stream)}`;
  if (!isSequence(first) || (previous !== null && typeof previous !== 'string')) return 'its head is incomplete';
  return { kronosArchive: 1, stream, first, previous };
}

/** The event that a line is, or what is wrong with it. */
export function parseEvent(line: string): RawEvent | string {
  const event = parse(line);
  if (event === null) return 'is no JSON object';
  const { sequence, storedAt, subject, headers, body, base64 } = event;
  if (!isSequence(sequence) || typeof subject !== 'string' || !isHeaders(headers)) return 'is no event';
  const storedAtMs = typeof storedAt === 'string' ? Date.parse(storedAt) : Number.NaN;
  if (Number.isNaN(storedAtMs)) return 'has no time';
  if (typeof body === 'string')
    return { sequence, storedAt: storedAtMs, subject, headers, data: new TextEncoder().encode(body) };
  if (typeof base64 === 'string')
    return { sequence, storedAt: storedAtMs, subject, headers, data: new Uint8Array(Buffer.from(base64, 'base64')) };
  return 'has no body';
}

function parse(line: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

const isSequence = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value > 0;
const isHeaders = (value: unknown): value is Record<string, string> =>
  typeof value === 'object' && value !== null && Object.values(value).every((v) => typeof v === 'string');
