/** An act on the cloud whose window is over is not sent, also by a process that was stopped while it connected. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { createServer as createTlsServer } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { until } from '@kronos/clock/testing';
import { listen, selfSigned } from '@kronos/http/testing';
import { type Sim, startSim } from '@kronos/simcloud';
import { afterEach, expect, test } from 'vitest';
import { smallCloud } from '../testing/bed.ts';

const ENTRY = fileURLToPath(new URL('../testing/actOnce.ts', import.meta.url));
/** Longer than a busy machine needs to get as far as the tests want. */
const WINDOW_MS = 600_000;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** TLS before a plain server; the first bytes of a connection can be kept back, as a slow network does it. */
async function tlsFront(target: URL): Promise<{ url: string; hold(): Promise<() => Promise<unknown>> }> {
  const sockets = new Set<Socket>();
  const known = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  };
  const inner = createTlsServer(selfSigned(), (socket) => {
    const behind = known(connect(Number(target.port), target.hostname));
    known(socket).pipe(behind).pipe(socket);
  });
  const innerPort = await listen(inner);
  let holding: ((release: () => Promise<unknown>) => void) | null = null;
  const outer = createServer((socket) => {
    const behind = known(connect(innerPort, '127.0.0.1'));
    behind.pipe(known(socket));
    const held = holding;
    holding = null;
    if (held === null) socket.pipe(behind);
    else
      socket.once('data', (hello: Buffer) => {
        socket.pause();
        held(() => {
          behind.write(hello);
          socket.pipe(behind);
          // The answer is in the socket of the process.
          return once(behind, 'data');
        });
      });
  });
  const port = await listen(outer);
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    inner.close();
    outer.close();
  });
  return {
    url: `https://127.0.0.1:${port}`,
    hold: () =>
      new Promise((resolve) => {
        holding = resolve;
      }),
  };
}

async function actor(
  sim: Sim,
  compute: string,
  what: 'post' | 'abort',
): Promise<[ChildProcess, AsyncIterator<string>]> {
  const { uuid } = sim.cloud.server('h1-1');
  const child = spawn(process.execPath, [ENTRY, sim.urls.identity, compute, uuid, what, String(WINDOW_MS)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  closing.push(() => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout as NonNullable<typeof child.stdout> })[Symbol.asyncIterator]();
  expect((await lines.next()).value).toBe('ready');
  return [child, lines];
}

async function setUp(what: 'post' | 'abort') {
  const sim = await startSim({ scenario: smallCloud(2, 1) });
  closing.push(() => sim.close());
  const path = new URL(sim.urls.compute).pathname;
  const front = await tlsFront(new URL(sim.urls.compute));
  const [child, lines] = await actor(sim, front.url + path, what);
  const held = front.hold();
  child.stdin?.write('go\n');
  const release = await held;
  return { sim, child, lines, release, acts: () => sim.calls().filter((call) => call.path.includes('/servers/')) };
}

/** Waits until the process is stopped by a signal (state T, proc(5)). */
const stopped = ({ pid }: ChildProcess) => until(async () => /\) T /.test(await readFile(`/proc/${pid}/stat`, 'utf8')));

const cases = ['post', 'abort'] as const;

test.each(cases)('%s: a process stopped while it connects sends nothing once its window is over', async (what) => {
  const { child, lines, release, acts } = await setUp(what);
  child.stdin?.write('stop\n');
  await stopped(child);
  await release();
  child.kill('SIGCONT');
  const answer = JSON.parse((await lines.next()).value);
  expect(answer).toEqual(
    what === 'post'
      ? { kind: 'notSent', text: 'its time had passed' }
      : { failed: expect.stringContaining('its time had passed') },
  );
  await once(child, 'exit');
  expect(acts()).toEqual([]);
});

test.each(cases)('%s: a slow connection that is ready within the window is used', async (what) => {
  const { lines, release, acts } = await setUp(what);
  await release();
  await lines.next();
  expect(acts()).toHaveLength(1);
});
