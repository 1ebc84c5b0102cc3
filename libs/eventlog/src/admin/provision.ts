import {
  bucketDefinitions,
  defaultStorageLimits,
  MAX_MESSAGE_BYTES,
  type StorageLimits,
  streamDefinitions,
} from '@kronos/contracts';
import { type ConsumerConfig, JetStreamApiError, type StreamConfig } from '@nats-io/jetstream';
import { judgeNatsServer } from '../wire/capabilities.ts';
import { apiCodes } from '../wire/codes.ts';
import {
  bucketConfig,
  type DefinitionDifference,
  definitionDifferences,
  FIXED_FIELD,
  isSinkConsumer,
  LIMIT_FIELDS,
  NOTIFY_STREAMS,
  render,
  sinkConsumerConfig,
  sinkConsumerName,
  streamConfig,
  TASK_STREAM,
  taskConsumerConfig,
  taskConsumerName,
} from '../wire/definitions.ts';
import { NotProvisioned, PayloadTooSmall, ProvisionRefused, ServerTooOld, StreamUnavailable } from '../wire/errors.ts';
import type { Link } from '../wire/link.ts';
import { isNotFound, plainText } from '../wire/trouble.ts';
import type { Need, ProvisionOptions, ProvisionReport } from '../wire/types.ts';

type StreamWanted = { readonly what: string; readonly config: Partial<StreamConfig> & { readonly name: string } };

const streamsWanted = (limits: StorageLimits, replicas: number): StreamWanted[] => [
  ...streamDefinitions(limits).map((d) => ({ what: `stream ${d.name}`, config: streamConfig(d, replicas) })),
  ...bucketDefinitions(limits).map((d) => ({ what: `bucket ${d.name}`, config: bucketConfig(d, replicas) })),
];

const consumerWhat = (stream: string, name: string) => `consumer ${stream}/${name}`;

type Durable = {
  readonly stream: string;
  readonly what: string;
  /** Whose messages it holds. */
  readonly whose: string;
  readonly config: Partial<ConsumerConfig> & { readonly durable_name: string };
};

const taskDurable = (aggregate: string, replicas: number, ackWaitSeconds: number | undefined): Durable => ({
  stream: TASK_STREAM,
  what: consumerWhat(TASK_STREAM, taskConsumerName(aggregate)),
  whose: `the tasks of aggregate ${JSON.stringify(aggregate)}`,
  config: taskConsumerConfig(aggregate, replicas, ackWaitSeconds),
});

const sinkDurables = (sink: string, replicas: number): Durable[] =>
  NOTIFY_STREAMS.map((stream) => ({
    stream,
    what: consumerWhat(stream, sinkConsumerName(sink)),
    whose: `the notifications of [notify:${sink}]`,
    config: sinkConsumerConfig(sink, replicas),
  }));

/** So long may servers that have just started need to find each other and elect their leaders. */
const FORMING_MS = 30_000;

/** One request of provisioning or checking; null when the thing asked for is not there. */
async function get<T>(link: Link, what: string, act: () => Promise<T>): Promise<T | null> {
  const until = link.clock.monotonic() + Math.max(FORMING_MS, 3 * link.requestTimeoutMs);
  for (;;)
    try {
      return await link.insist(async () => {
        try {
          return await act();
        } catch (error) {
          if (isNotFound(error)) return null;
          throw error;
        }
      }, what);
    } catch (error) {
      // A cluster that has just started may have no leader yet, and not know all its servers.
      const forming =
        (error instanceof StreamUnavailable && !link.lacksJetStream(error)) ||
        (error instanceof JetStreamApiError && error.code === apiCodes.noSuitablePeers);
      if (forming && link.clock.monotonic() < until) {
        await link.clock.sleep(500);
        continue;
      }
      if (error instanceof JetStreamApiError) throw new ProvisionRefused(refusal(what, error), { cause: error });
      throw error;
    }
}

