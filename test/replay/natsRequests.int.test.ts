import {
  bucketDefinitions,
  bucketNames,
  defaultStorageLimits,
  parseSubject,
  streamDefinitions,
  streamNames,
} from '@kronos/contracts';
import { taskConsumerName } from '@kronos/eventlog';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answers, commands, type NatsDocsWorld, openNatsDocsWorld, sayAgain, words } from './natsDocs.ts';

/**
 * The commands of docs/nats.md without the nats command: what they name must exist, and the requests that the command
 * makes of a server, made with the client library, must have the answer that the document promises. How the command
 * prints it, and whether it takes these words, only natsCli.int.test.ts can say.
 */

/** The arguments and flags of each of these subcommands of natscli. */
const grammar: Readonly<Record<string, { readonly takes: RegExp; readonly flags: Readonly<Record<string, boolean>> }>> =
  {
    'stream ls': { takes: /^$/, flags: {} },
    'stream info': { takes: /^stream$/, flags: {} },
    'stream subjects': { takes: /^stream$/, flags: {} },
    'stream get': { takes: /^stream( number)?$/, flags: { 'last-for': true } },
    'stream view': { takes: /^stream number$/, flags: { subject: true } },
    'stream backup': { takes: /^stream directory$/, flags: { 'no-progress': false } },
    'consumer ls': { takes: /^stream$/, flags: {} },
    'consumer info': { takes: /^stream consumer$/, flags: {} },
    'object ls': { takes: /^bucket$/, flags: {} },
    sub: { takes: /^subject$/, flags: {} },
  };

const consumers = ['gpu', 'general', 'web eu/1'].map(taskConsumerName);
const streams: readonly string[] = Object.values(streamNames);
const buckets: readonly string[] = Object.values(bucketNames);

function kindOf(word: string): string {
  if (streams.includes(word)) return 'stream';
  if (buckets.includes(word)) return 'bucket';
  if (consumers.includes(word)) return 'consumer';
  if (/^\d+$/.test(word)) return 'number';
  if (word === 'kronos.>' || parseSubject(word) !== null) return 'subject';
  return word === 'backup' ? 'directory' : `unknown ${word}`;
}

type Parsed = {
  readonly command: string;
  readonly names: readonly string[];
  readonly flags: ReadonlyMap<string, string>;
};

/** @throws for a subcommand, a name or a flag that is not there */
function parse(line: string): Parsed {
  const [program, ...rest] = words(line);
  if (program !== 'nats') throw new Error(`${line}: not a command of nats`);
  const command = [rest.slice(0, 1), rest.slice(0, 2)].map((part) => part.join(' ')).find((name) => name in grammar);
  const known = command === undefined ? undefined : grammar[command];
  if (command === undefined || known === undefined) throw new Error(`${line}: no such subcommand`);
  const names: string[] = [];
  const flags = new Map<string, string>();
  const left = rest.slice(command.split(' ').length);
  for (let i = 0; i < left.length; i++) {
    const word = left[i] ?? '';
    if (!word.startsWith('--')) {
      names.push(word);
      continue;
    }
    const takesValue = known.flags[word.slice(2)];
    if (takesValue === undefined) throw new Error(`${line}: no flag ${word}`);
    flags.set(word.slice(2), takesValue ? (left[++i] ?? '') : '');
  }
  if (!known.takes.test(names.map(kindOf).join(' '))) throw new Error(`${line}: ${names.map(kindOf).join(' ')}`);
  for (const name of ['last-for', 'subject']) {
    const subject = flags.get(name);
    if (subject !== undefined && kindOf(subject) !== 'subject') throw new Error(`${line}: no subject ${subject}`);
  }
  return { command, names, flags };
}

