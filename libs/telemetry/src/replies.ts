/** Answers to HTTP requests, without secrets. */
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { brotliCompress, gzip, constants as zlib } from 'node:zlib';
import { scrub, scrubbedJson } from './scrub.ts';

/** Seconds after which a client that got 503 may ask again. */
const RETRY_AFTER_S = 1;

/** Answers 503: the client may ask again soon. */
export function sendBusy(response: ServerResponse): void {
  response.setHeader('retry-after', String(RETRY_AFTER_S));
  sendJson(response, 503, { error: `too many requests at once; ask again after ${RETRY_AFTER_S} s` });
}

/** Answers with JSON. */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  send(response, status, 'application/json; charset=utf-8', Buffer.from(`${scrubbedJson(body)}\n`));
}

/** Answers with text, in which secrets are hidden, or with bytes, as they are. Never cached. */
export function send(response: ServerResponse, status: number, type: string, content: string | Uint8Array): void {
  const body = typeof content === 'string' ? scrub(content) : content;
  response.writeHead(status, {
    ...headersOf(type),
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}

/** Headers of every answer. */
const headersOf = (type: string) => ({
  'content-type': type,
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
});

/** Smaller bodies are not compressed. */
const COMPRESSED_BYTES = 1024;
const compressors = {
  br: (body: Buffer) => promisify(brotliCompress)(body, { params: { [zlib.BROTLI_PARAM_QUALITY]: 4 } }),
  gzip: (body: Buffer) => promisify(gzip)(body),
};

/**
 * Answers 200 with an entity tag, compressed when the client takes it, or 304 when the client has this version. `version`
 * identifies the content (default: the content itself): what it leaves out may differ under one tag.
 */
export async function sendTagged(
  response: ServerResponse,
  type: string,
  content: string | Uint8Array,
  version: string | Uint8Array = content,
): Promise<void> {
  const { headers, method } = response.req;
  const etag = `W/"${createHash('sha256').update(version).digest('base64url').slice(0, 22)}"`;
  const common = { ...headersOf(type), 'cache-control': 'private, no-cache', etag, vary: 'accept-encoding' };
  if (headers['if-none-match']?.split(',').some((one) => one.trim() === etag)) {
    response.writeHead(304, common).end();
    return;
  }
  const plain = Buffer.from(typeof content === 'string' ? scrub(content) : content);
  const coding = plain.length < COMPRESSED_BYTES ? null : codingOf(headers['accept-encoding']);
  const body = coding === null ? plain : await compressors[coding](plain);
  const encoded = coding === null ? {} : { 'content-encoding': coding };
  response.writeHead(200, { ...common, ...encoded, 'content-length': body.length });
  response.end(method === 'HEAD' ? undefined : body);
}

/** The best coding that an `Accept-Encoding` header takes; null: none of them. */
function codingOf(accepted: string | string[] | undefined): keyof typeof compressors | null {
  const taken = String(accepted ?? '')
    .split(',')
    .map((one) => one.trim().split(/\s*;\s*q=/))
    .flatMap(([name, weight]) => (Number(weight ?? 1) > 0 ? [name] : []));
  return taken.includes('br') ? 'br' : taken.includes('gzip') ? 'gzip' : null;
}

/** Begins an answer of server-sent events. */
export function beginEvents(response: ServerResponse): void {
  response.writeHead(200, {
    ...headersOf('text/event-stream; charset=utf-8'),
    'cache-control': 'no-store',
    // A reverse proxy (nginx) passes each event on at once.
    'x-accel-buffering': 'no',
  });
  response.flushHeaders();
}
