import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';

const fixture = fileURLToPath(new URL('../testing/service.ts', import.meta.url));
const children = new Set<ChildProcess>();
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
});

type Line = Record<string, unknown>;

/** Starts the fixture as a process of its own. */
function run(behaviour: string, env: Record<string, string> = {}, args: string[] = []) {
  const child = spawn(process.execPath, [fixture, behaviour, ...args], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      OS_ENGINE__AGGREGATES: 'gpu',
      OS_HTTP__PLANNER_PORT: '0',
      OS_LOG__FORMAT: 'json',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.add(child);
  const lines: Line[] = [];
  const waiting = new Map<string, (line: Line) => void>();
  createInterface({ input: child.stdout }).on('line', (text) => {
    const line: Line = JSON.parse(text);
    lines.push(line);
    waiting.get(String(line.message))?.(line);
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const exit = new Promise<{ code: number | null; signal: string | null }>((resolve) =>
    child.on('close', (code, signal) => {
      children.delete(child);
      resolve({ code, signal });
    }),
  );
  return {
    child,
    exit,
    messages: () => lines.map((l) => l.message),
    stderr: () => stderr,
    find: (message: string) => lines.find((l) => l.message === message),
    logged: async (message: string): Promise<Line> => {
      const found = lines.find((l) => l.message === message);
      if (found !== undefined) return found;
      const line = new Promise<Line>((resolve) => waiting.set(message, resolve));
      const ended = exit.then(() =>
        Promise.reject(new Error(`ended without ${message}: ${JSON.stringify(lines)} ${stderr}`)),
      );
      return Promise.race([line, ended]);
    },
  };
}

describe('the life of a service', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('%s stops it once, in order, with 0', async (signal) => {
    const { child, logged, exit, messages, stderr } = run('works');
    await logged('started');
    child.kill(signal);
    await logged('handing over');
    child.kill(signal);
    expect(await exit).toEqual({ code: 0, signal: null });
    expect(messages()).toEqual(['starting', 'started', 'stopping', 'handing over', 'handed over', 'stopped']);
    expect(stderr()).toBe('');
  });

  it('is alive from the start and ready when it has started', async () => {
    const { logged, find, child, exit } = run('works', { OS_ENGINE__PAUSE_AFTER_MOVE: '60' });
    const { url } = await logged('starting');
    expect(find('an option has a former name')).toMatchObject({
      level: 'warn',
      option: 'OS_ENGINE__PAUSE_AFTER_MOVE',
      remedy: expect.stringContaining('Write OS_ENGINE__COOLDOWN'),
    });
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    await logged('started');
    const ready = await fetch(`${url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([200, { ready: true, checks: { started: { ok: true } } }]);
    expect(await (await fetch(`${url}/metrics`)).text()).toContain('service_name="kronos-planner"');
    child.kill('SIGTERM');
    await exit;
  });

  it('is not ready while it starts', async () => {
    const { logged, child, exit } = run('startsForever');
    const { url } = await logged('starting');
    const ready = await fetch(`${url}/readyz`);
    expect([ready.status, await ready.json()]).toEqual([
      503,
      { ready: false, checks: { started: { ok: false, reason: 'starting' } } },
    ]);
    child.kill('SIGTERM');
    await logged('told to stop');
    expect(await exit).toEqual({ code: 1, signal: null });
  });

  it('a start that gives up when it is told to stop is an orderly stop', async () => {
    const { logged, child, exit } = run('stopsWhileStarting');
    await logged('starting');
    child.kill('SIGTERM');
    expect(await exit).toEqual({ code: 0, signal: null });
  });

  it('an error for people at the start is one message with its remedy, without a stack and without a secret', async () => {
    const { exit, stderr } = run('refuses', { OS_NATS__USER: 'u', OS_NATS__PASSWORD: 'hunter2-password' });
    expect(await exit).toEqual({ code: 1, signal: null });
    expect(stderr()).toBe('kronos planner: cannot reach [secret] at nats://[secret]@h\nDo something else.\n');
  });

  it('a defect at the start is logged with its stack', async () => {
    const { exit, find } = run('breaks');
    expect(await exit).toEqual({ code: 1, signal: null });
    expect(find('the service cannot continue')).toMatchObject({
      level: 'fatal',
      err: { type: 'TypeError', stack: expect.stringContaining('testing/service') },
    });
  });

  it.each([
    ['throwsLater', 'thrown later'],
    ['rejectsLater', 'rejected later'],
  ])('an uncaught error (%s) is logged and ends it with 1', async (behaviour, message) => {
    const { exit, find } = run(behaviour);
    expect(await exit).toEqual({ code: 1, signal: null });
    expect(find('uncaught error')).toMatchObject({
      level: 'fatal',
      err: { message, stack: expect.stringContaining('testing/service') },
    });
  });

  it('a service that cannot go on hands over and ends with 1', async () => {
    const { exit, messages, stderr } = run('failsLater');
    expect(await exit).toEqual({ code: 1, signal: null });
    expect(messages()).toEqual(['starting', 'started', 'handed over', 'lost its log']);
    expect(stderr()).toContain('lost its log\nDo something else.');
  });

  it('a service that has come to its end ends with 0', async () => {
    const { exit, messages } = run('finishes');
    expect(await exit).toEqual({ code: 0, signal: null });
    expect(messages()).toEqual(['starting', 'started', 'handed over', 'stopped']);
  });

  it('a stop that does not end is ended', async () => {
    const { child, exit, logged, stderr } = run('hangsOnStop');
    await logged('started');
    child.kill('SIGTERM');
    expect(await exit).toEqual({ code: 1, signal: null });
    expect(stderr()).toContain('did not stop within 0.5 s');
  });
});