/** The server's own words, and what to do for the refusals that people meet. */
function refusal(what: string, error: JetStreamApiError): string {
  const remedies: Record<number, string> = {
    [apiCodes.noSuitablePeers]: 'too few servers for the number of replicas: add servers, or lower [nats] replicas',
    10023: 'the server has not enough room: raise max_file of its JetStream, or lower the limits in [nats]',
    10028: 'the server has not enough memory for JetStream: raise max_mem',
    10047:
      'the server has not enough room: raise max_file of its JetStream, or lower log_max_bytes and snapshot_max_bytes in [nats]',
    10052: 'this cannot be changed on what exists: make a backup, delete it and provision again',
    10065: 'another stream takes these subjects already: remove it, or use a separate account for Kronos',
    10074: 'a single server keeps one copy: use a cluster, or set [nats] replicas = 1',
  };
  const remedy = remedies[error.code];
  return `${what}: ${plainText(error)} (${error.code})${remedy === undefined ? '' : `; ${remedy}`}`;
}

const must = <T>(value: T | null, what: string): T => {
  if (value === null) throw new ProvisionRefused(`${what}: the server does not know it right after it was made`);
  return value;
};

/** @throws PayloadTooSmall when the server would refuse a message that Kronos may have to send */
function needPayload(link: Link): void {
  const allowed = link.maxPayload;
  if (allowed !== null && allowed < MAX_MESSAGE_BYTES) throw new PayloadTooSmall(allowed, MAX_MESSAGE_BYTES);
}

/** Fails if the server's answer differs from the request: older servers silently drop unknown fields. */
function agree(what: string, want: object, have: object): void {
  const differences = definitionDifferences({ ...want }, { ...have });
  if (differences.length > 0)
    throw new ProvisionRefused(
      `the server accepted the request and did something else:\n${differences.map((d) => `  ${render(what, d)}`).join('\n')}`,
    );
}

/** Creates or updates the streams, consumers and buckets. @throws ServerTooOld, PayloadTooSmall, ProvisionRefused */
export async function provisionJetStream(link: Link, options: ProvisionOptions): Promise<ProvisionReport> {
  const { verdict, text } = judgeNatsServer(link.version, options.replicas);
  if (verdict === 'refuse') throw new ServerTooOld(text);
  needPayload(link);
  const report = new Report();
  for (const wanted of streamsWanted(options.limits, options.replicas)) await provisionStream(link, wanted, report);
  const { aggregates, replicas, ackWaitSeconds, sinks = [] } = options;
  const durables: Durable[] = [
    ...aggregates.map((aggregate) => taskDurable(aggregate, replicas, ackWaitSeconds)),
    ...sinks.flatMap((sink) => sinkDurables(sink, replicas)),
  ];
  for (const durable of durables) await provisionDurable(link, durable, report);
  const { created, changed, unchanged, kept } = report;
  return { created, changed, unchanged, kept, extra: await extraConsumers(link, durables) };
}

/** The outcome for each stream and consumer. */
class Report {
  readonly created: string[] = [];
  readonly unchanged: string[] = [];
  readonly kept: string[] = [];
  readonly changed: { what: string; fields: string[] }[] = [];

  noteChange(what: string, differences: readonly DefinitionDifference[]): void {
    if (differences.length === 0) this.unchanged.push(what);
    else this.changed.push({ what, fields: differences.map((d) => d.field) });
  }
}

