import { until } from '@kronos/clock/testing';
import { type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import type { TaskOptions } from '@kronos/executor';
import { type Bed, breaches, type Move, smallCloud, startBed } from '@kronos/executor/testing';
import type { Caps } from '@kronos/rules';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ACK_WAIT_MS, caps, scaledOptions } from '../faults/cells.ts';
import { type ExecutorProcess, Fleet } from '../faults/fleet.ts';

let fleet: Fleet;
beforeAll(() => {
  fleet = new Fleet(2);
});
afterAll(() => fleet.close());

let beds = 0;

async function setUp(hosts: number, vms: number): Promise<{ bed: Bed; nats: NatsServer; aggregate: string }> {
  beds += 1;
  const aggregate = `crowd-${beds}`;
  const nats = await startNatsServer();
  const bed = await startBed(smallCloud(hosts, vms, {}, aggregate), { nats, aggregate, speed: 40 });
  onTestFinished(async () => {
    await bed.close();
    await nats.stop();
  });
  return { bed, nats, aggregate };
}

function start(
  { bed, nats, aggregate }: Awaited<ReturnType<typeof setUp>>,
  more: {
    readonly caps?: Caps;
    readonly options?: Partial<TaskOptions>;
    readonly hold?: { readonly point: string; readonly serverId: string };
    readonly concurrency?: number;
  } = {},
): ExecutorProcess {
  const process = fleet.take();
  process.start({
    do: 'start',
    natsUrl: nats.url,
    authUrl: bed.sim.urls.identity,
    aggregate,
    instance: `${aggregate}-${performance.now()}`,
    caps: more.caps ?? caps,
    options: { ...scaledOptions, ...more.options },
    ackWaitMs: ACK_WAIT_MS,
    concurrency: more.concurrency ?? 100,
    hold: more.hold ?? null,
  });
  onTestFinished(() => fleet.giveBack(process));
  return process;
}

it('nats-server restarted in the middle of 50 running moves: nothing is lost, nothing is done twice', async () => {
  const scene = await setUp(10, 6);
  const { bed, nats } = scene;
  const wide = {
    maxConcurrentMigrations: 50,
    maxOutboundPerHost: 5,
    maxInboundPerHost: 10,
    maxConcurrentPerGroup: 50,
  };
  const moves = Array.from({ length: 50 }, (_, i) => {
    const from = 1 + (i % 10);
    return { server: `h${from}-${1 + Math.floor(i / 10)}`, from: `h${from}`, to: `h${(from % 10) + 1}` };
  });
  for (const { server } of moves)
    bed.sim.act({ act: 'faultServer', server, fault: { kind: 'slow', seconds: 36_000, times: 1 } });
  // Fifty moves are asked after all the time.
  for (let i = 0; i < 2; i += 1) start(scene, { caps: wide, options: { pollIntervalMs: 250 } });
  const tasks = await bed.release(moves);
  const begun = async (): Promise<number> =>
    (await bed.results()).filter(({ event }) => event.type === 'migration.started').length;
  await until(async () => (await begun()) >= 50 && bed.sim.migrations().length >= 50);
  await nats.kill();
  expect(bed.sim.migrations().filter(({ status }) => status === 'completed')).toEqual([]);
  await nats.restart();
  bed.sim.act({ act: 'setSpeed', speed: 40_000 });
  const finals = await bed.finals(tasks, 280_000);
  expect(new Set(finals.map((final) => final.type))).toEqual(new Set(['migration.completed']));
  expect(breaches(bed.sim, await bed.results(), tasks, wide)).toEqual([]);
});

