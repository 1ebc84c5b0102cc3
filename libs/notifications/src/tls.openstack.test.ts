import { systemClock } from '@kronos/clock';
import { until } from '@kronos/clock/testing';
import type { BrokerTransport } from '@kronos/config';
import { connect } from 'amqplib';
import { expect, onTestFinished, test } from 'vitest';
import { bedRoot, bedUrls } from '../../../test/openstack/urls.ts';
import { type ConsumeOptions, consume } from './consume.ts';

const EXCHANGE = 'kronos-tls';
const tls = (name: string): string => `${bedRoot}/lab/tls/${name}`;
const whole = { caFile: tls('ca.crt'), certFile: tls('client.crt'), keyFile: tls('client.key') };
const WITHIN_MS = 60_000;

/** Takes messages from a queue of its own over TLS, and keeps the states of the connection. */
function taking(queue: string, options: { readonly host?: string; readonly tls: ConsumeOptions['tls'] }) {
  const stored: string[] = [];
  const states: { readonly connected: boolean; readonly detail: string }[] = [];
  const { host = '127.0.0.1' } = options;
  const transport: BrokerTransport = {
    brokers: [{ host, port: bedUrls.rabbitTlsPort, username: 'guest', password: 'guest' }],
    virtualHost: '/',
    tls: true,
  };
  const consuming = consume({
    transport,
    tls: options.tls,
    exchange: EXCHANGE,
    topic: 'versioned_notifications',
    queue,
    queueType: 'classic',
    name: 'kronos-tls-test',
    clock: systemClock,
    ready: () => true,
    store: async (body) => {
      stored.push(new TextDecoder().decode(body));
      return 'stored';
    },
    onState: (state) => states.push(state),
  });
  onTestFinished(() => consuming.stop());
  return { stored, states };
}

/** Without TLS, as Nova does it here. */
async function publisher() {
  const connection = await connect({
    hostname: '127.0.0.1',
    port: bedUrls.rabbitPort,
    username: 'guest',
    password: 'guest',
  });
  onTestFinished(() => connection.close());
  const channel = await connection.createConfirmChannel();
  await channel.assertExchange(EXCHANGE, 'topic', { durable: false, autoDelete: true });
  return channel;
}

test('with the CA and a client certificate messages are taken over TLS', async () => {
  const channel = await publisher();
  const { stored, states } = taking('kronos-tls-whole', { tls: whole });
  await until(
    () => states.some(({ connected }) => connected),
    WITHIN_MS,
    () => `a connection: ${JSON.stringify(states)}`,
  );
  channel.publish(EXCHANGE, 'versioned_notifications.info', Buffer.from('a notification'));
  await channel.waitForConfirms();
  await until(() => stored.length > 0, WITHIN_MS, 'the notification');
  expect(stored).toEqual(['a notification']);
  await channel.deleteQueue('kronos-tls-whole');
});

test.each<[string, { readonly host?: string; readonly tls: ConsumeOptions['tls'] }, RegExp]>([
  ['a CA that is not known', { tls: { ...whole, caFile: null } }, /self-signed|unable to (verify|get)/],
  ['another CA', { tls: { ...whole, caFile: tls('client.crt') } }, /unable to (verify|get)|self-signed/],
  ['a name that the certificate does not have', { host: 'localhost', tls: whole }, /does not match certificate/],
  [
    'no client certificate',
    { tls: { ...whole, certFile: null, keyFile: null } },
    /certificate required|ECONNRESET|handshake|closed/,
  ],
  ['a file that is not there', { tls: { ...whole, caFile: tls('none.crt') } }, /ENOENT.*none\.crt/],
])('%s: nothing is taken, and the state says why', async (_, options, why) => {
  await publisher();
  const { states } = taking('kronos-tls-refused', options);
  await until(() => states.length > 0, WITHIN_MS, 'a state');
  expect(states[0]).toMatchObject({ connected: false });
  expect(states[0]?.detail).toMatch(why);
});
