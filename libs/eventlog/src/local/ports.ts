import { createServer, type Server } from 'node:net';

/**
 * Where ports are searched: below those that the kernel gives to outgoing connections and to servers that ask for port 0 (from
 * 32768 on Linux, 49152 on macOS), so that neither takes a port before its server listens, or while that server restarts.
 */
const FIRST = 26_000;
const COUNT = 4_000;

/** Names of the kernel that no other process can have; held until this process ends. */
const reservations: Server[] = [];

/** Listens, and returns the server; null when the address is taken. */
function listening(options: { path: string } | { port: number; host: string }): Promise<Server | null> {
  const { promise, resolve, reject } = Promise.withResolvers<Server | null>();
  const server = createServer();
  server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(null) : reject(error)));
  server.listen({ ...options, exclusive: true }, () => resolve(server.unref()));
  return promise;
}

/** Reserves a port among all processes that call this: by an abstract socket, which Linux removes with its process. */
async function reserved(port: number): Promise<boolean> {
  if (process.platform !== 'linux') return true;
  const server = await listening({ path: `\0kronos-port-${port}` });
  if (server !== null) reservations.push(server);
  return server !== null;
}

async function isFree(port: number): Promise<boolean> {
  const server = await listening({ port, host: '127.0.0.1' });
  if (server === null) return false;
  await new Promise((resolve) => server.close(resolve));
  return true;
}

/**
 * Free TCP ports of the loopback interface. No other call gets one of them before this process has ended (on Linux; elsewhere
 * two processes can choose the same one at the same time).
 *
 * @throws Error when there are not enough
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  const start = Math.floor(Math.random() * COUNT);
  for (let tried = 0; ports.length < count; tried++) {
    if (tried === COUNT)
      throw new Error(`no free port from ${FIRST} to ${FIRST + COUNT - 1}: end some of the programs that listen there`);
    const port = FIRST + ((start + tried) % COUNT);
    if ((await reserved(port)) && (await isFree(port))) ports.push(port);
  }
  return ports;
}