/** Starts executors that die at the point of the first server's task, until every task has a final result. */
async function dying(scene: Awaited<ReturnType<typeof setUp>>, point: string, moves: readonly Move[]) {
  const { bed } = scene;
  const one = { ...caps, maxConcurrentMigrations: 1 };
  const options = { suspectDeliveries: 2, suspectTries: 3 };
  const hold = { point, serverId: bed.uuid(moves[0]?.server ?? '') };
  const tasks = await bed.release(moves);
  const finals = bed.finals(tasks, 280_000);
  const over = finals.then(
    () => null,
    () => null,
  );
  let killed = 0;
  for (;;) {
    const executor = start(scene, { hold, options, caps: one });
    if ((await Promise.race([executor.report('holding', 150_000), over])) === null) break;
    await executor.kill();
    killed += 1;
  }
  // Three times alone, and before that twice among others; a delivery counts too that lapsed while the executor stood still, so on
  // a busy machine one executor may do in the place of those two.
  expect([4, 5]).toContain(killed);
  return { finals: await finals, tasks };
}

describe('a task that ends every executor', () => {
  const poison = { server: 'h1-1', from: 'h1', to: 'h2' };

  it('in its pre-flight is a dead letter, and none of those is that waited beside it and never began', async () => {
    const scene = await setUp(4, 3);
    const beside = ['h2-1', 'h3-1', 'h4-1', 'h2-2', 'h3-2', 'h4-2'].map((server) => ({
      server,
      from: server.slice(0, 2),
      to: 'h1',
    }));
    const { finals } = await dying(scene, 'checking', [poison, ...beside]);
    expect(finals[0]).toMatchObject({ type: 'migration.failed', data: { errorType: 'DeadLetter', started: false } });
    expect(finals.slice(1).filter(({ type }) => type !== 'migration.completed')).toEqual([]);
  });

  it('is a dead letter when it is the only task', async () => {
    const scene = await setUp(2, 1);
    const { finals } = await dying(scene, 'checking', [poison]);
    expect(finals[0]).toMatchObject({ type: 'migration.failed', data: { errorType: 'DeadLetter', started: false } });
  });

  it('while Nova migrates keeps its slot until an executor survives it, and what waits for the slot starts only then', async () => {
    const scene = await setUp(3, 1);
    const { bed } = scene;
    bed.sim.act({ act: 'faultServer', server: 'h1-1', fault: { kind: 'hang' } });
    const one = { ...caps, maxConcurrentMigrations: 1 };
    const options = { suspectDeliveries: 2, suspectTries: 2, requeueMs: 1000 };
    const tasks = await bed.release([poison, { server: 'h2-1', from: 'h2', to: 'h3' }]);
    const ended = async () => (await bed.results()).filter(({ event }) => event.type === 'migration.failed');
    // Twice with others, and alone twice as often as a task that has not started needs to become a dead letter.
    for (let killed = 0; killed < 6; killed += 1) {
      const executor = start(scene, { hold: { point: 'running', serverId: bed.uuid('h1-1') }, options, caps: one });
      await executor.report('holding', 150_000);
      await executor.kill();
      expect(await ended()).toEqual([]);
    }
    start(scene, { options: { ...options, deadlineMinMs: 1000, deadlinePerGibMs: 0 }, caps: one });
    const finals = await bed.finals(tasks, 280_000);
    expect(finals[0]?.data).not.toMatchObject({ errorType: 'DeadLetter' });
    expect(finals[1]?.type).toBe('migration.completed');
    expect(breaches(bed.sim, await bed.results(), tasks, one)).toEqual([]);
  });
});

it('tasks that wait make room for those that they wait for', async () => {
  const scene = await setUp(4, 2);
  const { bed } = scene;
  start(scene, { concurrency: 2, options: { requeueMs: 6000 } });
  const tasks = await bed.release([
    { server: 'h1-1', from: 'h1', to: 'h2', dependsOn: [4] },
    { server: 'h1-2', from: 'h1', to: 'h3', dependsOn: [4] },
    { server: 'h2-1', from: 'h2', to: 'h4', dependsOn: [4] },
    { server: 'h3-1', from: 'h3', to: 'h4' },
  ]);
  const finals = await bed.finals(tasks);
  expect(new Set(finals.map((final) => final.type))).toEqual(new Set(['migration.completed']));
});
