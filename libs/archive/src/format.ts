/**
 * The form of an archive: files of JSON lines. The first line of a file is its head, which names the digest of the file
 * before it and the installation; the first file's head is the beginning of the chain. Each further line is an event, or
 * a seal: the digest of everything above it in the file. Files that are closed are compressed with gzip.
 */

/** An event as the stream holds it. */
export type ArchivedEvent = {
  /** Stream sequence in KRONOS_LOG. */
  readonly sequence: number;
  /** The server's stamp, ms since the epoch. */
  readonly storedAt: number;
  readonly subject: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: Uint8Array;
};

export type Head = {
  /** 1: of Kronos 0.1, without seals and installation; read, and no longer written. */
  readonly kronosArchive: 1 | 2;
  readonly stream: 'KRONOS_LOG';
  /** Installation id that is in force at the first event of this file; null: the log named none by then. */
  readonly installation: string | null;
  /** Sequence of the first event of this file. */
  readonly first: number;
  /** `sha256:<hex>` of the uncompressed bytes of the file before this one; null in the first. */
  readonly previous: string | null;
};

const DIGITS = 16;
const NAME = /^events-(\d{16})\.jsonl(\.gz)?$/;

/** The name of the file that begins with this event; names sort as events do. */
export const fileName = (first: number): string => `events-${String(first).padStart(DIGITS, '0')}.jsonl`;

/** The facts in a file name; null for a file that is not the archive's. */
export function parseFileName(name: string): { first: number; closed: boolean } | null {
  const match = NAME.exec(name);
  return match === null ? null : { first: Number(match[1]), closed: match[2] !== undefined };
}

export const headLine = (first: number, previous: string | null, installation: string | null): string =>
  `${JSON.stringify({ kronosArchive: 2, stream: 'KRONOS_LOG', installation, first, previous } satisfies Head)}\n`;

/** Follows each batch of events: the file is whole up to here. */
export type Seal = {
  /** Sequence of the last event above. */
  readonly sealed: number;
  /** `sha256:<hex>` of the bytes of the file above this line. */
  readonly digest: string;
};

export const sealLine = (sealed: number, digest: string): string =>
  `${JSON.stringify({ sealed, digest } satisfies Seal)}\n`;

const ALL_CONTROLS = 'kronos.controls._all_';
const CREATED = 'installation.created';

/** The installation id that an event puts in force; null for any other event. */
export function installationOf({ subject, data }: Pick<ArchivedEvent, 'subject' | 'data'>): string | null {
  if (subject !== ALL_CONTROLS) return null;
  const text = asText(data);
  const body = text?.includes(CREATED) === true ? parse(text) : null;
  if (body?.type !== CREATED || typeof body.data !== 'object' || body.data === null) return null;
  const { installationId } = body.data as Record<string, unknown>;
  return typeof installationId === 'string' ? installationId : null;
}

/** A body of UTF-8 text is kept as it is, for people; any other in base64. */
export function eventLine({ sequence, storedAt, subject, headers, data }: ArchivedEvent): string {
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
  const { kronosArchive, stream, first, previous, installation = null } = head;
  if (kronosArchive !== 1 && kronosArchive !== 2) return 'it is no archive that this version of Kronos can read';
  if (stream !== 'KRONOS_LOG') return `it is of the stream ${String(stream)}`;
  if (!isSequence(first) || !isTextOrNull(previous) || !isTextOrNull(installation)) return 'its head is incomplete';
  return { kronosArchive, stream, installation, first, previous };
}

/** The event or the seal that a line is, or what is wrong with it. */
export function parseLine(line: string): ArchivedEvent | Seal | string {
  const event = parse(line);
  if (event === null) return 'is no JSON object';
  if ('sealed' in event) {
    const { sealed, digest } = event;
    return isSequence(sealed) && typeof digest === 'string' ? { sealed, digest } : 'is no seal';
  }
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

const isTextOrNull = (value: unknown): value is string | null => value === null || typeof value === 'string';
const isSequence = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value > 0;
const isHeaders = (value: unknown): value is Record<string, string> =>
  typeof value === 'object' && value !== null && Object.values(value).every((v) => typeof v === 'string');
