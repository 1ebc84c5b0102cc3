import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliWorld, openCliWorld } from '../../libs/cli/test/world.ts';

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
  console.warn('docs/nats.md is not run: there is no nats command, and none could be built with Go');

const document = readFileSync(join(import.meta.dirname, '../../docs/nats.md'), 'utf8');
const lines = [...document.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, block = '']) => block.trimEnd().split('\n'));

/** What a person must find in the answer. */
const answers: Readonly<Record<string, RegExp>> = {
  'nats stream ls': /KRONOS_LOG/,
  'nats stream info KRONOS_LOG': /kronos\.plans\.\*/,
  'nats stream subjects KRONOS_LOG': /kronos\.plans\.gpu/,
  'nats stream get KRONOS_LOG --last-for kronos.plans.gpu': /"reason":\{"code":"[\w-]+","text":"/,
  'nats stream get KRONOS_SNAPSHOTS --last-for kronos.snapshots.gpu': /"digest":"sha256:/,
  'nats object ls kronos-snapshots': /sha256:/,
  'nats stream get KRONOS_LOG --last-for kronos.results.gpu': /"type":"migration\.\w+"/,
  'nats stream get KRONOS_LOG --last-for kronos.controls.gpu': /"service":"operator"/,
  'nats stream get KRONOS_LOG 1': /"type":"planner\.configured"/,
  'nats stream get KRONOS_LOG 2': /"basis":1/,
  'nats stream view KRONOS_LOG 5': /"type":"planner\.configured"/,
  'nats stream view KRONOS_LOG 5 --subject kronos.results.gpu': /"type":"migration\.started"/,
  'nats sub "kronos.>"': /"type":"evaluation\.requested"/,
  'nats sub kronos.plans.gpu': /"type":"cycle\.decided"/,
  'nats consumer ls KRONOS_MIGRATIONS': /tasks-gpu/,
  'nats consumer info KRONOS_MIGRATIONS tasks-gpu': /Outstanding Acks/,
  'nats stream view KRONOS_MIGRATIONS 5': /"type":"migration\.requested"/,
  'nats stream info KRONOS_CHECKPOINTS': /kronos\.ledger\.\*/,
  'nats stream backup KRONOS_LOG backup --no-progress': /(?:)/,
};

describe.skipIf(command === null)('docs/nats.md with the real nats command', { timeout: 60_000 }, () => {
  let world: CliWorld;
  let directory = '';

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kronos-nats-cli-'));
    world = await openCliWorld({
      seed: 4,
      cycles: 34,
      hosts: 4,
      vmsPerHost: 4,
      failures: 0.3,
      commands: 0.15,
      planner: 'greedy',
    });
    const plan = world.operation.events.find(({ event }) => event.type === 'cycle.decided' && event.data.plan !== null);
    const step = plan?.event.type === 'cycle.decided' ? plan.event.data.plan?.steps[0] : undefined;
    if (step === undefined || plan === undefined) throw new Error('no plan');
    const { why: _, delaySeconds: __, ...task } = step;
    const time = '2026-01-05T00:00:00.000Z';
    await world.log.append({
      type: 'migration.requested',
      version: 1,
      id: 'migration.requested:test:1',
      time,
      aggregate: 'gpu',
      by: { service: 'planner', instance: 'p', version: '0.1.0' },
      correlationId: 'test',
      causationId: null,
      data: { ...task, planId: 'test', attempt: 1, destination: step.to, notBefore: time, notAfter: time },
    });
  }, 120_000);
  afterAll(async () => {
    await world?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const words = (line: string): string[] =>
    [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  const options = () => ({
    cwd: directory,
    env: { ...process.env, NATS_URL: world.natsUrl, XDG_CONFIG_HOME: directory },
  });

  it('has an answer to look for in every command, and no other', () => {
    expect(lines.toSorted()).toEqual(Object.keys(answers).toSorted());
  });

  it.each(lines.filter((line) => !line.startsWith('nats sub')))('%s', (line) => {
    const [, ...args] = words(line);
    const text = execFileSync(command ?? '', args, { ...options(), encoding: 'utf8', input: 'q\n', timeout: 30_000 });
    expect(text).toMatch(answers[line] ?? /$^/);
  });

  it.each(lines.filter((line) => line.startsWith('nats sub')))('%s', async (line) => {
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
    const last = world.operation.events.findLast(
      ({ event }) => event.type === 'cycle.decided' && event.aggregate === 'gpu',
    )?.event;
    let n = 0;
    const again = setInterval(() => {
      n += 1;
      if (line.includes('plans') && last?.type === 'cycle.decided')
        void world.log.append({ ...last, id: `${last.id}:${n}` });
      else void world.kronos('evaluate gpu --wait 0');
    }, 300);
    await found;
    clearInterval(again);
    child.kill();
    expect(text).toMatch(answers[line] ?? /$^/);
  });
});
