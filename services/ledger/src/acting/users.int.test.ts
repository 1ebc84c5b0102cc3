import { readFile } from 'node:fs/promises';
import { loadConf } from '@kronos/config/conf';
import { defaultStorageLimits } from '@kronos/contracts';
import { connectEventLog, type EventLog, NatsRefused } from '@kronos/eventlog';
import { bareConnection, type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import { control } from '@kronos/operator';
import { HttpServer, type RunningService, startTelemetry } from '@kronos/telemetry';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { actingBed, actingPage, people } from '../../testing/acting.ts';
import type { CommandRequest } from '../api/commandSchemas.ts';
import { ledgerService } from '../service.ts';

/** The ledger as a service, with the users of deploy/nats. */
describe('the NATS users of a ledger', () => {
  let server: NatsServer;
  let world: Awaited<ReturnType<typeof actingBed>>;
  const open: EventLog[] = [];

  async function as(user: string): Promise<EventLog> {
    const log = await connectEventLog({ servers: [server.url], name: user, user, password: `pw-${user}` });
    open.push(log);
    return log;
  }

  beforeAll(async () => {
    const accounts = await readFile(new URL('../../../../deploy/nats/accounts.conf', import.meta.url), 'utf8');
    const variables = [...accounts.matchAll(/\$(KRONOS_NATS_([A-Z]+)_PASSWORD)/g)];
    const env = Object.fromEntries(variables.map(([, name, user]) => [name, `pw-${user?.toLowerCase()}`]));
    server = await startNatsServer({ config: accounts, env });
    await (await as('provisioner')).provision({ limits: defaultStorageLimits, replicas: 1, aggregates: ['gpu'] });
    world = await actingBed({ append: () => Promise.reject(new Error('the service has a connection of its own')) });
  });
  afterAll(async () => {
    for (const log of open) await log.close();
    await world.close();
    await server.stop();
  });

  /** The service with that section `[console]`; `run` gets its URL. */
  async function serving(console: string, run: (url: string) => Promise<void>): Promise<void> {
    const text = `[engine]\naggregates = gpu\n[nats]\nservers = ${server.url}\nuser = {service}\npassword = pw-ledger\n[console]\n${console}`;
    const config = loadConf({ file: 'kronos.conf', env: {}, role: 'ledger', readFile: () => text });
    const telemetry = await startTelemetry({
      service: 'ledger',
      version: '0.0.0',
      instance: 'ledger-test',
      config,
      destination: { write: () => undefined },
    });
    const http = new HttpServer({
      address: '127.0.0.1',
      port: 0,
      portOption: 'ledger_port',
      log: telemetry.log,
      metrics: telemetry.metrics,
    });
    const { url } = await http.listen();
    let service: RunningService | null = null;
    try {
      service = await ledgerService().start({
        service: 'ledger',
        version: '0.0.0',
        instance: 'ledger-test',
        config,
        policiesOf: () => [],
        hostCells: null,
        log: telemetry.log,
        tracer: telemetry.tracer,
        metrics: telemetry.metrics.instruments,
        onScrape: telemetry.metrics.onScrape,
        http,
        stopping: new AbortController().signal,
      });
      await run(url);
    } finally {
      await service?.stop();
      await http.close();
      await telemetry.shutdown();
    }
  }
  const acting = () =>
    `acting = true\nauth_url = ${world.sim.urls.identity}\nproject_name = admin\nnats_user = console\n`;
  const pause: CommandRequest = { command: 'pause', aggregate: 'gpu' };

  it('are three: one writes commands, one skips events, and the one of the ledger may do neither', async () => {
    await serving(`${acting()}nats_password = pw-console\n`, async (url) => {
      const page = actingPage(url);
      expect((await page.logIn(people.ada)).body).toMatchObject({ person: 'ada@Default' });
      const { body } = await page.foresee(pause);
      expect((await page.give(pause, body.digest)).body).toMatchObject({ effect: 'done', by: 'ada@Default' });
    });
    const range = { sequence: 1, through: 1 };
    const skipping = { commandId: 'c2', person: 'carol', version: '0', nowMs: Date.now(), comment: 'garbage' };
    for (const user of ['ledger', 'operator', 'console'])
      await expect(
        (await as(user)).append(control('event.skipped', 'gpu', range, { ...skipping, commandId: user })),
      ).rejects.toBeInstanceOf(NatsRefused);
    const who = { commandId: 'c1', person: 'mallory', version: '0', nowMs: Date.now(), comment: null };
    const ledger = await as('ledger');
    await expect(ledger.append(control('aggregate.resumed', 'gpu', {}, who))).rejects.toBeInstanceOf(NatsRefused);
  });

  it('let a person with the role of a custodian skip an event', async () => {
    const bare = await bareConnection(server.url, { user: 'operator', pass: 'pw-operator' });
    bare.publish('kronos.controls.gpu', '{}');
    await bare.flush();
    await bare.close();
    const custodian =
      'custodian_roles = kronos_custodian\ncustodian_user = custodian\ncustodian_password = pw-custodian\n';
    await serving(`${acting()}nats_password = pw-console\n${custodian}`, async (url) => {
      const page = actingPage(url);
      expect((await page.logIn(people.carol)).body).toMatchObject({ custodian: true });
      const unreadable = async () => (await page.call('GET', '/aggregates/gpu')).body.unreadable;
      await expect.poll(unreadable).toMatchObject({ sequence: expect.any(Number) });
      const { sequence } = (await unreadable()) as { sequence: number };
      const skip: CommandRequest = { command: 'skip', sequence, through: sequence, force: false };
      const { body } = await page.foresee(skip);
      expect((await page.give(skip, body.digest, 'garbage')).body).toMatchObject({ effect: 'done' });
      expect(await unreadable()).toBeNull();
    });
  });
});
