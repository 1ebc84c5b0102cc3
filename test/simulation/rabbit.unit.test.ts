import { consume } from '@kronos/notifications';
import { expect, it } from 'vitest';
import { Chance } from './chance.ts';
import { SimulatedRabbit } from './rabbit.ts';
import { Process, World } from './world.ts';

const SECOND = 1000;

/** A cloud's RabbitMQ and what consumers of it stored. */
function bed() {
  const chance = new Chance('rabbit');
  const world = new World(chance);
  const rabbit = new SimulatedRabbit(world, chance);
  const stored: string[] = [];
  const states: string[] = [];
  const open = (name: string, store: (text: string) => Promise<'stored' | 'bad'>): Process => {
    const process = new Process(world, name, chance);
    const broker = { port: 5672, username: 'nova', password: 'secret' };
    process.enter(() =>
      consume(
        {
          transport: {
            brokers: ['rabbit-1', 'rabbit-2'].map((host) => ({ ...broker, host })),
            virtualHost: '/',
            tls: false,
          },
          tls: { caFile: null, certFile: null, keyFile: null },
          exchange: 'nova',
          topic: 'versioned_notifications',
          queue: 'kronos',
          queueType: 'quorum',
          name,
          clock: process.clock,
          ready: () => true,
          store: (body) => store(new TextDecoder().decode(body)),
          onState: ({ connected, detail }) => states.push(`${name} ${connected ? 'connected' : 'lost'} ${detail}`),
        },
        rabbit.connect(process),
      ),
    );
    return process;
  };
  const keep = async (text: string): Promise<'stored'> => {
    stored.push(text);
    return 'stored';
  };
  const publish = (...texts: string[]): void => {
    for (const text of texts) rabbit.publish(new TextEncoder().encode(text));
  };
  return { world, rabbit, stored, states, open, keep, publish };
}

it('what was not acknowledged by a consumer that is killed is delivered to another one', async () => {
  const { world, stored, open, keep, publish } = bed();
  const held: string[] = [];
  const first = open('a', (text) => {
    held.push(text);
    return new Promise(() => undefined);
  });
  await world.run(SECOND);
  publish('one', 'two');
  await world.run(2 * SECOND);
  expect(held.sort()).toEqual(['one', 'two']);
  open('b', keep);
  await world.run(3 * SECOND);
  expect(stored).toEqual([]);
  first.kill();
  await world.run(4 * SECOND);
  expect(stored.sort()).toEqual(['one', 'two']);
});

it('a message that could not be stored comes again after the connection was closed', async () => {
  const { world, stored, states, open, keep, publish } = bed();
  let failures = 2;
  open('a', async (text) => {
    if (failures-- > 0) throw new Error('the log is away');
    return keep(text);
  });
  await world.run(SECOND);
  publish('one');
  await world.run(60 * SECOND);
  expect(stored).toEqual(['one']);
  expect(states.filter((state) => state.includes('the log is away'))).toHaveLength(2);
});

it('the other broker takes over, and while both are gone messages are kept or lost', async () => {
  const { world, rabbit, stored, states, open, keep, publish } = bed();
  open('a', keep);
  await world.run(SECOND);
  expect(states).toEqual(['a connected rabbit-1:5672']);
  rabbit.stop('rabbit-1', 120 * SECOND, true);
  await world.run(30 * SECOND);
  expect(states.at(-1)).toBe('a connected rabbit-2:5672');
  rabbit.stop('rabbit-2', 60 * SECOND, true);
  publish('kept');
  await world.run(300 * SECOND);
  expect(stored).toEqual(['kept']);
  for (const host of ['rabbit-1', 'rabbit-2']) rabbit.stop(host, 60 * SECOND, false);
  publish('lost');
  await world.run(600 * SECOND);
  expect(stored).toEqual(['kept']);
});

it('a connection that is cut off silently is left by both ends, and its messages come again', async () => {
  const { world, rabbit, stored, open, keep, publish } = bed();
  open('a', keep);
  await world.run(SECOND);
  rabbit.cut('a', new Chance('cut'));
  publish('one');
  await world.run(120 * SECOND);
  expect(stored).toEqual(['one']);
});

it('a queue that is deleted is declared again', async () => {
  const { world, rabbit, stored, open, keep, publish } = bed();
  open('a', keep);
  await world.run(SECOND);
  rabbit.dropQueue();
  publish('while there is no queue');
  await world.run(60 * SECOND);
  publish('one');
  await world.run(61 * SECOND);
  expect(stored).toEqual(['one']);
});
