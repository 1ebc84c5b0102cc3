import { familyOf, subject as subjectOf } from '@kronos/contracts';
import { copy, restoreCopy } from './admin/copy.ts';
import { provisionJetStream, verifyStreams } from './admin/provision.ts';
import { append, lastMessageOf } from './log/append.ts';
import { type ReadScope, replay, replaySnapshots, snapshots, streamOf, tail } from './log/iterate.ts';
import { readServerClock } from './log/serverClock.ts';
import { streamInfo, View } from './log/view.ts';
import { loadSnapshot, Objects, snapshotMessage, storeSnapshot } from './objects/objects.ts';
import { sinkWorker, taskWorker } from './queue/tasks.ts';
import { capabilitiesOf } from './wire/capabilities.ts';
import { Link } from './wire/link.ts';
import { type Seams, unknownWrite, type Wrap, type Write, type Written } from './wire/seams.ts';
import type {
  EventLog,
  EventLogHooks,
  LogView,
  NatsOptions,
  StreamHealth,
  TaskWorker,
  ViewOptions,
} from './wire/types.ts';
import { natsWire, type Wire } from './wire/wire.ts';

export { streamOf } from './log/iterate.ts';
export { digestOf, isUnusableObject, nullIfUnusable } from './objects/objects.ts';
export * from './wire/capabilities.ts';
export { bucketStream, taskConsumerName } from './wire/definitions.ts';
export * from './wire/errors.ts';
export { cloudEvent, contextFrom } from './wire/headers.ts';
export { inboxPrefixOf } from './wire/link.ts';
export * from './wire/seams.ts';
export type * from './wire/types.ts';
export { natsWire, type Wire } from './wire/wire.ts';

/**
 * Connects to NATS and stays connected for ever. Only the first connection is bounded.
 *
 * @param wrap decorates all that is written and read, see {@link Seams}
 * @throws NatsUnreachable, NatsRefused, ServerTooOld
 */
export async function connectEventLog(
  options: NatsOptions,
  hooks: EventLogHooks = {},
  wire: Wire = natsWire,
  wrap: Wrap = (seams) => seams,
): Promise<EventLog> {
  const seams = wrap(
    { append: (write) => writeTo(link, objects, write), read: wire.read },
    { usage: (stream) => usageOf(link, stream) },
  );
  const link = await Link.open(options, hooks, { ...wire, read: seams.read });
  const parts = new OpenParts();
  const { scope } = parts;
  const objects = new Objects(link);
  let closing: Promise<void> | null = null;

  const log: EventLog = {
    get server() {
      return { version: link.version, capabilities: capabilitiesOf(link.version) };
    },
    provision: (wanted) => provisionJetStream(link, wanted),
    verify: (need) => verifyStreams(link, options.replicas, need),
    async append(message, appendOptions = {}) {
      const { message: _, ...appended } = await seams.append({ kind: 'message', message, options: appendOptions });
      return appended;
    },
    lastSequence: async (stream) => (await streamInfo(link, stream)).state.last_seq,
    lastSequenceOf: async (family, aggregate) =>
      (await lastMessageOf(link, streamOf[family], subjectOf(family, aggregate)))?.sequence ?? 0,
    usage: (stream) => usageOf(link, stream),
    async accountLimits() {
      const info = () => link.jsm.getAccountInfo();
      const { max_storage: file, max_memory: memory } = (await link.insist(info, 'the limits of the account')).limits;
      return { file: file < 0 ? null : file, memory: memory < 0 ? null : memory };
    },
    readClock: () => readServerClock(link),
    replay: (range) => replay(link, scope, range),
    copy: (range) => copy(link, scope, range),
    restore: (events) => restoreCopy(link, events),
    view: <F, S>(wanted: ViewOptions<F, S>): Promise<LogView<S>> =>
      parts.view((closed) => View.open(link, wanted, closed)),
    snapshots: ({ aggregates }) => snapshots(link, scope, aggregates),
    replaySnapshots: (range) => replaySnapshots(link, scope, range),
    tail: (wanted) => tail(link, scope, wanted),
    tasks: (wanted) => parts.worker((stopped) => taskWorker(link, wanted, stopped)),
    sink: (wanted) => parts.worker((stopped) => sinkWorker(link, wanted, stopped)),
    objects: {
      put: (bucket, label, body) => seams.append({ kind: 'object', bucket, label, body }),
      get: (ref) => objects.get(ref),
    },
    putSnapshot: (snapshot, envelope, appendOptions = {}) =>
      seams.append({ kind: 'snapshot', snapshot, envelope, options: appendOptions }),
    getSnapshot: (taken) => loadSnapshot(objects, taken),
    healthy() {
      if (link.closed) return { ok: false, detail: 'the connection to NATS is closed' };
      if (!link.connected) return { ok: false, detail: 'there is no connection to NATS: trying to reconnect' };
      return parts.ill() ?? { ok: true, detail: `connected to nats-server ${link.version}` };
    },
    close() {
      closing ??= (async () => {
        await parts.close();
        await link.close();
      })();
      return closing;
    },
  };
  return log;
}

type OpenView = { healthy(): StreamHealth; close(): Promise<void> };

/** The open readers and workers of a log: the log is healthy when each of them is, and closing the log ends them. */
class OpenParts {
  readonly #workers = new Set<TaskWorker>();
  readonly #views = new Set<OpenView>();
  readonly #ends = new Set<() => void>();
  readonly scope: ReadScope = {
    add: (end) => {
      this.#ends.add(end);
      return () => this.#ends.delete(end);
    },
  };

  worker(open: (stopped: (worker: TaskWorker) => void) => TaskWorker): TaskWorker {
    const worker = open((stopped) => this.#workers.delete(stopped));
    this.#workers.add(worker);
    return worker;
  }

  async view<V extends OpenView>(open: (closed: (view: OpenView) => void) => Promise<V>): Promise<V> {
    const view = await open((closed) => this.#views.delete(closed));
    this.#views.add(view);
    return view;
  }

  /** The first part that is not healthy. */
  ill(): StreamHealth | undefined {
    return [...this.#workers, ...this.#views].map((part) => part.healthy()).find(({ ok }) => !ok);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    await Promise.all([...this.#views].map((view) => view.close()));
    for (const end of [...this.#ends]) end();
  }
}

/** The innermost append: to the server. */
async function writeTo<W extends Write>(link: Link, objects: Objects, write: W): Promise<Written<W>> {
  const store = async (one: Write): Promise<Written<Write>> => {
    switch (one.kind) {
      case 'message': {
        const { message, options } = one;
        return { ...(await append(link, streamOf[familyOf(message.type)], message, options)), message };
      }
      case 'snapshot': {
        const { snapshot, envelope, options } = one;
        const message = snapshotMessage(snapshot, await storeSnapshot(objects, snapshot), envelope);
        return { ...(await append(link, streamOf.snapshots, message, options)), message };
      }
      case 'object':
        return objects.put(one.bucket, one.label, one.body);
      default:
        return unknownWrite(one);
    }
  };
  return (await store(write)) as Written<W>;
}

async function usageOf(link: Link, stream: string): ReturnType<EventLog['usage']> {
  const { state, config } = await streamInfo(link, stream);
  return {
    messages: state.messages,
    bytes: state.bytes,
    maxBytes: config.max_bytes,
    lastSequence: state.last_seq,
  };
}
