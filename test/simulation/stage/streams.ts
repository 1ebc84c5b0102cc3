import { streamNames, subject } from '@kronos/contracts';
import type { SimulatedServer } from '@kronos/eventlog/simulated';
import type { Chance } from '../chance.ts';
import { FORGED, forge } from '../forgery.ts';
import type { LogLoss } from '../logLoss.ts';
import { publish } from '../people/commands.ts';
import type { Custodian } from '../people/custodian.ts';
import type { LastMessages } from '../watch/lastMessages.ts';
import type { World } from '../world.ts';

export interface StreamActs {
  /** Publishes a task message again that was published before, under another id: the newest, or any of the last. */
  repeatTask(which: 'newest' | Chance): void;
  /** Stores an empty message on the log, which no reader understands; a custodian skips it later. */
  garble(aggregate: string, skippedAfterMs: number): void;
  /** A user of NATS publishes something that it may publish and must not have written; a custodian skips it later. */
  forge(chance: Chance): void;
  /** A stream takes nothing for a while. */
  fill(stream: string, ms: number): void;
  /**
   * These streams are lost, KRONOS_LOG among them, and are provisioned anew; `named`: under another name. A person states
   * later that the log is to be used as it is.
   */
  wipe(streams: readonly string[], goneMs: number, named: boolean, statedAfterMs: number): void;
}

interface Streams {
  readonly world: World;
  readonly server: SimulatedServer;
  readonly aggregates: readonly string[];
  readonly custodian: Custodian;
  readonly lastMessages: LastMessages;
  readonly logLoss: LogLoss;
}

/** How long a custodian takes to find a forged event, on average. */
const FOUND_MS = 300_000;

export function streamActs({ world, server, aggregates, custodian, lastMessages, logLoss }: Streams): StreamActs {
  let serial = 0;
  return {
    repeatTask(which) {
      const { tasks } = lastMessages;
      const one = which === 'newest' ? tasks.at(-1) : tasks.length === 0 ? undefined : which.pick(tasks);
      if (one !== undefined) publish(server, one.subject, one.data, `again-${++serial}`);
    },
    garble(aggregate, skippedAfterMs) {
      const sequence = publish(server, subject('controls', aggregate), new Uint8Array(), `garbled-${++serial}`);
      if (sequence !== null) custodian.skipAfter(sequence, aggregate, skippedAfterMs);
    },
    forge(chance) {
      const { family, body } = forge(chance, lastMessages.ofType);
      const aggregate = chance.pick(aggregates);
      const sequence = publish(server, subject(family, aggregate), body, `${FORGED}${chance.int(0, 1e9)}`);
      if (sequence !== null) custodian.skipAfter(sequence, aggregate, chance.exponential(FOUND_MS));
    },
    fill(name, ms) {
      const stream = server.stream(name);
      if (stream === undefined) return;
      stream.full = true;
      world.after(ms, () => {
        stream.full = false;
      });
    },
    wipe: (streams, goneMs, named, statedAfterMs) => logLoss.begin(streams, goneMs, named, statedAfterMs),
  };
}

/** The streams take everything again. */
export function allowWrites(server: SimulatedServer): void {
  for (const name of Object.values(streamNames)) {
    const stream = server.stream(name);
    if (stream !== undefined) stream.full = false;
  }
}