describe('docs/nats.md', () => {
  it('has an answer to look for in every command, and no other', () => {
    expect(commands.toSorted()).toEqual(Object.keys(answers).toSorted());
  });

  it.each(commands)('names only what there is: %s', (line) => {
    expect(() => parse(line)).not.toThrow();
  });

  it.each([
    'nats stream info KRONOS_EVENTS',
    'nats stream get KRONOS_LOG --last-by kronos.plans.gpu',
    'nats stream get KRONOS_LOG --last-for kronos.plan.gpu',
    'nats consumer info KRONOS_MIGRATIONS task-gpu',
    'nats stream peek KRONOS_LOG',
    'nats object ls kronos-snapshot',
  ])('would be found to name what there is not: %s', (line) => {
    expect(() => parse(line)).toThrow();
  });

  it('names streams and buckets by the definitions that are provisioned', () => {
    expect(
      streamDefinitions(defaultStorageLimits)
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(streams.toSorted());
    expect(
      bucketDefinitions(defaultStorageLimits)
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(buckets.toSorted());
  });
});

describe('the requests behind docs/nats.md', () => {
  let world: NatsDocsWorld;
  let nc: NatsConnection;
  let jsm: JetStreamManager;
  beforeAll(async () => {
    world = await openNatsDocsWorld();
    nc = await connect({ servers: world.natsUrl });
    jsm = await jetstreamManager(nc);
  });
  afterAll(async () => {
    await nc?.close();
    await world?.close();
  });

  async function message(stream: string, query: Parameters<JetStreamManager['streams']['getMessage']>[1]) {
    const found = await jsm.streams.getMessage(stream, query);
    return found === null ? null : { sequence: found.seq, text: found.string() };
  }

  /** The server's answers to the requests that natscli makes for a command. */
  async function ask({ command, names, flags }: Parsed, line: string): Promise<string> {
    const [first = '', second = ''] = names;
    switch (command) {
      case 'stream ls':
        return JSON.stringify((await jsm.streams.list().next()).map(({ config }) => config.name));
      case 'stream info':
        return JSON.stringify(await jsm.streams.info(first));
      case 'stream subjects':
        return JSON.stringify((await jsm.streams.info(first, { subjects_filter: '>' })).state.subjects);
      case 'stream get': {
        const subject = flags.get('last-for');
        const query = subject === undefined ? { seq: Number(second) } : { last_by_subj: subject };
        return (await message(first, query))?.text ?? '';
      }
      case 'stream view': {
        // A page reads one message after the other, which a work queue allows too.
        const texts: string[] = [];
        for (let seq = 1; texts.length < Number(second); ) {
          const query = { seq, next_by_subj: flags.get('subject') ?? '>' };
          const next = await message(first, query);
          if (next === null) break;
          texts.push(next.text);
          seq = next.sequence + 1;
        }
        return texts.join('\n');
      }
      case 'object ls':
        return (await message(`OBJ_${first}`, { last_by_subj: `$O.${first}.M.>` }))?.text ?? '';
      case 'consumer ls':
        return JSON.stringify((await jsm.consumers.list(first).next()).map(({ name }) => name));
      case 'consumer info': {
        const { num_ack_pending: held, num_pending: waiting } = await jsm.consumers.info(first, second);
        return `Outstanding Acks: ${held}, Unprocessed Messages: ${waiting}`;
      }
      case 'stream backup': {
        const inbox = 'kronos-backup-test';
        const chunks = nc.subscribe(inbox, { max: 1 });
        const answer = await nc.request(
          `$JS.API.STREAM.SNAPSHOT.${first}`,
          JSON.stringify({ deliver_subject: inbox, no_consumers: true, chunk_size: 1024 }),
        );
        for await (const chunk of chunks) expect(chunk.data.length).toBeGreaterThan(0);
        expect(answer.json<{ error?: unknown }>().error).toBeUndefined();
        return '';
      }
      case 'sub': {
        const subscription = nc.subscribe(first);
        await nc.flush();
        const stop = sayAgain(world, line);
        let text = '';
        for await (const one of subscription) {
          text += one.string();
          if (answers[line]?.test(text)) break;
        }
        stop();
        return text;
      }
      default:
        throw new Error(`nobody asks for ${command}`);
    }
  }

  it.each(commands)('%s', async (line) => {
    expect(await ask(parse(line), line)).toMatch(answers[line] ?? /$^/);
  });
});
