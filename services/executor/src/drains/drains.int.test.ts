import { aggregateAt } from '@kronos/checkpoints';
import { type Clock, systemClock } from '@kronos/clock';
import { until } from '@kronos/clock/testing';
import type { HostEvent, LogEvent } from '@kronos/contracts';
import { createNova, type Nova } from '@kronos/openstack';
import { folding } from '@kronos/projections';
import { testLog } from '@kronos/projections/testing';
import { createLogger } from '@kronos/telemetry';
import { describe, expect, it, onTestFinished } from 'vitest';
import { AGGREGATE, type Bed, openParts, smallCloud, startBed } from '../../testing/index.ts';
import { logReader } from '../logReader.ts';
import { runDrains } from './drains.ts';

/** h4 has no server. */
const cloud = () => {
  const { servers = [], ...rest } = smallCloud();
  return { ...rest, servers: servers.filter(({ host }) => host !== 'h4') };
};

async function bedOf(scenario = cloud()): Promise<Bed> {
  const bed = await startBed(scenario);
  onTestFinished(() => bed.close());
  return bed;
}

/** Writes commands of people and events of other services to the log, in order. */
function writer(bed: Bed, options: { readonly dryRun?: boolean } = {}) {
  const draft = testLog(AGGREGATE, Date.now());
  draft.configured({ dryRun: options.dryRun ?? false });
  let appended = 0;
  return {
    draft,
    /** Appends what was added to the draft, as of now or of some seconds ago. */
    async append(secondsAgo = 0): Promise<void> {
      for (const { event } of draft.events.slice(appended)) {
        const time = new Date(Date.now() - secondsAgo * 1000).toISOString();
        await bed.log.append({ ...(event as LogEvent), time });
      }
      appended = draft.events.length;
    },
    async drain(host: string): Promise<string> {
      const { commandId } = draft.drainAsked(host).data;
      await this.append();
      return commandId;
    },
    async undrain(host: string): Promise<void> {
      draft.undrainAsked(host);
      await this.append();
    },
  };
}

/** An executor's part in drains, on connections of its own. */
async function startDrains(
  bed: Bed,
  more: {
    readonly dryRun?: boolean;
    readonly clock?: Clock;
    readonly name?: string;
    readonly nova?: Partial<Nova>;
  } = {},
) {
  const name = more.name ?? 'executor-1';
  const { log, view, session } = await openParts({ natsUrl: bed.nats.url, authUrl: bed.sim.urls.identity }, name, {
    retry: { connection: { retries: 0, backoffMs: 10 }, status: { retries: 0, backoffMs: 10 } },
  });
  const drains = runDrains({
    log,
    reader: logReader(view),
    aggregates: [AGGREGATE],
    nova: { ...createNova(session), ...more.nova },
    dryRun: more.dryRun ?? false,
    problem: () => null,
    by: { service: 'executor', instance: name, version: '0' },
    clock: more.clock ?? systemClock,
    logger: createLogger({ service: name, version: '0', level: process.env.TEST_LOG ?? 'silent' }),
    pollMs: 50,
  });
  const following = (async () => {
    for await (const stored of view.changes()) drains.changed(stored);
  })();
  drains.wake();
  onTestFinished(async () => {
    drains.stop();
    await view.close();
    await following.catch(() => undefined);
    await log.close();
    await session.close();
  });
  return drains;
}

async function hostEvents(bed: Bed): Promise<HostEvent[]> {
  const events: HostEvent[] = [];
  for await (const { event } of bed.log.replay())
    if (event.type.startsWith('host.') && !event.type.endsWith('Asked')) events.push(event as HostEvent);
  return events;
}
const types = async (bed: Bed): Promise<string[]> => (await hostEvents(bed)).map(({ type }) => type);
/** Once the log has as many events of executors about hosts. */
async function eventsOf(bed: Bed, count: number): Promise<HostEvent[]> {
  let events: HostEvent[] = [];
  await until(async () => {
    events = await hostEvents(bed);
    return events.length >= count;
  });
  expect(events).toHaveLength(count);
  return events;
}
const service = (bed: Bed, host: string) => {
  const { disabled, disabledReason } = bed.sim.cloud.host(host);
  return { disabled, disabledReason };
};

