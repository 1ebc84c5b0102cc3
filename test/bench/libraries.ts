/**
 * Our own code beside the library that could take its place (docs/adr/0018-own-code-beside-libraries.md): CPU for the same work, the library's
 * as a multiple of ours, and memory of the HTTP servers. The libraries are no dependencies: DIRECTORY has them.
 *
 *   npm install --prefix DIRECTORY fastify p-limit lru-cache fastest-levenshtein @nats-io/obj
 *   node scripts/run.mjs node test/bench/libraries.ts DIRECTORY [rounds, default 5] [parts, such as http,limits]
 */
import { fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { nearest } from '@kronos/config/nearest';
import { bucketNames, defaultStorageLimits } from '@kronos/contracts';
import { connectEventLog } from '@kronos/eventlog';
import { startNatsServer } from '@kronos/eventlog/testing';
import { createLogger, createMetrics, HttpServer, sendJson } from '@kronos/telemetry';
import { AckPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { taskMessage } from '../../libs/eventlog/testing/messages.ts';
import { createLimiter } from '../../libs/observation/src/limit.ts';

const [directory = '', second = '5', third = ''] = process.argv.slice(2);
/** Of a child process: the server that it is. */
const SERVE = 'serve:';
const rounds = Number(second);
const require = createRequire(join(directory, 'package.json'));
const library = async <T>(name: string): Promise<T> => (await import(require.resolve(name))) as T;

/** An answer of the console's size. */
const PAGE = { hosts: Array.from({ length: 100 }, (_, i) => ({ name: `compute-${i}`, vms: i, values: { cpu: 0.5 } })) };
const REQUESTS = 10_000;

type Served = { readonly url: string };
type Used = { readonly cpuMs: number; readonly rssMb: number };

/** The server of a child process: it tells its address, and its use when it is asked. */
async function serve(kind: string): Promise<void> {
  let url: string;
  if (kind === 'ours') {
    const metrics = createMetrics(resourceFromAttributes({}));
    const http = new HttpServer({
      address: '127.0.0.1',
      port: 0,
      portOption: 'port',
      log: createLogger({ level: 'error', service: 'ledger', version: '1.0.0' }),
      metrics,
    });
    http.route('/page', (_, response) => sendJson(response, 200, PAGE));
    url = (await http.listen()).url;
  } else {
    type App = {
      get(path: string, handler: () => Promise<unknown>): void;
      listen(options: { host: string; port: number }): Promise<string>;
    };
    const { fastify } = await library<{ fastify: () => App }>('fastify');
    const app = fastify();
    app.get('/page', async () => PAGE);
    url = await app.listen({ host: '127.0.0.1', port: 0 });
  }
  let since = process.cpuUsage();
  process.on('message', () => {
    const { user, system } = process.cpuUsage(since);
    since = process.cpuUsage();
    process.send?.({ cpuMs: (user + system) / 1000, rssMb: process.memoryUsage.rss() / 2 ** 20 } satisfies Used);
  });
  process.send?.({ url } satisfies Served);
}

const answer = <T>(child: ReturnType<typeof fork>): Promise<T> =>
  new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as T));
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
  });

