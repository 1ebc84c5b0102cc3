import { createHash } from 'node:crypto';
import {
  bodyLimits,
  bucketNames,
  messageId,
  type ObjectRef,
  parseJson,
  type Snapshot,
  type SnapshotTaken,
  snapshotSchema,
  summaryOf,
  validator,
} from '@kronos/contracts';
import { headers } from '@nats-io/transport-node';
import { z } from 'zod';
import { publish } from '../log/append.ts';
import { bucketStream } from '../wire/definitions.ts';
import { BadObject, MissingObject } from '../wire/errors.ts';
import type { Link } from '../wire/link.ts';
import { plainText } from '../wire/trouble.ts';
import type { ObjectStore, SnapshotEnvelope } from '../wire/types.ts';

/**
 * Objects in the form of the NATS object store (ADR-20), which the `nats` tool and every client read. Written here
 * rather than with the client's own object store, because that one needs the right to purge, hides why a put failed
 * when it lacks it, and waits for ever for a chunk that is gone.
 */

const CHUNK_BYTES = 128 * 1024;
/** An object that is younger than this is not stored again; an older one is, so that it outlives the new reference to it. */
const FRESH_MS = 3_600_000;
/** An object that claims more than this is not unpacked. */
const MAX_BYTES = 1024 ** 3;

/** `sha256:` and the digest in hex; of a text, of its UTF-8. */
export const digestOf = (bytes: Uint8Array | string): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** Whether an error says that an object is not kept (any more), or was changed. */
export const isUnusableObject = (error: unknown): error is MissingObject | BadObject =>
  error instanceof MissingObject || error instanceof BadObject;

/** For `catch`: null in place of an object that cannot be used. @throws any other error */
export function nullIfUnusable(error: unknown): null {
  if (isUnusableObject(error)) return null;
  throw error;
}

/** The store's own digest, of the bytes as they are stored. */
const storeDigest = (bytes: Uint8Array): string =>
  `SHA-256=${padded(createHash('sha256').update(bytes).digest('base64url'))}`;
const padded = (text: string): string => text + '='.repeat((4 - (text.length % 4)) % 4);

const metaSubject = (bucket: string, name: string): string =>
  `$O.${bucket}.M.${padded(Buffer.from(name, 'utf8').toString('base64url'))}`;
const chunkSubject = (bucket: string, id: string): string => `$O.${bucket}.C.${id}`;

const metaSchema = z.object({
  name: z.string(),
  nuid: z.string(),
  size: z.int().min(0),
  chunks: z.int().min(0),
  digest: z.string().optional(),
  mtime: z.string().optional(),
  deleted: z.boolean().optional(),
});
type Meta = z.infer<typeof metaSchema> & { readonly storedAt: number };

export class Objects implements ObjectStore {
  readonly #link: Link;

  constructor(link: Link) {
    this.#link = link;
  }

