import { createServer, type Server, type Socket, connect as tcpConnect } from 'node:net';

/** A TCP relay in front of a server, for tests of what happens on bad networks and of what a client really sends. */
export interface Proxy {
  readonly url: string;
  /** From now on nothing gets through, in either direction, and nobody is told. What is sent meanwhile waits. */
  cut(): void;
  /** From now on what the server says is held back; what the client sends gets through. */
  mute(): void;
  /** Mutes from the moment at which the client sends this text. */
  muteAt(text: string): void;
  /** Delays everything that the server sends by this time; 0: delayed bytes arrive now, and later ones at once. */
  delay(ms: number): void;
  heal(): void;
  /** Breaks the connections. */
  reset(): void;
  /** The bytes that the client has sent since the moment (ms of `performance.now()`), as text. */
  sentSince(moment: number): string;
  close(): Promise<void>;
}

/** @param target port on the loopback interface */
export async function startProxy(target: number): Promise<Proxy> {
  let isCut = false;
  let isMute = false;
  let muteText: string | null = null;
  let delayMs = 0;
  const pairs = new Set<{ client: Socket; server: Socket; flush: () => void }>();
  const sent: { at: number; data: Buffer }[] = [];
  const relay: Server = createServer((client) => {
    const server = tcpConnect(target, '127.0.0.1');
    const toServer: Buffer[] = [];
    const toClient: Buffer[] = [];
    const delayed: Buffer[] = [];
    const flush = () => {
      for (const data of toServer.splice(0)) server.write(data);
      for (const data of [...delayed.splice(0), ...toClient.splice(0)]) client.write(data);
    };
    const pair = { client, server, flush };
    pairs.add(pair);
    client.on('data', (data) => {
      sent.push({ at: performance.now(), data });
      if (muteText !== null && data.includes(muteText)) isMute = true;
      if (isCut) toServer.push(data);
      else server.write(data);
    });
    server.on('data', (data) => {
      if (isCut || isMute) toClient.push(data);
      else if (delayMs > 0) {
        delayed.push(data);
        setTimeout(() => {
          const due = delayed.indexOf(data) + 1;
          for (const each of delayed.splice(0, due)) client.write(each);
        }, delayMs);
      } else client.write(data);
    });
    const close = () => {
      pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      socket.on('error', close);
      socket.on('close', close);
      socket.setNoDelay(true);
    }
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  const address = relay.address();
  if (address === null || typeof address === 'string') throw new Error('the relay has no port');
  return {
    url: `nats://127.0.0.1:${address.port}`,
    cut: () => {
      isCut = true;
    },
    mute: () => {
      isMute = true;
    },
    muteAt: (text) => {
      muteText = text;
    },
    delay: (ms) => {
      delayMs = ms;
      if (ms === 0) for (const { flush } of pairs) flush();
    },
    heal: () => {
      isCut = false;
      isMute = false;
      muteText = null;
      for (const { flush } of pairs) flush();
    },
    reset: () => {
      for (const { client, server } of pairs) {
        client.destroy();
        server.destroy();
      }
    },
    sentSince: (moment) =>
      Buffer.concat(sent.filter(({ at }) => at >= moment).map(({ data }) => data)).toString('latin1'),
    close: async () => {
      for (const { client, server } of pairs) {
        client.destroy();
        server.destroy();
      }
      await new Promise((resolve) => relay.close(resolve));
    },
  };
}