describe('a drain on a simulated cloud', () => {
  it('disables the host with a reason that names Kronos, sees that it is empty, and enables it when asked', async () => {
    const bed = await bedOf();
    const people = writer(bed);
    await startDrains(bed);
    const id = await people.drain('h4');
    const events = await eventsOf(bed, 3);
    expect(events).toMatchObject([
      { type: 'host.claimed', data: { act: 'disable', attempt: 1 } },
      { type: 'host.disabled', data: { drainId: id, host: 'h4', byKronos: true } },
      { type: 'host.drained', data: { drainId: id } },
    ]);
    expect(service(bed, 'h4')).toEqual({ disabled: true, disabledReason: `Kronos drain ${id} by ada` });
    await people.undrain('h4');
    expect((await eventsOf(bed, 5)).slice(3)).toMatchObject([
      { type: 'host.claimed', data: { act: 'enable', attempt: 1 } },
      { type: 'host.enabled', data: { byKronos: true } },
    ]);
    expect(service(bed, 'h4')).toEqual({ disabled: false, disabledReason: null });
  });

  it('is not at its end while a server is on the host', async () => {
    const bed = await bedOf();
    const people = writer(bed);
    await startDrains(bed);
    await people.drain('h1');
    await eventsOf(bed, 2);
    for (const server of ['h1-1', 'h1-2']) bed.sim.act({ act: 'migrateServer', server, host: 'h2' });
    await until(() => bed.sim.migrations().filter((m) => m.status === 'completed').length === 2);
    expect(await types(bed)).toEqual(['host.claimed', 'host.disabled']);
    bed.sim.act({ act: 'migrateServer', server: 'h1-3', host: 'h3' });
    expect((await eventsOf(bed, 3)).at(-1)?.type).toBe('host.drained');
    expect(bed.sim.cloud.server('h1-3').host).toBe('h3');
  });

  it('is not at its end while only the list of servers says so, which leaves out the servers of a cell that Nova does not reach', async () => {
    const bed = await bedOf();
    const people = writer(bed);
    await startDrains(bed, { nova: { listServers: async () => [] } });
    await people.drain('h1');
    await until(() => (bed.sim.counts()['GET compute /v2.1/os-hypervisors/detail'] ?? 0) > 1);
    expect(await types(bed)).toEqual(['host.claimed', 'host.disabled']);
  });

  it('is not held by a row that Nova has abandoned', async () => {
    // The first move copies for longer than a busy machine takes to look.
    const bed = await bedOf({ ...cloud(), timing: { copyFloorMs: 86_400_000 } });
    const people = writer(bed);
    // Nova moves one server at a time: the second row is queued when the compute of the source starts again.
    for (const server of ['h1-1', 'h1-2']) bed.sim.act({ act: 'migrateServer', server, host: 'h4' });
    const rows = (...statuses: string[]) => bed.sim.migrations().filter((m) => statuses.includes(m.status)).length;
    // While the first is queued itself, the second would run when the compute starts again.
    await until(() => rows('preparing', 'running') === 1 && rows('queued') === 1);
    bed.sim.act({ act: 'killHost', host: 'h1' });
    bed.sim.act({ act: 'startHost', host: 'h1' });
    await startDrains(bed);
    await people.drain('h4');
    await eventsOf(bed, 2);
    expect(rows('queued')).toBe(1);
    // The row counts until it is older than any change of Nova's takes.
    await startDrains(bed, { name: 'late', clock: { ...systemClock, now: () => Date.now() + 301_000 } });
    expect((await eventsOf(bed, 3)).at(-1)).toMatchObject({ type: 'host.drained', by: { instance: 'late' } });
  });

  it('is done once by several executors', async () => {
    const bed = await bedOf();
    const people = writer(bed);
    for (const name of ['executor-1', 'executor-2', 'executor-3']) await startDrains(bed, { name });
    await people.drain('h4');
    await eventsOf(bed, 3);
    await people.undrain('h4');
    expect((await eventsOf(bed, 5)).map(({ type }) => type)).toEqual([
      'host.claimed',
      'host.disabled',
      'host.drained',
      'host.claimed',
      'host.enabled',
    ]);
  });
});

describe('a host that an operator', () => {
  it('disabled before is not enabled at the end', async () => {
    const bed = await bedOf();
    bed.sim.act({ act: 'setHost', host: 'h4', disabled: true, disabledReason: 'broken disk' });
    const people = writer(bed);
    await startDrains(bed);
    await people.drain('h4');
    expect((await eventsOf(bed, 3))[1]).toMatchObject({ data: { byKronos: false, disabledReason: 'broken disk' } });
    await people.undrain('h4');
    expect((await eventsOf(bed, 4)).at(-1)).toMatchObject({
      type: 'host.leftDisabled',
      data: { reason: { code: 'not-ours' } },
    });
    expect(service(bed, 'h4')).toEqual({ disabled: true, disabledReason: 'broken disk' });
  });

  it('disabled again meanwhile, for a reason of his own, is not enabled at the end', async () => {
    const bed = await bedOf();
    const people = writer(bed);
    await startDrains(bed);
    await people.drain('h4');
    await eventsOf(bed, 3);
    bed.sim.act({ act: 'setHost', host: 'h4', disabled: true, disabledReason: 'broken disk' });
    await people.undrain('h4');
    expect((await eventsOf(bed, 5)).at(-1)).toMatchObject({
      type: 'host.leftDisabled',
      data: { reason: { code: 'changed' } },
    });
    expect(service(bed, 'h4')).toEqual({ disabled: true, disabledReason: 'broken disk' });
  });

  it('enabled meanwhile is not disabled again: the drain is over', async () => {
    const bed = await bedOf();
    const people = writer(bed);
    await startDrains(bed);
    await people.drain('h1');
    await eventsOf(bed, 2);
    bed.sim.act({ act: 'setHost', host: 'h1', disabled: false });
    expect((await eventsOf(bed, 3)).at(-1)).toMatchObject({ type: 'host.enabled', data: { byKronos: false } });
    expect(service(bed, 'h1').disabled).toBe(false);
  });
});

