import { randomUUID } from 'node:crypto';
import { openGuard, stateInstallation } from '@kronos/checkpoints';
import { systemClock } from '@kronos/clock';
import { until } from '@kronos/clock/testing';
import { type Actor, ALL, defaultStorageLimits, streamNames } from '@kronos/contracts';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { bareConnection, type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { createLogger, StartAgain } from '@kronos/telemetry';
import { jetstreamManager } from '@nats-io/jetstream';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { foldVerified, holdThroughReplacement } from './guarded.ts';

const by: Actor = { service: 'provisioner', instance: 'test', version: '0.0.0' };
let server: NatsServer;
let log: EventLog;
const provision = () => log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu'] });
const state = async (statement: 'provisioned' | 'newLog', installationId = randomUUID()) => {
  const expectedLastSequence = await log.lastSequenceOf('controls', ALL);
  return stateInstallation(log, statement, {
    by,
    comment: null,
    nowMs: Date.now(),
    installationId,
    expectedLastSequence,
  });
};

beforeEach(async () => {
  server = await startNatsServer();
  log = await connectEventLog({ servers: [server.url], name: 'test' });
  await provision();
});
afterEach(async () => {
  await log.close();
  await server.stop();
});

/** Deletes the log and provisions it again, as another log with its own events. */
async function replace(events: number): Promise<string> {
  const nc = await bareConnection(server.url);
  await (await jetstreamManager(nc)).streams.delete(streamNames.log);
  await nc.close();
  await provision();
  let last = '';
  for (let i = 0; i < events; i++) last = (await state('provisioned')).id;
  return last;
}

const logger = createLogger({ service: 'planner', version: '0', level: 'silent' });
const http = { check: () => undefined };
const metrics = { checkpointVerified: { set: () => undefined } };

/** A service that has folded the log, as it works on. */
async function working() {
  const stopping = new AbortController();
  const guard = await openGuard({ log, clock: systemClock, snapshotsOf: [], needsLedger: false });
  const folded = await foldVerified(log, { guard, clock: systemClock, logger, http, metrics });
  const work = Promise.withResolvers<void>();
  const held = holdThroughReplacement(work.promise, { guard, folded, clock: systemClock, stopping: stopping.signal });
  onTestFinished(async () => {
    guard.close();
    folded.verification.close();
    await folded.view.close();
  });
  return { guard, view: folded.view, held, stopping, fail: work.reject };
}

it('a log that is named before anybody notices its replacement is held against what was folded', async () => {
  const first = randomUUID();
  await state('provisioned', first);
  const { guard, view, held, fail } = await working();
  let over: unknown = null;
  held.catch((error: unknown) => {
    over = error;
  });
  // Longer than the folded one: its length does not tell.
  const replacement = await replace(3);
  await until(() => guard.identity.installations.some(({ id }) => id === replacement));
  expect(guard.identity.installations.map(({ id }) => id)).not.toContain(first);
  expect(guard.problem).toContain(`this process has seen event 1 of installation ${first}`);
  expect(guard.problem).toContain('another log');

  await view.refresh().catch(fail);
  await until(async () => guard.identity.lastSequence === (await log.lastSequence(streamNames.log)));
  expect(guard.problem).toContain(`this process has seen event 1 of installation ${first}`);
  expect(over).toBeNull();
  await state('newLog');
  await expect(held).rejects.toBeInstanceOf(StartAgain);
});

it('what a person stated on the folded log counts as folded', async () => {
  await state('provisioned');
  const { guard, view, held, fail, stopping } = await working();
  const second = (await state('newLog')).id;
  await view.refresh();
  await until(() => guard.identity.installations.length === 2);
  expect(guard.problem).toBeNull();
  await replace(1);
  await view.refresh().catch(fail);
  await until(() => guard.problem?.includes(`this process has seen event 2 of installation ${second}`) === true);
  stopping.abort(new Error('stopping'));
  await held;
});
