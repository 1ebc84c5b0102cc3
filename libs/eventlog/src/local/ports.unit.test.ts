import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { afterAll, expect, test } from 'vitest';
import { freePorts } from './ports.ts';

const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing) await close();
});

/** Ports that another process chose; it lives until the end of this file. */
async function portsOfAnother(count: number): Promise<number[]> {
  const script = `import { freePorts } from ${JSON.stringify(new URL('./ports.ts', import.meta.url).href)};
    console.log(JSON.stringify(await freePorts(${count})));
    process.stdin.resume();`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  closing.push(async () => {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  });
  for await (const line of createInterface({ input: child.stdout })) return JSON.parse(line) as number[];
  throw new Error('the process ended without ports');
}

test.runIf(process.platform === 'linux')('no port is given twice, by one process or by several', async () => {
  const given = await Promise.all([portsOfAnother(400), portsOfAnother(400), freePorts(100), freePorts(100)]);
  const all = given.flat();
  expect(new Set(all).size).toBe(1000);
});

test('a port on which a program listens is not given', async () => {
  const [port = 0] = await freePorts(1);
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => server.close());
  const others = await freePorts(20);
  expect(others).not.toContain(port);
});
