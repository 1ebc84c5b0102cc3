import { newestCheckpoint } from '@kronos/checkpoints';
import { type LogEvent, streamNames } from '@kronos/contracts';
import { connectEventLog } from '@kronos/eventlog';
import { startNatsServer } from '@kronos/eventlog/testing';
import { expect, it, onTestFinished } from 'vitest';
import { endProcess } from '../../libs/cli/src/demo/serviceProcess.ts';
import { openStage } from '../../libs/cli/src/demo/stage.ts';
import { kronos } from '../../libs/cli/test/world.ts';
import { as, login, users, WATCHER } from '../e2e/users.ts';
import { ended, released, SHORT_SEARCH, watch } from '../e2e/world.ts';
import { forgeCheckpoint } from './forge.ts';

const AGGREGATE = 'general';
const folding = ['planner', 'executor', 'ledger'] as const;

it('services that start from a forged checkpoint find it out, obey the log, and stay not ready until a person has looked', async () => {
  const nats = await startNatsServer(users);
  onTestFinished(() => nats.stop());
  const stage = await openStage({
    seed: 7,
    speed: 5,
    say: () => undefined,
    onExit: () => undefined,
    nats: async () => ({ urls: [nats.url], stop: async () => undefined }),
    // One move at a time, so that other tasks of the plan wait on the queue.
    env: (of) => ({
      ...SHORT_SEARCH,
      ...as(of === 'provision' ? WATCHER : of),
      OS_EXECUTOR__MAX_CONCURRENT_MIGRATIONS: '1',
    }),
  });
  onTestFinished(() => stage.close());
  const { until, events } = watch(stage);
  const people = async (user: string, ...words: string[]) =>
    await kronos(words, { env: { KRONOS_CONFIG: stage.configFile, ...as(user) }, nowMs: Date.now() });
  const open = () => released(events).filter((task) => !ended(events).has(task));

  // An operator pauses the aggregate and quarantines a VM while tasks wait. Then all services stop.
  await until('tasks that wait', () => open().length > 2);
  const vm = events.findLast((e) => e.type === 'cycle.decided' && e.data.plan !== null);
  if (vm?.type !== 'cycle.decided') throw new Error('no plan');
  const server = vm.data.plan?.steps.at(-1)?.serverId ?? '';
  expect(await people('operator', 'quarantine', 'add', server, '--for', '1h')).toMatchObject({ status: 0 });
  await Promise.all([...stage.processes.values()].flat().map(endProcess));
  expect(await people('operator', 'pause', '-a', AGGREGATE)).toMatchObject({ status: 0 });
  const waiting = open();
  expect(waiting.length).toBeGreaterThan(0);

  // Somebody with the ledger's credentials publishes a checkpoint of the end of the log without both.
  const ledger = await connectEventLog({ servers: [nats.url], ...login('ledger') });
  onTestFinished(() => ledger.close());
  const forged = await forgeCheckpoint(ledger, AGGREGATE);
  const read = await newestCheckpoint(ledger, () => undefined);
  expect([read?.sequence, read?.aggregates.get(AGGREGATE)?.paused]).toEqual([forged.sequence, null]);

  const urls = new Map(folding.map((service) => [service, '']));
  for (const service of folding) {
    const { stdout } = stage.start(service);
    stdout?.on('data', (chunk: Buffer) => {
      const url = /"url":"(http[^"]+)"/.exec(String(chunk))?.[1];
      if (url !== undefined) urls.set(service, url);
    });
  }
  const reason = new RegExp(
    `the checkpoint at event ${forged.sequence} is wrong: its state of ${AGGREGATE} .*credentials of the ledger.*restart it`,
  );
  const found = async (service: (typeof folding)[number]) => {
    const answer = await fetch(`${urls.get(service)}/readyz`).catch(() => null);
    const body = (await answer?.json()) as { checks: Record<string, { ok: boolean; reason?: string }> } | undefined;
    return { status: answer?.status, started: body?.checks.started?.ok, reason: body?.checks.checkpoint?.reason };
  };
  for (const service of folding)
    await expect
      .poll(() => found(service), { timeout: 60_000 })
      .toEqual({ status: 503, started: true, reason: expect.stringMatching(reason) });
  const known = await stage.log.lastSequence(streamNames.log);

  // The pause of the log holds from now on: Kronos observes and decides, and neither plans nor starts a move.
  stage.start('scorer');
  const later: LogEvent[] = [];
  const decided = () => later.filter((e) => e.type === 'cycle.decided').length;
  for await (const { message } of stage.log.tail({ families: ['plans', 'results'], since: known + 1 })) {
    later.push(message as LogEvent);
    if (decided() === 3) break;
  }
  expect(later.filter((e) => e.type === 'migration.started' || e.type === 'plan.dispatched')).toEqual([]);
  for (const event of later)
    if (event.type === 'cycle.decided')
      expect(event.data).toMatchObject({ outcome: 'gated', reason: { code: 'paused' }, plan: null });

  // The alarm stays until the services restart and the ledger has written a correct checkpoint.
  const { out } = await people('viewer', 'status', '--json');
  const alarm = (JSON.parse(out) as { alarms: { code: string; about: string }[] }).alarms.find(
    ({ code }) => code === 'checkpoint-wrong',
  );
  for (const service of folding) expect(alarm?.about).toContain(service);
  for (const service of folding) expect((await found(service)).status).toBe(503);
  await expect
    .poll(async () => (await people('operator', 'quarantine', 'list')).out, { timeout: 60_000 })
    .toContain(server);
});
