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

/** How the relay treats bytes at present. */
interface Weather {
  cut: boolean;
  mute: boolean;
  /** Mutes when the client sends this. */
  muteText: string | null;
  delayMs: number;
}

/** One connection through the relay. */
class Pair {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #weather: Weather;
  readonly #toServer: Buffer[] = [];
  readonly #toClient: Buffer[] = [];
  readonly #delayed: Buffer[] = [];

  constructor(client: Socket, server: Socket, weather: Weather, onClose: (pair: Pair) => void) {
    this.#client = client;
    this.#server = server;
    this.#weather = weather;
    client.on('data', (data) => this.#fromClient(data));
    server.on('data', (data) => this.#fromServer(data));
    const close = () => {
      onClose(this);
      this.destroy();
    };
    for (const socket of [client, server]) {
      socket.on('error', close);
      socket.on('close', close);
      socket.setNoDelay(true);
    }
  }

  #fromClient(data: Buffer): void {
    const { muteText, cut } = this.#weather;
    if (muteText !== null && data.includes(muteText)) this.#weather.mute = true;
    if (cut) this.#toServer.push(data);
    else this.#server.write(data);
  }

  #fromServer(data: Buffer): void {
    const { cut, mute, delayMs } = this.#weather;
    if (cut || mute) this.#toClient.push(data);
    else if (delayMs > 0) {
      this.#delayed.push(data);
      setTimeout(() => {
        const due = this.#delayed.indexOf(data) + 1;
        for (const each of this.#delayed.splice(0, due)) this.#client.write(each);
      }, delayMs);
    } else this.#client.write(data);
  }

  /** Sends what was held back. */
  flush(): void {
    for (const data of this.#toServer.splice(0)) this.#server.write(data);
    for (const data of [...this.#delayed.splice(0), ...this.#toClient.splice(0)]) this.#client.write(data);
  }

  destroy(): void {
    this.#client.destroy();
    this.#server.destroy();
  }
}

/** @param target port on the loopback interface */
export async function startProxy(target: number): Promise<Proxy> {
  const weather: Weather = { cut: false, mute: false, muteText: null, delayMs: 0 };
  const pairs = new Set<Pair>();
  const sent: { at: number; data: Buffer }[] = [];
  const relay: Server = createServer((client) => {
    client.on('data', (data) => sent.push({ at: performance.now(), data }));
    pairs.add(new Pair(client, tcpConnect(target, '127.0.0.1'), weather, (pair) => pairs.delete(pair)));
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  const address = relay.address();
  if (address === null || typeof address === 'string') throw new Error('the relay has no port');
  const flush = () => {
    for (const pair of pairs) pair.flush();
  };
  const reset = () => {
    for (const pair of pairs) pair.destroy();
  };
  return {
    url: `nats://127.0.0.1:${address.port}`,
    cut: () => {
      weather.cut = true;
    },
    mute: () => {
      weather.mute = true;
    },
    muteAt: (text) => {
      weather.muteText = text;
    },
    delay: (ms) => {
      weather.delayMs = ms;
      if (ms === 0) flush();
    },
    heal: () => {
      Object.assign(weather, { cut: false, mute: false, muteText: null });
      flush();
    },
    reset,
    sentSince: (moment) =>
      Buffer.concat(sent.filter(({ at }) => at >= moment).map(({ data }) => data)).toString('latin1'),
    close: async () => {
      reset();
      await new Promise((resolve) => relay.close(resolve));
    },
  };
}
