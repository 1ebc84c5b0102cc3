import type { Message } from '@kronos/contracts';
import { familyOf, subject as subjectOf } from '@kronos/contracts';
import { append, lastMessageOf } from './append.ts';
import { appendMany } from './appendMany.ts';
import { capabilitiesOf } from './capabilities.ts';
import { copy, restore } from './copy.ts';
import { replay, replaySnapshots, type Scope, snapshots, streamOf, tail } from './iterate.ts';
import { Link } from './link.ts';
import { loadSnapshot, Objects, snapshotTaken, storeSnapshot } from './objects.ts';
import { provision, verify } from './provision.ts';
import { readServerClock } from './serverClock.ts';
import { sinkWorker, taskWorker } from './tasks.ts';
import type {
  AppendOptions,
  EventLog,
  EventLogHooks,
  Health,
  LogView,
  NatsOptions,
  TaskWorker,
  ViewOptions,
} from './types.ts';
import { streamInfo, View } from './view.ts';
import { natsWire, type Wire } from './wire.ts';

export * from './capabilities.ts';
export { bucketStream, taskConsumerName } from './definitions.ts';
export * from './errors.ts';
export { cloudEvent, contextFrom } from './headers.ts';
export { streamOf } from './iterate.ts';
export { inboxPrefixOf } from './link.ts';
export { digestOf } from './objects.ts';
export type * from './types.ts';
export { natsWire, type Wire } from './wire.ts';

/**
 * Connects to NATS and stays connected for ever. Only the first connection is bounded.
 *
 * @throws NatsUnreachable, NatsRefused, ServerTooOld
 */
export async function connectEventLog(
  options: NatsOptions,
  hooks: EventLogHooks = {},
  wire: Wire = natsWire,
): Promise<EventLog> {
  const link = await Link.open(options, hooks, wire);
  const workers = new Set<TaskWorker>();
  const views = new Set<{ healthy(): Health; close(): Promise<void> }>();
  const ends = new Set<() => void>();
  const scope: Scope = {
    add(end) {
      ends.add(end);
      return () => ends.delete(end);
    },
  };
  const working = (worker: TaskWorker): TaskWorker => {
    workers.add(worker);
    return worker;
  };
  const objects = new Objects(link);
  let closing: Promise<void> | null = null;

  const log: EventLog = {
    get server() {
      return { version: link.version, capabilities: capabilitiesOf(link.version) };
    },
    provision: (wanted) => provision(link, wanted),
    verify: (need) => verify(link, options.replicas, need),
    append: (message: Message, appendOptions: AppendOptions = {}) =>
      append(link, streamOf[familyOf(message.type)], message, appendOptions),
    appendMany: (messages) => appendMany(link, messages),
    lastSequence: async (stream) => (await streamInfo(link, stream)).state.last_seq,
    lastSequenceOf: async (family, aggregate) =>
      (await lastMessageOf(link, streamOf[family], subjectOf(family, aggregate)))?.sequence ?? 0,
    async usage(stream) {
      const { state, config } = await streamInfo(link, stream);
      return {
        messages: state.messages,
        bytes: state.bytes,
        maxBytes: config.max_bytes,
        firstSequence: state.first_seq,
        lastSequence: state.last_seq,
      };
    },
    async accountLimits() {
      const info = () => link.jsm.getAccountInfo();
      const { max_storage: file, max_memory: memory } = (await link.insist(info, 'the limits of the account')).limits;
      return { file: file < 0 ? null : file, memory: memory < 0 ? null : memory };
    },
    readClock: () => readServerClock(link),
    replay: (range) => replay(link, scope, range),
    copy: (range) => copy(link, scope, range),
    restore: (events) => restore(link, events),
    async view<F, S>(wanted: ViewOptions<F, S>): Promise<LogView<S>> {
      const view = await View.open(link, wanted, (closed) => views.delete(closed));
      views.add(view);
      return view;
    },
    snapshots: ({ aggregates }) => snapshots(link, scope, aggregates),
    replaySnapshots: (range) => replaySnapshots(link, scope, range),
    tail: (wanted) => tail(link, scope, wanted),
    tasks: (wanted) => working(taskWorker(link, wanted, (stopped) => workers.delete(stopped))),
    sink: (wanted) => working(sinkWorker(link, wanted, (stopped) => workers.delete(stopped))),
    objects,
    async putSnapshot(snapshot, envelope, appendOptions = {}) {
      const message = snapshotTaken(snapshot, await storeSnapshot(objects, snapshot), envelope);
      return { ...(await append(link, streamOf.snapshots, message, appendOptions)), message };
    },
    getSnapshot: (taken) => loadSnapshot(objects, taken),
    healthy() {
      if (link.closed) return { ok: false, detail: 'the connection to NATS is closed' };
      if (!link.connected) return { ok: false, detail: 'there is no connection to NATS: trying to reconnect' };
      const ill = [...workers, ...views].map((part) => part.healthy()).find(({ ok }) => !ok);
      return ill ?? { ok: true, detail: `connected to nats-server ${link.version}` };
    },
    close() {
      closing ??= (async () => {
        await Promise.all([...workers].map((worker) => worker.stop()));
        await Promise.all([...views].map((view) => view.close()));
        for (const end of [...ends]) end();
        await link.close();
      })();
      return closing;
    },
  };
  return log;
}
