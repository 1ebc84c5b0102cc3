import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';

/** Hooks of a test at exact moments of a request to Nova. */
export interface ProxyHooks {
  /** Before Nova receives the request. */
  readonly before?: (method: string, path: string) => Promise<void>;
  /** After Nova's answer, before the client receives it. */
  readonly after?: (method: string, path: string, status: number) => Promise<void>;
}

export interface NovaProxy {
  readonly url: string;
  close(): Promise<void>;
}

/** A proxy that forwards requests and answers unchanged. */
export async function startProxy(target: string, hooks: ProxyHooks): Promise<NovaProxy> {
  const to = new URL(target);
  const pass = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const { method = 'GET', url: path = '/' } = incoming;
    const body = await whole(incoming);
    await hooks.before?.(method, path);
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request({
        hostname: to.hostname,
        port: to.port,
        method,
        path,
        headers: { ...incoming.headers, host: to.host, 'content-length': body.length },
      });
      asked.once('response', resolve).once('error', reject).end(body);
    });
    const text = await whole(answer);
    await hooks.after?.(method, path, answer.statusCode ?? 0);
    const { 'transfer-encoding': _, ...headers } = answer.headers;
    outgoing.writeHead(answer.statusCode ?? 502, headers).end(text);
  };
  const server = createServer((incoming, outgoing) => {
    pass(incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function whole(stream: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts);
}
