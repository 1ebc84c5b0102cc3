import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { answers, commands, type NatsDocsWorld, openNatsDocsWorld, sayAgain, words } from './natsDocs.ts';

const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'kronos', 'gobin');

/** The nats command: named, on the PATH, built before, or built now where Go is; null where there is none. */
function findNatsCommand(): string | null {
  const runs = (file: string): boolean => spawnSync(file, ['--version'], { stdio: 'ignore' }).status === 0;
  const cached = join(cache, 'nats');
  for (const file of [process.env.KRONOS_NATS_CLI, 'nats', cached]) if (file !== undefined && runs(file)) return file;
  if (spawnSync('go', ['version'], { stdio: 'ignore' }).status !== 0) return null;
  mkdirSync(cache, { recursive: true });
  const env = { ...process.env, GOBIN: cache };
  spawnSync('go', ['install', 'github.com/nats-io/natscli/nats@latest'], { env, stdio: 'ignore', timeout: 540_000 });
  return existsSync(cached) && runs(cached) ? cached : null;
}

const command = findNatsCommand();
if (command === null)
  console.warn(
    'The commands of docs/nats.md were NOT run with the nats command: there is none, and none could be built with Go. natsRequests.int.test.ts makes the same requests with the client library.',
  );

describe.skipIf(command === null)('docs/nats.md with the real nats command', { timeout: 60_000 }, () => {
  let world: NatsDocsWorld;
  beforeAll(async () => {
    world = await openNatsDocsWorld();
  }, 120_000);
  afterAll(() => world?.close());

  const options = () => ({
    cwd: world.scratch,
    env: { ...process.env, NATS_URL: world.natsUrl, XDG_CONFIG_HOME: world.scratch },
  });

  it.each(commands.filter((line) => !line.startsWith('nats sub')))('%s', (line) => {
    const [, ...args] = words(line);
    const text = execFileSync(command ?? '', args, { ...options(), encoding: 'utf8', input: 'q\n', timeout: 30_000 });
    expect(text).toMatch(answers[line] ?? /$^/);
  });

  it.each(commands.filter((line) => line.startsWith('nats sub')))('%s', async (line) => {
    const [, ...args] = words(line);
    const child = spawn(command ?? '', args, options());
    let text = '';
    let listening = () => {};
    const ready = new Promise<void>((resolve) => {
      listening = resolve;
    });
    const found = new Promise<void>((resolve) => {
      const look = (data: Buffer) => {
        text += data.toString();
        if (/Subscribing on/.test(text)) listening();
        if (answers[line]?.test(text)) resolve();
      };
      child.stdout.on('data', look);
      child.stderr.on('data', look);
    });
    await ready;
    // The line says that it is about to subscribe: what is published until then is not seen, so it is said again.
    const stop = sayAgain(world, line);
    await found;
    stop();
    child.kill();
    expect(text).toMatch(answers[line] ?? /$^/);
  });
});