async function provisionStream(
  link: Link,
  { what, config }: ReturnType<typeof streamsWanted>[number],
  report: Report,
): Promise<void> {
  const { streams } = link.jsm;
  const found = await get(link, what, () => streams.info(config.name));
  if (found === null) {
    const made = must(await get(link, what, () => streams.add(config)), what);
    agree(what, config, made.config);
    report.created.push(what);
    return;
  }
  const update = async (wanted: typeof config) => {
    const made = must(await get(link, what, () => streams.update(wanted.name, wanted)), what);
    agree(what, wanted, made.config);
  };
  const differences = definitionDifferences(config, { ...found.config });
  const fixed = differences.find(({ field }) => field === FIXED_FIELD);
  const others = differences.filter((difference) => difference !== fixed);
  try {
    if (differences.length > 0) await update(config);
    report.noteChange(what, differences);
  } catch (error) {
    if (fixed === undefined || !(error instanceof ProvisionRefused)) throw error;
    // A server that cannot change this field refuses all the others with it.
    if (others.length > 0) await update({ ...config, [FIXED_FIELD]: found.config[FIXED_FIELD] });
    report.noteChange(what, others);
    report.kept.push(render(what, fixed));
  }
}

async function provisionDurable(link: Link, { stream, what, config }: Durable, report: Report): Promise<void> {
  const { consumers } = link.jsm;
  const found = await get(link, what, () => consumers.info(stream, config.durable_name));
  if (found === null) {
    const made = must(await get(link, what, () => consumers.add(stream, config)), what);
    agree(what, config, made.config);
    report.created.push(what);
    return;
  }
  const differences = definitionDifferences(config, { ...found.config });
  if (differences.length > 0) {
    const made = must(await get(link, what, () => consumers.update(stream, config.durable_name, config)), what);
    agree(what, config, made.config);
  }
  report.noteChange(what, differences);
}

/** The consumers of Kronos that no option asks for. */
async function extraConsumers(link: Link, durables: readonly Durable[]): Promise<string[]> {
  const wanted = new Set(durables.map(({ what }) => what));
  const extra: string[] = [];
  for (const stream of [TASK_STREAM, ...NOTIFY_STREAMS]) {
    const listed = await get(link, `consumers of ${stream}`, () => Array.fromAsync(link.jsm.consumers.list(stream)));
    for (const { name } of must(listed, `stream ${stream}`)) {
      const what = consumerWhat(stream, name);
      // The other consumers of these streams are readers.
      if (!wanted.has(what) && (stream === TASK_STREAM || isSinkConsumer(name))) extra.push(what);
    }
  }
  return extra;
}

/** @throws NotProvisioned with every difference, PayloadTooSmall */
export async function verifyStreams(link: Link, replicas: number | undefined, need: Need): Promise<void> {
  needPayload(link);
  const differences: string[] = [];
  const ignore = [
    FIXED_FIELD,
    ...(need.limits === undefined ? LIMIT_FIELDS : ['description']),
    ...(replicas === undefined ? ['num_replicas'] : []),
  ];
  const known = streamsWanted(need.limits ?? defaultStorageLimits, replicas ?? 1);
  const names = [...need.streams.map((name) => `stream ${name}`), ...need.buckets.map((name) => `bucket ${name}`)];
  for (const what of names) {
    const wanted = known.find((k) => k.what === what);
    if (wanted === undefined) throw new RangeError(`Kronos has no ${what}`);
    const found = await get(link, what, () => link.jsm.streams.info(wanted.config.name));
    if (found === null) differences.push(`${what} is missing`);
    else
      differences.push(
        ...definitionDifferences(wanted.config, { ...found.config }, ignore).map((d) => render(what, d)),
      );
  }
  const durables = [
    ...need.taskConsumers.map((aggregate) => taskDurable(aggregate, replicas ?? 1, need.ackWaitSeconds)),
    ...(need.sinks ?? []).flatMap((sink) => sinkDurables(sink, replicas ?? 1)),
  ];
  for (const { stream, what, whose, config } of durables) {
    const found = await get(link, what, () => link.jsm.consumers.info(stream, config.durable_name));
    if (found === null) {
      differences.push(`${what} is missing (${whose})`);
      continue;
    }
    const unasked = stream === TASK_STREAM && need.ackWaitSeconds === undefined ? [...ignore, 'ack_wait'] : ignore;
    differences.push(...definitionDifferences(config, { ...found.config }, unasked).map((d) => render(what, d)));
  }
  if (differences.length > 0) throw new NotProvisioned(differences);
}
