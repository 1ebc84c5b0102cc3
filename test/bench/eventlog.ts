/**
 * The event log: how fast a state is rebuilt from it, beside the bare ordered consumer of the client on the same messages,
 * how fast from a checkpoint, and how fast it is written. The history is one that a running Kronos would write: decisions,
 * releases, attempts with retries and failures, commands. Prints JSON; the kinds of reading alternate, rates are medians
 * per second, and ratios compare the readings of one round, so that a busy machine slows both sides.
 *
 *   npm run bench:eventlog [events, default 1000000] [rounds, default 3]
 */
import { availableParallelism } from 'node:os';
import { foldLog, writeCheckpoint } from '@kronos/checkpoints';
import { defaultStorageLimits, familyOf, type LogEvent, streamNames } from '@kronos/contracts';
import { connectEventLog } from '@kronos/eventlog';
import { appendAll, startNatsServer } from '@kronos/eventlog/testing';
import { anchorOf, canonicalState, createFolder, folding } from '@kronos/projections';
import { randomHistory } from '@kronos/projections/testing';
import { type ConsumeOptions, jetstream } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';

const events = Number(process.argv[2] ?? 1_000_000);
const rounds = Number(process.argv[3] ?? 3);
/** Events after the checkpoint that a reader starts from. */
const TAIL = 10_000;
const AGGREGATES = Array.from({ length: 10 }, (_, i) => `aggregate-${i}`);

function* history(count: number): Generator<LogEvent> {
  let written = 0;
  for (const { event } of randomHistory({
    seed: 1,
    cycles: Number.POSITIVE_INFINITY,
    aggregates: AGGREGATES,
    vms: 500,
    hosts: 20,
    repeats: 0,
  })) {
    if (event.type === 'unreadable') continue;
    yield event;
    written += 1;
    if (written === count) return;
  }
}

const timed = async (act: () => Promise<void>): Promise<number> => {
  const began = performance.now();
  await act();
  return performance.now() - began;
};
const rate = (ms: number, count = events): number => Math.round((count / ms) * 1000);
const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;

const server = await startNatsServer();
const log = await connectEventLog({ servers: [server.url], name: 'bench' });
const nc = await connect({ servers: server.url });
try {
  await log.provision({
    limits: { ...defaultStorageLimits, logMaxBytes: 8 * 2 ** 30, snapshotMaxBytes: 2 ** 30 },
    replicas: 1,
    aggregates: [],
  });
  const oneByOne = Math.min(2_000, events);
  const all = history(events);
  const singleMs = await timed(async () => {
    const last = new Map<string, number>();
    for (let i = 0; i < oneByOne; i++) {
      const event = all.next().value;
      if (event === undefined) break;
      const expected = last.get(event.aggregate + familyOf(event.type)) ?? 0;
      const { sequence } = await log.append(event, { expectedLastSequence: expected });
      last.set(event.aggregate + familyOf(event.type), sequence);
    }
  });
  const writeMs = await timed(async () => {
    await appendAll(log, all);
  });
  const usage = await log.usage(streamNames.log);

  const bare = async (body: (data: Uint8Array) => void, options: ConsumeOptions = { max_messages: 5_000 }) => {
    const consumer = await jetstream(nc).consumers.get(streamNames.log);
    const messages = await consumer.consume(options);
    let seen = 0;
    for await (const message of messages) {
      body(message.data);
      if (++seen === events) break;
    }
  };
  const decoder = new TextDecoder();
  let rebuilt = createFolder().snapshot();
  const readings = {
    bare: () => bare(() => undefined),
    bareAsTheClientComes: () => bare(() => undefined, {}),
    bareAndJsonParse: () => bare((data) => JSON.parse(decoder.decode(data))),
    viewCounting: async () => {
      const view = await log.view({ initial: 0, evolve: (n) => n + 1, snapshot: (n) => n });
      if (view.at().state !== events) throw new Error(`${view.at().state} of ${events} events were folded`);
      await view.close();
    },
    viewFoldingState: async () => {
      const view = await log.view(folding());
      rebuilt = view.at().state;
      await view.close();
    },
  };
  type Reading = keyof typeof readings;
  const names = Object.keys(readings) as Reading[];
  const runs: Record<Reading, number[]> = {
    bare: [],
    bareAsTheClientComes: [],
    bareAndJsonParse: [],
    viewCounting: [],
    viewFoldingState: [],
  };
  for (let round = 0; round < rounds; round++)
    // Alternate the order, so that no kind is always the first or the last of its round.
    for (const name of round % 2 === 0 ? names : names.toReversed()) runs[name].push(await timed(readings[name]));

  const folder = createFolder();
  let anchor = '';
  for await (const stored of log.replay({ to: events - TAIL })) {
    folder.apply(stored);
    anchor = anchorOf(stored);
  }
  await writeCheckpoint(log, folder.snapshot(), {
    anchor,
    by: { service: 'ledger', instance: 'bench', version: '0' },
    nowMs: 0,
  });
  const checkpointMs: number[] = [];
  let restarted = folder.snapshot();
  for (let round = 0; round < 5; round++)
    checkpointMs.push(
      await timed(async () => {
        const view = await foldLog(log);
        restarted = view.at().state;
        await view.close();
      }),
    );
  if (canonicalState(restarted) !== canonicalState(rebuilt)) throw new Error('the checkpoint led to another state');

  const ratios = (name: Reading, to: Reading) => {
    const rounds = runs[name].map((ms, round) => Number(((runs[to][round] ?? 0) / ms).toFixed(2)));
    return { median: median(rounds), rounds };
  };
  process.stdout.write(
    `${JSON.stringify(
      {
        server: server.version,
        node: process.version,
        cpus: availableParallelism(),
        events,
        bytesPerEvent: Math.round(usage.bytes / usage.messages),
        perSecond: {
          appendOneByOneExpected: rate(singleMs, oneByOne),
          appendAll: rate(writeMs, events - oneByOne),
          ...Object.fromEntries(names.map((name) => [name, rate(median(runs[name]))])),
        },
        ratioToBare: Object.fromEntries(names.slice(1).map((name) => [name, ratios(name, 'bare')])),
        ratioToBareAsTheClientComes: { viewFoldingState: ratios('viewFoldingState', 'bareAsTheClientComes') },
        fromCheckpoint: {
          eventsBehind: TAIL,
          checkpointBytes: (await log.usage(streamNames.checkpoints)).bytes,
          medianMs: Math.round(median(checkpointMs)),
          roundsMs: checkpointMs.map(Math.round),
        },
      },
      null,
      2,
    )}\n`,
  );
} finally {
  await nc.close();
  await log.close();
  await server.stop();
}
