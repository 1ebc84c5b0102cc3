import { nameLog, writeCheckpoint } from '@kronos/checkpoints';
import { systemClock } from '@kronos/clock';
import { type Actor, defaultStorageLimits, streamNames, subject } from '@kronos/contracts';
import { connectEventLog, natsWire } from '@kronos/eventlog';
import { SimulatedConnection, SimulatedServer } from '@kronos/eventlog/simulated';
import { foldAll } from '@kronos/projections/testing';
import { expect, it } from 'vitest';
import { audit } from './audit.ts';
import { Chance } from './chance.ts';
import { Commands, publish } from './people/commands.ts';

const by: Actor = { service: 'ledger', instance: 'test', version: '0.0.0' };
const AGGREGATES = ['gpu', 'web'];
/** As many as the stream keeps on each subject. */
const CHECKPOINTS = 8;

/** A log of two aggregates with as many checkpoints as the stream keeps. */
async function checkpointed() {
  const server = new SimulatedServer({ clock: systemClock, idsFirst: true });
  const soon = (act: () => void): void => queueMicrotask(act);
  const path = { toServer: soon, toClient: soon, fate: () => 'answered' as const };
  const log = await connectEventLog(
    { servers: ['simulated'], name: 'test' },
    {},
    {
      ...natsWire,
      connect: async ({ inboxPrefix = '_INBOX' }) =>
        new SimulatedConnection(server, { inboxPrefix }, systemClock, path).nats,
    },
  );
  await log.provision({ limits: defaultStorageLimits, replicas: 1, aggregates: AGGREGATES });
  const installationId = '00000000-0000-4000-8000-000000000001';
  await nameLog(log, {
    aggregates: [],
    by: { ...by, service: 'provisioner' },
    nowMs: 0,
    installationId,
    newLog: false,
    comment: null,
  });
  const commands = new Commands(server, () => 0);
  for (let i = 0; i < CHECKPOINTS; i++) {
    for (const aggregate of AGGREGATES) commands.append('aggregate.resumed', aggregate, {});
    const { state, anchor } = await foldAll(log.replay());
    await writeCheckpoint(log, state, { anchor, by, nowMs: 0, installationId });
  }
  const breaches = async (): Promise<string[]> => {
    const found: string[] = [];
    await audit(log, new Chance('audit'), (rule, text) => found.push(`${rule}: ${text}`));
    await log.close();
    return found;
  };
  return { server, breaches };
}

it.each(AGGREGATES)('a forged message for %s takes the place of a part of the oldest checkpoint', async (aggregate) => {
  const { server, breaches } = await checkpointed();
  publish(server, subject('ledger', aggregate), new Uint8Array(), 'forged');
  expect(await breaches()).toEqual([]);
});

it.each([
  ['oldest', 0],
  ['newest', -1],
])('the %s checkpoint is wrong where a part is lost and nothing took its place', async (_, which) => {
  const { server, breaches } = await checkpointed();
  const stream = server.stream(streamNames.checkpoints);
  const lost = stream?.sequencesOf(subject('ledger', 'web')).at(which) ?? 0;
  stream?.remove(lost);
  expect(await breaches()).toEqual([
    expect.stringMatching(/^state: the checkpoint at \d+ .*the part of web is missing$/),
  ]);
});
