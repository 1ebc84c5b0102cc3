import { randomBytes } from 'node:crypto';
import { until } from '@kronos/clock/testing';
import { bucketNames, type ObjectRef, streamNames } from '@kronos/contracts';
import { jetstream } from '@nats-io/jetstream';
import { Objm } from '@nats-io/obj';
import { expect, test } from 'vitest';
import { failure } from '../../testing/async.ts';
import { actor, emptySnapshot, testLimits } from '../../testing/messages.ts';
import { onEachServer } from '../../testing/suite.ts';
import { AppendRefused, BadObject, LogFull, MissingObject } from '../wire/errors.ts';
import { digestOf } from './objects.ts';

const BUCKET = bucketNames.details;
const STREAM = `OBJ_${BUCKET}`;
const bytes = (text: string) => new TextEncoder().encode(text);

onEachServer('objects', { concurrent: false }, (bench) => {
  test.each([
    ['nothing', new Uint8Array(0)],
    ['a little', bytes('{"a":1}')],
    ['three chunks and more, that do not pack', new Uint8Array(randomBytes(400_000))],
    ['five MiB', new Uint8Array(randomBytes(5 * 1024 ** 2))],
  ])('%s comes back as it was', async (_, body) => {
    const { log } = await bench.provisioned();
    const ref = await log.objects.put(BUCKET, 'label', body);
    expect(ref).toMatchObject({ bucket: BUCKET, object: digestOf(body), digest: digestOf(body), bytes: body.length });
    expect(Buffer.compare(await log.objects.get(ref), body)).toBe(0);
  });

  test('the same content is stored once', async () => {
    const { log } = await bench.provisioned();
    const first = await log.objects.put(BUCKET, 'one', bytes('same'));
    const { messages } = await log.usage(STREAM);
    expect(await log.objects.put(BUCKET, 'two', bytes('same'))).toEqual(first);
    expect((await log.usage(STREAM)).messages).toBe(messages);
  });

  test('other clients of the object store read what is written here, and the reverse', async () => {
    const { server, log } = await bench.provisioned();
    const { nc } = await bench.bare(server);
    const store = await new Objm(jetstream(nc)).open(BUCKET);
    const body = new Uint8Array(randomBytes(300_000));
    const ref = await log.objects.put(BUCKET, 'for all', body);
    const packed = await store.getBlob(ref.object);
    expect(packed?.length).toBe(ref.storedBytes);
    expect((await store.list()).map(({ name, description }) => [name, description])).toEqual([[ref.object, 'for all']]);
    expect((await store.info(ref.object))?.size).toBe(ref.storedBytes);
    // Copied by the client under another name, it is still what the reference promises.
    await store.putBlob({ name: 'copy' }, packed ?? new Uint8Array());
    expect(Buffer.compare(await log.objects.get({ ...ref, object: 'copy' }), body)).toBe(0);
  });

  test('reading leaves no consumer behind, however many objects are read', async () => {
    const { server, log } = await bench.provisioned();
    const { jsm } = await bench.bare(server);
    const envelope = { by: { ...actor, service: 'scorer' as const }, causationId: null };
    for (let i = 0; i < 40; i++) await log.putSnapshot(emptySnapshot(`gpu-${i}`), envelope);
    const count = async () => {
      const streams = [`OBJ_${bucketNames.snapshots}`, streamNames.snapshots];
      const infos = await Promise.all(streams.map((stream) => jsm.streams.info(stream)));
      return infos.map(({ state }) => state.consumer_count);
    };
    const before = await count();
    let read = 0;
    for await (const { message, problem } of log.replaySnapshots())
      if (problem === undefined) {
        await log.getSnapshot(message);
        read++;
      }
    expect(read).toBe(40);
    await until(async () => (await count()).every((n, i) => n === before[i]));
  });

  test('a put that the server refuses says why', async () => {
    const { server, log } = await bench.provisioned();
    const { jsm } = await bench.bare(server);
    await jsm.streams.update(STREAM, { max_msg_size: 1000 });
    const error = await failure(log.objects.put(BUCKET, 'x', new Uint8Array(randomBytes(2000))));
    expect(error).toBeInstanceOf(AppendRefused);
    expect(String(error)).toMatch(/message size exceeds maximum allowed/);
  });

  test('a missing, deleted, changed or incomplete object is an error that names it', async () => {
    const { server, log } = await bench.provisioned();
    const { nc, jsm } = await bench.bare(server);
    const store = await new Objm(jetstream(nc)).open(BUCKET);
    const get = (ref: ObjectRef) => failure(log.objects.get(ref));
    const ref = await log.objects.put(BUCKET, 'x', new Uint8Array(randomBytes(400_000)));
    const missing = await get({ ...ref, object: 'sha256:none' });
    expect(missing).toBeInstanceOf(MissingObject);
    expect(String(missing)).toContain('sha256:none');
    expect(await get({ ...ref, digest: digestOf(bytes('other')) })).toBeInstanceOf(BadObject);
    expect(await get({ ...ref, bytes: 10 })).toBeInstanceOf(BadObject);
    await store.putBlob({ name: 'junk' }, bytes('no gzip'));
    expect(await get({ ...ref, object: 'junk' })).toBeInstanceOf(BadObject);
    // One part is dropped, as a full bucket does.
    const first = await jsm.streams.getMessage(STREAM, { seq: 1 });
    expect(first?.subject).toContain('.C.');
    await jsm.streams.deleteMessage(STREAM, 1);
    const incomplete = await get(ref);
    expect(incomplete).toBeInstanceOf(MissingObject);
    expect(String(incomplete)).toContain('3 of 4 parts');
    await store.delete(ref.object);
    expect(await get(ref)).toBeInstanceOf(MissingObject);
    expect(await get({ ...ref, bucket: 'kronos-nothing' })).toMatchObject({ code: 'KRONOS_NOT_PROVISIONED' });
  });

  test('a full bucket: what is kept for ever refuses more, what ages drops its oldest', async () => {
    const server = await bench.server();
    const log = await bench.connect(server);
    const limits = { ...testLimits, logMaxBytes: 1024 ** 2, snapshotMaxBytes: 1024 ** 2 };
    await log.provision({ limits, replicas: 1, aggregates: [] });
    const body = () => new Uint8Array(randomBytes(300_000));
    const fill = async () => {
      for (let i = 0; ; i++) await log.objects.put(bucketNames.details, `${i}`, body());
    };
    expect(await failure(fill())).toBeInstanceOf(LogFull);
    const refs = [];
    for (let i = 0; i < 8; i++) refs.push(await log.objects.put(bucketNames.snapshots, `${i}`, body()));
    expect((await log.objects.get(refs.at(-1) as ObjectRef)).length).toBe(300_000);
    expect(await failure(log.objects.get(refs[0] as ObjectRef))).toBeInstanceOf(MissingObject);
  });

  test('a snapshot: the object first, the message second, both once; a body that is not it is refused', async () => {
    const { log } = await bench.provisioned();
    const envelope = { by: { ...actor, service: 'scorer' as const }, causationId: null };
    const snapshot = emptySnapshot('gpu-1');
    const first = await log.putSnapshot(snapshot, envelope);
    expect(first).toMatchObject({ sequence: 1, duplicate: false });
    expect(first.message.data).toMatchObject({ snapshotId: 'gpu-1', hosts: 0, combined: null });
    expect(await log.putSnapshot(snapshot, envelope)).toMatchObject({ sequence: 1, duplicate: true });
    expect(await log.getSnapshot(first.message)).toEqual(snapshot);
    const put = async (text: string) => {
      const body = await log.objects.put(bucketNames.snapshots, 'x', bytes(text));
      return log.getSnapshot({ ...first.message, data: { ...first.message.data, body } });
    };
    expect(await failure(put('no json'))).toBeInstanceOf(BadObject);
    expect(await failure(put('{"version":1}'))).toBeInstanceOf(BadObject);
    expect(await failure(put(JSON.stringify(emptySnapshot('gpu-2'))))).toBeInstanceOf(BadObject);
    expect(await failure(put(JSON.stringify({ ...snapshot, version: 2 })))).toBeInstanceOf(BadObject);
  });
});
