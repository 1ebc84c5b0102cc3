import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@kronos/clock';
import {
  type CycleDecided,
  defaultEngineOptions,
  defaultStorageLimits,
  type Snapshot,
  streamNames,
} from '@kronos/contracts';
import { decideHere } from '@kronos/cycle';
import { connectEventLog, type EventLog } from '@kronos/eventlog';
import { type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { snapshotOf } from '@kronos/placement/testing';
import { folding } from '@kronos/projections';
import { createLogger } from '@kronos/telemetry';
import { connect } from '@nats-io/transport-node';
import { trace } from '@opentelemetry/api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kronos } from '../../libs/cli/test/world.ts';
import { createPlanner } from '../../services/planner/src/loop.ts';
import { login, users, WATCHER } from '../e2e/users.ts';

const aggregates = ['gpu', 'web'];
/** Two hosts with unequal load, so that an aggregate gets a plan unless something blocks it. */
const imbalanced = (aggregate: string, cycle: number): Snapshot => ({
  ...snapshotOf({
    time: new Date().toISOString(),
    policies: { cpu: { threshold: 0.1, maxMigrationsPerCycle: 5 } },
    hosts: { h1: {}, h2: {} },
    vms: Object.fromEntries(['a', 'b', 'c', 'd'].map((vm) => [vm, { host: 'h1', w: { cpu: 0.2 } }])),
    snapshot: { intervalSeconds: 60 },
  }),
  id: `${aggregate}-${cycle}`,
  aggregate,
  cycle,
});

describe('an empty message on the log', () => {
  let server: NatsServer;
  let directory = '';
  const open: EventLog[] = [];
  const as = async (user: string): Promise<EventLog> => {
    const log = await connectEventLog({ servers: [server.url], ...login(user) });
    open.push(log);
    return log;
  };
  let scorer: EventLog;
  let viewer: EventLog;
  let stop = async (): Promise<void> => undefined;

  beforeAll(async () => {
    server = await startNatsServer(users);
    directory = await mkdtemp(join(tmpdir(), 'kronos-skip-'));
    await (await as(WATCHER)).provision({ limits: defaultStorageLimits, replicas: 1, aggregates });
    scorer = await as('scorer');
    viewer = await as('viewer');
    const log = await as('planner');
    const view = await log.view(folding());
    const planner = createPlanner({
      log,
      view,
      aggregates,
      optionsOf: () => ({ ...defaultEngineOptions, cooldownSeconds: 0 }),
      decider: decideHere,
      by: { service: 'planner', instance: 'p', version: '0' },
      logger: createLogger({ service: 'planner', version: '0', level: 'silent' }),
      tracer: trace.getTracer('test'),
      meters: { decided() {}, compared() {}, notDecided() {}, dispatched() {} },
      clock: systemClock,
      clockProblem: () => null,
    });
    const done = planner.run();
    stop = async () => {
      await planner.stop();
      await view.close();
      await log.close();
      await done;
    };
  });
  afterAll(async () => {
    await stop();
    for (const log of open) await log.close();
    await server?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  /** Runs a command line under a NATS user. */
  async function run(user: string, ...words: string[]) {
    const file = join(directory, `${user}.conf`);
    await writeFile(
      file,
      `[engine]\naggregates = ${aggregates.join(', ')}\n[nats]\nservers = ${server.url}\nrequest_timeout = 2\nuser = ${user}\npassword = of ${user}\n`,
    );
    return await kronos(words, { env: { KRONOS_CONFIG: file }, nowMs: Date.now() });
  }

  /** Publishes an empty message, as any client with rights on the subject can. Returns its sequence. */
  async function publishNothing(on: string): Promise<number> {
    const nc = await connect({ servers: server.url, user: WATCHER, pass: `of ${WATCHER}` });
    const answer = (await nc.request(`kronos.controls.${on}`, '')).json() as { seq: number };
    await nc.close();
    return answer.seq;
  }

  let cycle = 0;
  /** The planner's decision on a new snapshot. */
  async function decide(aggregate: string): Promise<CycleDecided['data']> {
    cycle += 1;
    const snapshot = imbalanced(aggregate, cycle);
    const since = (await viewer.lastSequence(streamNames.log)) + 1;
    const by = { service: 'scorer', instance: 's', version: '0' } as const;
    await scorer.putSnapshot(snapshot, { by, causationId: null });
    for await (const { message, problem } of viewer.tail({ families: ['plans'], aggregates: [aggregate], since }))
      if (problem === undefined && message.type === 'cycle.decided' && message.data.snapshotId === snapshot.id)
        return message.data;
    throw new Error('the log has ended');
  }
  const blocked = (sequence: number) => ({
    outcome: 'gated',
    plan: null,
    reason: { code: 'unreadable-event', detail: { sequence } },
  });

  it.each([
    ['of an aggregate', 'gpu', ['gpu'], ['web']],
    ['of all aggregates', '_all_', ['gpu', 'web'], []],
  ] as const)(
    '%s blocks planning until the custodian skips it, and everybody sees who did and why',
    async (_, on, blockedOnes, others) => {
      for (const aggregate of aggregates) expect(await decide(aggregate)).toMatchObject({ outcome: 'planned' });
      const sequence = await publishNothing(on);
      for (const aggregate of blockedOnes) expect(await decide(aggregate)).toMatchObject(blocked(sequence));
      for (const aggregate of others) expect(await decide(aggregate)).toMatchObject({ outcome: 'planned' });
      const status = await run('viewer', 'status');
      expect(status.out).toContain(`event ${sequence} `);
      expect(status.out).toContain(`kronos log skip ${sequence}`);

      // The NATS server refuses all other users, and nothing changes.
      const before = await viewer.lastSequence(streamNames.log);
      for (const user of ['operator', 'viewer', 'executor']) {
        const refused = await run(user, 'log', 'skip', String(sequence), '--reason', 'garbage');
        expect(refused.status, user).toBe(1);
        expect(refused.err, user).toContain(`may not publish on kronos.custody.${on}`);
      }
      expect(await viewer.lastSequence(streamNames.log)).toBe(before);
      for (const aggregate of blockedOnes) expect(await decide(aggregate)).toMatchObject(blocked(sequence));

      // The custodian has to give a reason, and cannot skip a readable event.
      expect((await run('custodian', 'log', 'skip', String(sequence))).err).toContain('--reason');
      expect((await run('custodian', 'log', 'skip', '1', '--reason', 'garbage')).err).toContain(
        `there is no unreadable event to skip at this sequence`,
      );
      const reason = `empty message, change ${sequence}`;
      const skipped = await run('custodian', 'log', 'skip', String(sequence), '--reason', reason);
      expect({ status: skipped.status, err: skipped.err }).toEqual({ status: 0, err: '' });
      expect(skipped.out).toContain('skipped 1 unreadable event');
      for (const aggregate of aggregates) expect(await decide(aggregate)).toMatchObject({ outcome: 'planned' });

      // Status, explain, replay and the log show who skipped it and why.
      const said = `${sequence} by ada@desk: ${reason}`;
      expect((await run('viewer', 'status')).out).toContain(said);
      expect((await run('viewer', 'explain', 'cycle', '-a', blockedOnes[0])).out).toContain(said);
      expect((await run('viewer', 'replay', '-a', blockedOnes[0])).out).toMatch(
        new RegExp(`events ${sequence} were skipped by ada@desk: ${reason}`),
      );
      const audit = [];
      for await (const { message, problem } of viewer.tail({ families: ['custody'], since: 'all', end: true }))
        if (problem === undefined && message.type === 'event.skipped') audit.push(message);
      expect(audit.at(-1)).toMatchObject({
        aggregate: on,
        by: { service: 'custodian', instance: 'ada@desk' },
        data: { sequence, through: sequence, comment: reason },
      });
      // A second skip changes nothing.
      expect(await run('custodian', 'log', 'skip', String(sequence), '--reason', reason)).toMatchObject({
        status: 2,
        err: expect.stringContaining('there is no unreadable event to skip'),
      });
    },
  );
});