async function requests(url: string, count: number): Promise<void> {
  let left = count;
  const client = async () => {
    while (left-- > 0) await (await fetch(`${url}/page`)).arrayBuffer();
  };
  await Promise.all(Array.from({ length: 8 }, client));
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;
const rounded = (value: number): number => Number(value.toPrecision(3));

/** CPU of this process for each side, in turn: microseconds per piece of work, and the library's as a multiple of ours. */
async function compared(pieces: number, sides: Readonly<Record<'ours' | 'library', () => unknown>>) {
  const used: Record<'ours' | 'library', number[]> = { ours: [], library: [] };
  for (let round = 0; round <= rounds; round++)
    for (const side of ['ours', 'library'] as const) {
      const since = process.cpuUsage();
      await sides[side]();
      const { user, system } = process.cpuUsage(since);
      // The first round warms up.
      if (round > 0) used[side].push((user + system) / pieces);
    }
  return {
    oursMicroseconds: rounded(median(used.ours)),
    libraryMicroseconds: rounded(median(used.library)),
    ratio: rounded(median(used.library.map((value, round) => value / (used.ours[round] ?? 1)))),
  };
}

async function http() {
  const sides = ['ours', 'fastify'] as const;
  const children = sides.map((kind) => fork(import.meta.filename, [directory, second, SERVE + kind]));
  try {
    const urls: string[] = [];
    for (const child of children) urls.push((await answer<Served>(child)).url);
    const uses: Used[][] = [[], []];
    for (let round = 0; round <= rounds; round++)
      for (const [at, child] of children.entries()) {
        const before = answer<Used>(child);
        child.send('use');
        await before;
        await requests(urls[at] ?? '', REQUESTS);
        const used = answer<Used>(child);
        child.send('use');
        if (round > 0) uses[at]?.push(await used);
        else await used;
      }
    const [ours = [], other = []] = uses;
    return {
      oursMicroseconds: rounded((median(ours.map(({ cpuMs }) => cpuMs)) / REQUESTS) * 1000),
      libraryMicroseconds: rounded((median(other.map(({ cpuMs }) => cpuMs)) / REQUESTS) * 1000),
      ratio: rounded(median(other.map(({ cpuMs }, round) => cpuMs / (ours[round]?.cpuMs ?? 1)))),
      oursMb: rounded(ours.at(-1)?.rssMb ?? 0),
      libraryMb: rounded(other.at(-1)?.rssMb ?? 0),
    };
  } finally {
    for (const child of children) child.kill();
  }
}

async function limits() {
  const { default: pLimit } = await library<{ default: (most: number) => <T>(job: () => Promise<T>) => Promise<T> }>(
    'p-limit',
  );
  const jobs = 100_000;
  const run = (limiter: <T>(job: () => Promise<T>) => Promise<T>) =>
    Promise.all(Array.from({ length: jobs }, (_, i) => limiter(async () => i)));
  return compared(jobs, { ours: () => run(createLimiter(8)), library: () => run(pLimit(8)) });
}

/** A cache as `Map` keeps one: a hit moves to the end, the first goes when it is full. */
function mapOf(most: number) {
  const map = new Map<number, number>();
  return {
    get(key: number) {
      const value = map.get(key);
      if (value !== undefined) {
        map.delete(key);
        map.set(key, value);
      }
      return value;
    },
    set(key: number, value: number) {
      map.set(key, value);
      if (map.size > most) map.delete(map.keys().next().value ?? 0);
    },
  };
}

async function caches() {
  type Cache = ReturnType<typeof mapOf>;
  const { LRUCache } = await library<{ LRUCache: new (options: { max: number }) => Cache }>('lru-cache');
  const reads = 1_000_000;
  const run = (cache: Cache) => {
    for (let i = 0; i < reads; i++) {
      const key = (i * 7919) % 1500;
      if (cache.get(key) === undefined) cache.set(key, i);
    }
  };
  return compared(reads, { ours: () => run(mapOf(1000)), library: () => run(new LRUCache({ max: 1000 })) });
}

async function suggestions() {
  const { closest } = await library<{ closest: (name: string, known: readonly string[]) => string }>(
    'fastest-levenshtein',
  );
  const known = Array.from({ length: 1000 }, (_, i) => `compute-${i}-rack-${i % 40}`);
  const asked = Array.from({ length: 50 }, (_, i) => `compte-${i}-rack-${i % 40}`);
  return compared(asked.length, {
    ours: () => asked.map((name) => nearest(name, known)),
    library: () => asked.map((name) => closest(name, known)),
  });
}

async function store(servers: string) {
  type Store = {
    putBlob(meta: { name: string }, body: Uint8Array): Promise<unknown>;
    getBlob(name: string): Promise<Uint8Array | null>;
  };
  const { Objm } = await library<{ Objm: new (js: unknown) => { create(name: string): Promise<Store> } }>(
    '@nats-io/obj',
  );
  const log = await connectEventLog({ servers: [servers], name: 'bench' });
  const nc = await connect({ servers });
  try {
    await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: [] });
    const other = await new Objm(jetstream(nc)).create('theirs');
    const objects = 50;
    let made = 0;
    // Text with random figures, as snapshots are: it packs to about half.
    const body = () =>
      new TextEncoder().encode(
        Array.from({ length: 8000 }, () => `{"name":"compute-${made++}","value":${Math.random()}}`).join('\n'),
      );
    const each = async (act: (bytes: Uint8Array) => Promise<unknown>) => {
      for (let i = 0; i < objects; i++) await act(body());
    };
    return await compared(objects, {
      ours: () => each(async (bytes) => log.objects.get(await log.objects.put(bucketNames.details, 'bench', bytes))),
      library: () =>
        each(async (bytes) => {
          const name = `object-${made}`;
          await other.putBlob({ name }, bytes);
          await other.getBlob(name);
        }),
    });
  } finally {
    await log.close();
    await nc.close();
  }
}

/** Tasks that are there already, eight at a time, each done with an answer that the server confirms. */
async function queue(servers: string) {
  const log = await connectEventLog({ servers: [servers], name: 'bench' });
  const nc = await connect({ servers });
  try {
    await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu'] });
    const manager = await jetstreamManager(nc);
    const [stream, durable] = ['theirs', 'worker'];
    await manager.streams.add({ name: stream, subjects: [stream] });
    await manager.consumers.add(stream, { durable_name: durable, ack_policy: AckPolicy.Explicit, max_ack_pending: 8 });
    const consumer = await jetstream(nc).consumers.get(stream, durable);
    const tasks = 500;
    let made = 0;
    return await compared(tasks, {
      ours: async () => {
        for (let i = 0; i < tasks; i++) await log.append(taskMessage(++made));
        let done = 0;
        await new Promise<void>((resolve) => {
          const worker = log.tasks({
            aggregates: ['gpu'],
            concurrency: 8,
            ackWaitMs: 30_000,
            handle: async () => {
              if (++done === tasks) setImmediate(() => void worker.stop().then(resolve));
              return { kind: 'done' };
            },
          });
        });
      },
      library: async () => {
        for (let i = 0; i < tasks; i++) await jetstream(nc).publish(stream, JSON.stringify(taskMessage(++made)));
        const messages = await consumer.consume({ max_messages: 8 });
        let done = 0;
        for await (const message of messages) {
          message.json();
          await message.ackAck();
          if (++done === tasks) break;
        }
      },
    });
  } finally {
    await log.close();
    await nc.close();
  }
}

if (third.startsWith(SERVE)) await serve(third.slice(SERVE.length));
else {
  const server = await startNatsServer();
  const parts: Readonly<Record<string, () => Promise<object>>> = {
    http,
    limits,
    caches,
    suggestions,
    store: () => store(server.url),
    queue: () => queue(server.url),
  };
  try {
    const wanted = third === '' ? Object.keys(parts) : third.split(',');
    const figures: Record<string, object> = {};
    for (const name of wanted) figures[name] = (await parts[name]?.()) ?? {};
    console.log(JSON.stringify({ rounds, ...figures }, null, 2));
  } finally {
    await server.stop();
  }
}
