import { randomUUID } from 'node:crypto';
import { readIdentity, stateInstallation } from '@kronos/checkpoints';
import { storageLimits } from '@kronos/config';
import { type LogEvent, streamNames } from '@kronos/contracts';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterEach, expect, it } from 'vitest';
import { kronos } from '../../libs/cli/test/world.ts';
import { loadConfig, scopeOf } from '../../libs/config/src/index.ts';
import { openWorld, type ServiceName, type World } from '../e2e/world.ts';

let world: World | null = null;
let log: EventLog | null = null;
afterEach(async () => {
  await log?.close();
  await world?.close();
});

type Readiness = { readonly checks: Record<string, { readonly ok: boolean; readonly reason?: string }> };
const readiness = async (at: World, service: ServiceName): Promise<Readiness> =>
  (await (await fetch(`${at.stage.urls.get(service)}/readyz`)).json()) as Readiness;

async function decisions(from: EventLog): Promise<number> {
  let found = 0;
  for await (const { event } of from.replay()) if ((event as LogEvent).type === 'cycle.decided') found += 1;
  return found;
}

it('services that run while the log is wiped wait until a person states which log it is, and go on by themselves', async () => {
  world = await openWorld({ speed: 20, env: { OS_LEDGER__CHECKPOINT_INTERVAL: '1' } });
  const { stage } = world;
  const { config } = loadConfig({ file: stage.configFile, env: {}, role: 'cli' });
  const servers = [...config.nats.servers];
  await world.until('a decision', (events) => events.some((event) => event.type === 'cycle.decided'));
  await expect.poll(() => stage.log.lastSequence(streamNames.checkpoints)).toBeGreaterThan(1);
  const { installations } = await readIdentity(stage.log);
  const processes = [...stage.processes.values()].flat();

  const nc = await connect({ servers });
  const { streams } = await jetstreamManager(nc);
  for (const stream of [streamNames.log, streamNames.checkpoints, streamNames.snapshots]) await streams.delete(stream);
  await nc.close();
  log = await connectEventLog({ servers, name: 'wiped-test' });
  await log.provision({
    limits: storageLimits(config),
    replicas: 1,
    aggregates: scopeOf(config),
    ackWaitSeconds: config.nats.ackWait,
  });
  const by = { service: 'provisioner', instance: 'test', version: '0.0.0' } as const;
  const about = { by, comment: null, nowMs: Date.now(), installationId: randomUUID(), expectedLastSequence: 0 };
  await stateInstallation(log, 'provisioned', about);

  for (const service of ['planner', 'executor', 'ledger'] as const)
    await expect
      .poll(async () => (await readiness(world as World, service)).checks.identity)
      .toMatchObject({ ok: false, reason: expect.stringContaining(`of installation ${installations[0]?.id}`) });
  expect(await decisions(log)).toBe(0);

  const said = await kronos(['provision', '--new-log', '-m', 'a trial'], {
    env: { KRONOS_CONFIG: stage.configFile },
    nowMs: Date.now(),
  });
  expect(said).toMatchObject({ status: 0, out: expect.stringContaining('created    installation') });
  for (const service of ['planner', 'executor', 'ledger'] as const)
    await expect
      .poll(async () => (await readiness(world as World, service)).checks)
      .toMatchObject({ identity: { ok: true }, started: { ok: true } });
  await expect.poll(() => decisions(log as EventLog)).toBeGreaterThan(0);
  expect(processes.map((child) => child.exitCode)).toEqual(processes.map(() => null));
});
