/** For tests: a real HTTP(S) server that plays what a test tells it, and a certificate to serve with. */
import { generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo, Server as TcpServer } from 'node:net';
import { type Clock, systemClock } from '@kronos/clock';

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface Played {
  readonly url: string;
  /** Every request, in order of arrival. */
  readonly seen: Seen[];
  /** Number of opened connections. */
  readonly connections: () => number;
  close(): Promise<void>;
}

/** Lets a server listen on this machine: its port. */
export async function listen(server: TcpServer): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** The rejection of a promise; an error of its own when it did not reject. */
export const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => new Error('it did not fail'),
    (error: unknown) => error,
  );

export type Play = (seen: Seen, response: ServerResponse, number: number) => void | Promise<void>;

export async function serve(play: Play, tls?: ServerOptions): Promise<Played> {
  const seen: Seen[] = [];
  let connections = 0;
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const one = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, body };
    seen.push(one);
    await play(one, response, seen.length);
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => void answer(request, response);
  const server: Server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  server.on('connection', () => {
    connections += 1;
  });
  const port = await listen(server);
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    seen,
    connections: () => connections,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A self-signed certificate for 127.0.0.1 and nova.example (RFC 5280), with its key. */
export function selfSigned(): { cert: string; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const der = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
    const content = Buffer.concat(parts);
    const { length } = content;
    const head = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
    return Buffer.concat([Buffer.from([tag, ...head]), content]);
  };
  const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
  const time = (year: number): Buffer => der(0x18, Buffer.from(`${year}0101000000Z`));
  const ecdsaSha256 = der(0x30, oid('2a8648ce3d040302'));
  const name = der(0x30, der(0x31, der(0x30, oid('550403'), der(0x0c, Buffer.from('kronos test')))));
  const san = der(0x30, der(0x87, Buffer.from([127, 0, 0, 1])), der(0x82, Buffer.from('nova.example')));
  const ca = der(0x30, der(0x01, Buffer.from([0xff])));
  const extensions = der(
    0xa3,
    der(0x30, der(0x30, oid('551d11'), der(0x04, san)), der(0x30, oid('551d13'), der(0x04, ca))),
  );
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    ecdsaSha256,
    name,
    der(0x30, time(2000), time(2999)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    extensions,
  );
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, privateKey));
  const base64 = der(0x30, body, ecdsaSha256, signature).toString('base64');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** This machine's clock, with sleeps that end at once. */
export const sleepless = (slept: (ms: number) => void = () => {}): Clock => ({
  ...systemClock,
  sleep: async (ms) => slept(ms),
});
