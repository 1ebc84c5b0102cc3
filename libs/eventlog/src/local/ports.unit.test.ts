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
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return JSON.parse(line) as number[];
}

test.runIf(process.platform === 'linux')('no port is given twice, by one process or by several', async () => {
  const given = await Promise.all([portsOfAnother(1500), portsOfAnother(1500), freePorts(300), freePorts(300)]);
  const all = given.flat();
  expect(new Set(all).size).toBe(3600);
});

test('a port on which a program listens is not given', async () => {
  const [port = 0] = await freePorts(1);
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => server.close());
  const others = await freePorts(20);
  expect(others).not.toContain(port);
});