  async put(bucket: string, label: string, body: Uint8Array): Promise<ObjectRef> {
    const digest = digestOf(body);
    const known = await this.#meta(bucket, digest, `object ${digest} of bucket ${bucket}`).catch((error: unknown) => {
      if (error instanceof BadObject) return null;
      throw error;
    });
    const ref = { bucket, object: digest, digest, bytes: body.length };
    if (known !== null && this.#link.clock.now() - known.storedAt < FRESH_MS)
      return { ...ref, storedBytes: known.size };
    const packed = await this.#link.wire.zip(body);
    const id = this.#link.wire.unique();
    let chunks = 0;
    for (let at = 0; at < packed.length; at += CHUNK_BYTES) {
      await publish(this.#link, chunkSubject(bucket, id), packed.subarray(at, at + CHUNK_BYTES));
      chunks++;
    }
    const meta = {
      name: digest,
      description: label.slice(0, 200),
      options: { max_chunk_size: CHUNK_BYTES },
      bucket,
      nuid: id,
      size: packed.length,
      chunks,
      digest: storeDigest(packed),
    };
    const rollup = headers();
    rollup.set('Nats-Rollup', 'sub');
    await publish(this.#link, metaSubject(bucket, digest), new TextEncoder().encode(JSON.stringify(meta)), rollup);
    return { ...ref, storedBytes: packed.length };
  }

  async get(ref: ObjectRef): Promise<Uint8Array> {
    const what = `object ${ref.object} of bucket ${ref.bucket}`;
    if (ref.bytes > MAX_BYTES) throw new BadObject(`${what} claims ${ref.bytes} bytes`);
    const meta = await this.#meta(ref.bucket, ref.object, what);
    if (meta === null) throw new MissingObject(`${what} is not there (any more)`);
    const packed = await this.#chunks(ref.bucket, meta, what);
    const body = await this.#link.wire.unzip(packed, Math.max(1, ref.bytes)).catch((error: unknown) => {
      throw new BadObject(`${what} cannot be unpacked to ${ref.bytes} bytes: ${plainText(error)}`, { cause: error });
    });
    const digest = digestOf(body);
    if (digest !== ref.digest) throw new BadObject(`${what} has the digest ${digest}, but ${ref.digest} was promised`);
    return body;
  }

  /** The bucket's entry for an object; null when there is none, or the object is deleted. */
  async #meta(bucket: string, name: string, what: string): Promise<Meta | null> {
    const query = { last_by_subj: metaSubject(bucket, name) };
    const found = await this.#link.insist(() => this.#link.jsm.streams.getMessage(bucketStream(bucket), query), what);
    if (found === null) return null;
    let json: unknown;
    try {
      json = JSON.parse(found.string());
    } catch (error) {
      throw new BadObject(`what the bucket says about ${what} is no JSON`, { cause: error });
    }
    const meta = metaSchema.safeParse(json);
    if (!meta.success) throw new BadObject(`what the bucket says about ${what} cannot be read`);
    return meta.data.deleted === true ? null : { ...meta.data, storedAt: found.time.getTime() };
  }

  /**
   * The parts, asked of the stream's leader one after the other. A consumer would read them with fewer requests, but each
   * stays on the server for a while: a replay of many snapshots would leave thousands behind.
   */
  async #chunks(bucket: string, meta: Meta, what: string): Promise<Uint8Array> {
    if (meta.size > MAX_BYTES) throw new BadObject(`${what} is ${meta.size} bytes long`);
    const stream = bucketStream(bucket);
    const parts: Uint8Array[] = [];
    let size = 0;
    let next = 1;
    while (parts.length < meta.chunks && size <= meta.size) {
      const query = { seq: next, next_by_subj: chunkSubject(bucket, meta.nuid) };
      const found = await this.#link.insist(() => this.#link.jsm.streams.getMessage(stream, query), what);
      if (found === null) break;
      next = found.seq + 1;
      parts.push(found.data);
      size += found.data.length;
    }
    if (parts.length < meta.chunks && size <= meta.size)
      throw new MissingObject(
        `${what} has ${parts.length} of ${meta.chunks} parts left: its bucket drops the oldest first`,
      );
    if (size !== meta.size) throw new BadObject(`${what} is ${size} bytes long, but ${meta.size} were stored`);
    return Buffer.concat(parts);
  }
}

/** The message that says a snapshot was taken and where it is. */
export const snapshotMessage = (snapshot: Snapshot, body: ObjectRef, envelope: SnapshotEnvelope): SnapshotTaken => ({
  type: 'snapshot.taken',
  version: 1,
  id: messageId.snapshot(snapshot.id),
  time: snapshot.time,
  aggregate: snapshot.aggregate,
  by: envelope.by,
  correlationId: envelope.correlationId ?? snapshot.id,
  causationId: envelope.causationId,
  data: { ...summaryOf(snapshot), ...(envelope.log === undefined ? {} : { log: envelope.log }), body },
});

/** Stores a snapshot's body. */
export const storeSnapshot = (objects: ObjectStore, snapshot: Snapshot): Promise<ObjectRef> =>
  objects.put(bucketNames.snapshots, snapshot.id, new TextEncoder().encode(JSON.stringify(snapshot)));

const readSnapshot = validator(snapshotSchema);

/** @throws MissingObject, BadObject */
export async function loadSnapshot(objects: ObjectStore, taken: SnapshotTaken): Promise<Snapshot> {
  const body = await objects.get(taken.data.body);
  const what = `the body of snapshot ${taken.data.snapshotId}`;
  const json = parseJson(body, bodyLimits);
  if (!json.ok) throw new BadObject(`${what}: ${json.problem}`);
  const parsed = readSnapshot(json.value);
  if (!parsed.ok) throw new BadObject(`${what} is no snapshot: ${parsed.problem}`);
  const snapshot = parsed.value;
  if (snapshot.id !== taken.data.snapshotId || snapshot.aggregate !== taken.aggregate)
    throw new BadObject(`${what} is that of ${snapshot.id} of ${snapshot.aggregate}`);
  return snapshot;
}
