import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import {
  bucketNames,
  messageId,
  type ObjectRef,
  type Snapshot,
  type SnapshotTaken,
  snapshotSchema,
} from '@kronos/contracts';
import { JetStreamApiError } from '@nats-io/jetstream';
import { type ObjectStore as NatsObjectStore, Objm } from '@nats-io/obj';
import { deadline } from '@nats-io/transport-node';
import { readPubAck } from './append.ts';
import { BadObject, LogFull, MissingObject, StreamUnavailable } from './errors.ts';
import { type Link, plainText } from './link.ts';
import type { ObjectStore, SnapshotEnvelope } from './types.ts';

const zip = promisify(gzip);
const unzip = promisify(gunzip);

/** An object that is younger than this is not stored again; an older one is, so that it outlives the new reference to it. */
const FRESH_MS = 3_600_000;
/** Between two chunks of an object; a chunk that was lost never comes. */
const CHUNK_MS = 10_000;
/** An object that would unpack to more than it claims is not unpacked. */
const MAX_BYTES = 1024 ** 3;

export const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

export class Objects implements ObjectStore {
  readonly #link: Link;
  readonly #manager: Objm;
  readonly #buckets = new Map<string, Promise<NatsObjectStore>>();

  constructor(link: Link) {
    this.#link = link;
    this.#manager = new Objm(link.js);
  }

  #bucket(name: string): Promise<NatsObjectStore> {
    let bucket = this.#buckets.get(name);
    if (bucket === undefined) {
      bucket = this.#manager.open(name, false);
      this.#buckets.set(name, bucket);
    }
    return bucket;
  }

  #trouble(error: unknown, what: string): Error {
    if (error instanceof JetStreamApiError) {
      const { code, description } = error.apiError();
      const attempt = readPubAck(JSON.stringify({ error: { code, err_code: error.code, description } }));
      if (attempt.kind === 'full') return new LogFull(`${what}: ${attempt.text}`);
    }
    return this.#link.fatal(error, what) ?? new StreamUnavailable(`${what}: ${plainText(error)}`, { cause: error });
  }

  async put(bucket: string, label: string, body: Uint8Array): Promise<ObjectRef> {
    const digest = digestOf(body);
    const what = `object ${digest} of bucket ${bucket}`;
    try {
      const store = await this.#bucket(bucket);
      const known = await this.#link.ask(() => store.info(digest));
      const fresh = known !== null && !known.deleted && Date.now() - Date.parse(known.mtime) < FRESH_MS;
      if (fresh) return { bucket, object: digest, digest, bytes: body.length, storedBytes: known.size };
      const packed = await zip(body);
      const description = label.slice(0, 200);
      await this.#link.ask(() => store.putBlob({ name: digest, description }, packed), 30_000);
      return { bucket, object: digest, digest, bytes: body.length, storedBytes: packed.length };
    } catch (error) {
      throw this.#trouble(error, what);
    }
  }

  async get(ref: ObjectRef): Promise<Uint8Array> {
    const what = `object ${ref.object} of bucket ${ref.bucket}`;
    const packed = await this.#stored(ref, what);
    if (ref.bytes > MAX_BYTES) throw new BadObject(`${what} claims ${ref.bytes} bytes`);
    const body = await unzip(packed, { maxOutputLength: Math.max(1, ref.bytes) }).catch((error: unknown) => {
      throw new BadObject(`${what} cannot be unpacked: ${plainText(error)}`, { cause: error });
    });
    const digest = digestOf(body);
    if (digest !== ref.digest) throw new BadObject(`${what} has the digest ${digest}, but ${ref.digest} was promised`);
    return body;
  }

  async #stored(ref: ObjectRef, what: string): Promise<Uint8Array> {
    let reader: ReadableStreamDefaultReader<Uint8Array> | null = null;
    try {
      const store = await this.#bucket(ref.bucket);
      const found = await this.#link.ask(() => store.get(ref.object));
      if (found === null) throw new MissingObject(`${what} is not there (any more)`);
      found.error.catch(() => undefined);
      const chunks: Uint8Array[] = [];
      reader = found.data.getReader();
      for (;;) {
        const next = reader;
        const { done, value } = await this.#link.ask(() => deadline(next.read(), CHUNK_MS));
        if (done) return Buffer.concat(chunks);
        chunks.push(value);
      }
    } catch (error) {
      await reader?.cancel().catch(() => undefined);
      if (error instanceof Error && error.message.startsWith('received a corrupt object'))
        throw new BadObject(`${what} is corrupt`, { cause: error });
      if (reader !== null && error instanceof Error && error.name === 'TimeoutError' && this.#link.connected)
        throw new BadObject(`${what} is not complete`, { cause: error });
      throw this.#trouble(error, what);
    }
  }
}

/** The message that says a snapshot was taken and where it is. */
export const snapshotTaken = (snapshot: Snapshot, body: ObjectRef, envelope: SnapshotEnvelope): SnapshotTaken => ({
  type: 'snapshot.taken',
  version: 1,
  id: messageId.snapshot(snapshot.id),
  time: snapshot.time,
  aggregate: snapshot.aggregate,
  by: envelope.by,
  correlationId: envelope.correlationId ?? snapshot.id,
  causationId: envelope.causationId,
  data: {
    snapshotId: snapshot.id,
    purpose: snapshot.purpose,
    cycle: snapshot.cycle,
    intervalSeconds: snapshot.intervalSeconds,
    observedFrom: snapshot.observedFrom,
    hosts: snapshot.hosts.length,
    servers: snapshot.servers.length,
    combined: snapshot.scores.combined,
    policies: snapshot.scores.policies.map(({ policy, participates, imbalance, threshold, detected }) => ({
      policy,
      participates,
      imbalance,
      threshold,
      detected,
    })),
    problems: snapshot.problems,
    body,
  },
});

/** Stores a snapshot's body. */
export const storeSnapshot = (objects: ObjectStore, snapshot: Snapshot): Promise<ObjectRef> =>
  objects.put(bucketNames.snapshots, snapshot.id, new TextEncoder().encode(JSON.stringify(snapshot)));

/** @throws MissingObject, BadObject */
export async function loadSnapshot(objects: ObjectStore, taken: SnapshotTaken): Promise<Snapshot> {
  const body = await objects.get(taken.data.body);
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder().decode(body));
  } catch (error) {
    throw new BadObject(`the body of snapshot ${taken.data.snapshotId} is no JSON`, { cause: error });
  }
  const parsed = snapshotSchema.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new BadObject(
      `the body of snapshot ${taken.data.snapshotId} is no snapshot: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`,
    );
  }
  if (parsed.data.id !== taken.data.snapshotId || parsed.data.aggregate !== taken.aggregate)
    throw new BadObject(`the body of snapshot ${taken.data.snapshotId} is that of ${parsed.data.id}`);
  return parsed.data;
}
