import { type ChildProcessWithoutNullStreams, execFileSync, spawn, spawnSync } from 'node:child_process';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { startNatsServer } from '@kronos/eventlog/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { users } from '../e2e/users.ts';
import { answers, commands, type NatsDocsWorld, openNatsDocsWorld, sayAgain, words } from './natsDocs.ts';

/** The nats command: the named one, the one on the PATH, or the one that `.ci/run` built; null when there is none. */
const built = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'kronos', 'gobin', 'nats');
const command =
  [process.env.KRONOS_NATS_CLI, 'nats', built].find(
    (file) => file !== undefined && spawnSync(file, ['--version'], { stdio: 'ignore' }).status === 0,
  ) ?? null;
if (command === null)
  console.warn(
    'The commands of docs/nats.md were NOT run with the nats command: there is none here (node scripts/run.mjs node scripts/goTools.ts builds it with Go). natsRequests.int.test.ts makes the same requests with the client library.',
  );

describe.skipIf(command === null)('docs/nats.md with the real nats command', () => {
  let world: NatsDocsWorld;
  beforeAll(async () => {
    world = await openNatsDocsWorld();
  });
  afterAll(() => world?.close());

  const options = () => ({
    cwd: world.scratch,
    env: { ...process.env, NATS_URL: world.natsUrl, XDG_CONFIG_HOME: world.scratch },
  });

  it.each(commands.filter((line) => !/^nats (sub|stream view)/.test(line)))('%s', (line) => {
    const text = execFileSync(command ?? '', words(line).slice(1), { ...options(), encoding: 'utf8', timeout: 30_000 });
    expect(text).toMatch(answers[line] ?? /$^/);
  });

  /** Waits until the output matches a pattern, and returns the output. */
  const saying = (child: ChildProcessWithoutNullStreams, pattern: RegExp): Promise<string> =>
    new Promise((resolve) => {
      let text = '';
      const look = (data: Buffer) => {
        text += data.toString();
        if (pattern.test(text)) resolve(text);
      };
      child.stdout.on('data', look);
      child.stderr.on('data', look);
    });

  it.each(commands.filter((line) => line.startsWith('nats stream view')))('%s', async (line) => {
    // The command uses a pager only at a terminal.
    const atTerminal = ['-qec', line.replace(/^nats/, command ?? ''), '/dev/null'];
    const child = spawn('script', atTerminal, options());
    await saying(child, answers[line] ?? /$^/);
    child.kill();
  });

  it.each(commands.filter((line) => line.startsWith('nats sub')))('%s', async (line) => {
    const child = spawn(command ?? '', words(line).slice(1), options());
    const found = saying(child, answers[line] ?? /$^/);
    await saying(child, /Subscribing on/);
    // The command prints this line before it subscribes. It does not see earlier messages, so the test publishes again.
    const stop = sayAgain(world, line);
    await found;
    stop();
    child.kill();
  });

  it('a task is readable with nats consumer next, which leaves it to the executors', () => {
    const args = ['consumer', 'next', 'KRONOS_MIGRATIONS', 'tasks-gpu', '--no-ack'];
    expect(execFileSync(command ?? '', args, { ...options(), encoding: 'utf8' })).toMatch(
      /"type":"migration\.requested"/,
    );
  });
});

describe.skipIf(command === null)('the user sys with the real nats command', () => {
  let server: Awaited<ReturnType<typeof startNatsServer>>;
  beforeAll(async () => {
    server = await startNatsServer(users);
  });
  afterAll(() => server?.stop());

  const nats = (user: string, ...args: string[]) =>
    spawnSync(command ?? '', args, {
      encoding: 'utf8',
      env: { ...process.env, NATS_URL: server.url, NATS_USER: user, NATS_PASSWORD: `of ${user}` },
    });

  it('lists the servers and their JetStream', () => {
    const listed = nats('sys', 'server', 'list', '1');
    expect(listed.stdout + listed.stderr).toMatch(/Server Overview/);
    expect(listed.status).toBe(0);
    const report = nats('sys', 'server', 'report', 'jetstream');
    expect(report.stdout + report.stderr).toMatch(/JetStream Summary/);
    expect(report.status).toBe(0);
  });

  it('reads nothing of Kronos, and no user of Kronos asks the servers', () => {
    expect(nats('sys', 'stream', 'info', 'KRONOS_LOG').status).not.toBe(0);
    expect(nats('operator', '--inbox-prefix=_INBOX_operator', 'server', 'list', '1').status).not.toBe(0);
  });
});