describe('nothing is changed', () => {
  it('in a dry run of the engine or of the executor', async () => {
    const bed = await bedOf();
    const people = writer(bed, { dryRun: true });
    await startDrains(bed);
    await people.drain('h4');
    people.draft.configured({ dryRun: false });
    await people.append();
    expect((await eventsOf(bed, 3)).at(-1)?.type).toBe('host.drained');
    const claim = await firstEvent(bed, 'host.claimed');
    const configured = await lastSequenceOf(bed, 'planner.configured');
    expect(claim).toBeGreaterThan(configured);
  });

  it('while the aggregate is paused', async () => {
    const bed = await bedOf();
    const people = writer(bed);
    people.draft.paused();
    await startDrains(bed);
    await people.drain('h4');
    people.draft.resumed();
    await people.append();
    await eventsOf(bed, 3);
    expect(await firstEvent(bed, 'host.claimed')).toBeGreaterThan(await lastSequenceOf(bed, 'aggregate.resumed'));
  });
});

async function sequences(bed: Bed, type: string): Promise<number[]> {
  const found: number[] = [];
  for await (const { sequence, event } of bed.log.replay()) if (event.type === type) found.push(sequence);
  return found;
}
const firstEvent = async (bed: Bed, type: string): Promise<number> => (await sequences(bed, type))[0] ?? 0;
const lastSequenceOf = async (bed: Bed, type: string): Promise<number> => (await sequences(bed, type)).at(-1) ?? 0;

describe('an executor that died with its claim', () => {
  it('is followed by another one, which finds what it did', async () => {
    const bed = await bedOf();
    const people = writer(bed);
    const id = await people.drain('h1');
    people.draft.hostClaimed(id, 'h1');
    await people.append(120);
    bed.sim.act({ act: 'setHost', host: 'h1', disabled: true, disabledReason: `Kronos drain ${id} by ada` });
    await startDrains(bed);
    expect((await eventsOf(bed, 3)).slice(1)).toMatchObject([
      { type: 'host.claimed', data: { attempt: 2 } },
      { type: 'host.disabled', data: { byKronos: true } },
    ]);
  });

  it('and had done nothing is followed by one that does it; not before nothing of the claim can be sent', async () => {
    const bed = await bedOf();
    const people = writer(bed);
    const id = await people.drain('h1');
    people.draft.hostClaimed(id, 'h1');
    await people.append();
    await startDrains(bed, { name: 'early' });
    expect(await types(bed)).toEqual(['host.claimed']);
    await startDrains(bed, { name: 'late', clock: { ...systemClock, now: () => Date.now() + 61_000 } });
    expect((await eventsOf(bed, 3)).at(-1)).toMatchObject({ type: 'host.disabled', by: { instance: 'late' } });
    expect(service(bed, 'h1').disabled).toBe(true);
  });
});

describe('Nova', () => {
  const put = { api: 'compute', method: 'PUT', path: 'os-services' } as const;

  it('refuses: the failure is on the log, and the drain can be taken back', async () => {
    const bed = await bedOf();
    bed.sim.act({ act: 'faultApi', fault: { ...put, effect: { kind: 'status', status: 403 } } });
    const people = writer(bed);
    await startDrains(bed);
    await people.drain('h4');
    expect((await eventsOf(bed, 2)).at(-1)).toMatchObject({
      type: 'host.actFailed',
      data: { status: 403, act: 'disable' },
    });
    await people.undrain('h4');
    const view = await bed.log.view(folding());
    onTestFinished(() => view.close());
    await view.refresh();
    expect(aggregateAt(view.at(), AGGREGATE).state.recentDrains).toMatchObject([{ host: 'h4', outcome: 'withdrawn' }]);
    expect(service(bed, 'h4').disabled).toBe(false);
  });

  it('acts and does not answer: nothing is said until the claim is over, then what Nova shows', async () => {
    const bed = await bedOf();
    bed.sim.act({
      act: 'faultApi',
      fault: { ...put, times: 1, effect: { kind: 'status', status: 504, processed: true } },
    });
    const people = writer(bed);
    await startDrains(bed, { name: 'early' });
    await people.drain('h1');
    await until(() => bed.sim.cloud.host('h1').disabled);
    expect(await types(bed)).toEqual(['host.claimed']);
    await startDrains(bed, { name: 'late', clock: { ...systemClock, now: () => Date.now() + 61_000 } });
    expect((await eventsOf(bed, 3)).slice(1)).toMatchObject([
      { type: 'host.claimed', data: { attempt: 2 } },
      { type: 'host.disabled', data: { byKronos: true } },
    ]);
  });
});
