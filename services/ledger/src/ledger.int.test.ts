import { newestCheckpoint } from '@kronos/checkpoints';
import { learnSecret } from '@kronos/config/secret';
import { ALL, messageId, type StateCheckpointed, type StoredEvent } from '@kronos/contracts';
import { canonicalState, fold } from '@kronos/projections';
import { randomHistory, testLog } from '@kronos/projections/testing';
import { collectFacts, statusOf } from '@kronos/status';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ledgerBed } from '../testing/index.ts';

let bed: Awaited<ReturnType<typeof ledgerBed>>;
beforeEach(async () => {
  bed = await ledgerBed();
});
afterEach(async () => {
  await bed.close();
});

/** The events on the log, as they are read back. */
async function stored(): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for await (const { sequence, storedAt, event } of bed.log.replay()) events.push({ sequence, storedAt, event });
  return events;
}
const skippedCheckpoints = () => {
  const problems: string[] = [];
  return { problems, note: ({ problem }: { problem: string }) => void problems.push(problem) };
};

describe('the ledger', () => {
  it('starts from the first event, checkpoints at its end, and goes on from there to the very same state', async () => {
    await bed.append(randomHistory({ seed: 1, cycles: 60 }));
    const first = await bed.start();
    const sequence = (await bed.log.lastSequence('KRONOS_LOG')) as number;
    expect(await first.body('/api/v1')).toMatchObject({ sequence });
    await first.stop();

    const { problems, note } = skippedCheckpoints();
    const restored = await newestCheckpoint(bed.log, note);
    expect(problems).toEqual([]);
    expect(restored && canonicalState(restored)).toBe(canonicalState(fold(await stored())));

    await bed.append([...randomHistory({ seed: 2, cycles: 20, startMs: Date.now() })]);
    const second = await bed.start();
    expect(second.lines).toContainEqual(
      expect.objectContaining({ message: 'folding the log from a checkpoint', sequence }),
    );
    // Nothing is written on a checkpoint that is not verified.
    await expect
      .poll(() => second.lines)
      .toContainEqual(expect.objectContaining({ message: 'the checkpoint is verified' }));
    await second.stop();
    const again = await newestCheckpoint(bed.log, note);
    expect(again && canonicalState(again)).toBe(canonicalState(fold(await stored())));
  });

  it('keeps a state that is too large for a message in the object store', async () => {
    const log = testLog('gpu', Date.now());
    log.configured();
    log.released(Array.from({ length: 600 }, (_, i) => ({ serverId: `vm${i}`, from: 'h1', to: 'h2' })));
    await bed.append(log.events);
    const ledger = await bed.start();
    await ledger.stop();
    const checkpoints: StateCheckpointed[] = [];
    for await (const { message, problem } of bed.log.tail({ families: ['ledger'], since: 'all', end: true }))
      if (problem === undefined && message.type === 'state.checkpointed') checkpoints.push(message);
    expect(checkpoints.map((c) => [c.data.state === null, c.data.body?.bucket])).toEqual([
      [true, 'kronos-checkpoints'],
    ]);
    const restored = await newestCheckpoint(bed.log, () => {});
    expect(restored && canonicalState(restored)).toBe(canonicalState(fold(await stored())));
  });

  it('writes a checkpoint after a number of events', async () => {
    const ledger = await bed.start({ checkpointEvents: 10 });
    await bed.append(randomHistory({ seed: 4, cycles: 10 }));
    for await (const { message } of bed.log.tail({ families: ['ledger'], aggregates: ['gpu'], since: 'all' })) {
      expect((message as StateCheckpointed).data.sequence).toBeGreaterThanOrEqual(10);
      break;
    }
    await expect.poll(() => ledger.text('/metrics')).toMatch(/kronos_checkpoint_sequence\{aggregate="gpu"\} \d+/);
  });

  it('shows in metrics which services send heartbeats, and which servers are in ERROR after their move', async () => {
    await bed.reported(['gpu'], ['planner']);
    const log = testLog('gpu', Date.now());
    log.configured();
    const plan = log.released([{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
    log.started({ task: `${plan}-s1` });
    log.completed({ task: `${plan}-s1` }, 30, [{ code: 'server-in-error', text: 'the server is in ERROR' }]);
    await bed.append(log.events);
    const ledger = await bed.start();
    await expect.poll(() => ledger.text('/metrics')).toContain('kronos_service_instances{service="planner"} 1');
    const text = await ledger.text('/metrics');
    expect(text).toContain('kronos_service_instances{service="executor"} 0');
    expect(text).toContain('kronos_damaged_servers{aggregate="gpu"} 1');
  });

  it('shows events as they come', async () => {
    const ledger = await bed.start();
    const log = testLog('gpu', Date.now());
    log.configured();
    const planId = log.released([{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
    log.started({ task: `${planId}-s1` });
    await bed.append(log.events);
    await expect
      .poll(() => ledger.body('/api/v1/aggregates'))
      .toMatchObject({ aggregates: [{ name: 'gpu', standing: 'moving', slots: 1, inScope: true }] });
  });
});

describe('a checkpoint that cannot be trusted is noticed and skipped:', () => {
  /** A log with two good checkpoints; the second one is then spoilt. */
  async function spoil(change: (good: StateCheckpointed) => StateCheckpointed['data'], counted = 1): Promise<string[]> {
    await bed.append(randomHistory({ seed: 5, cycles: 30, aggregates: ['gpu'] }));
    await (await bed.start()).stop();
    const sequence = await bed.log.lastSequence('KRONOS_LOG');
    let good: StateCheckpointed | null = null;
    const kept = { families: ['ledger'], aggregates: ['gpu'], since: 'all', end: true } as const;
    for await (const { message } of bed.log.tail(kept)) good = message as StateCheckpointed;
    if (good === null) throw new Error('no checkpoint was written');
    await bed.append(randomHistory({ seed: 6, cycles: 30, aggregates: ['gpu'], startMs: Date.now() }));
    const data = change(good);
    const id = messageId.checkpoint('gpu', data.sequence, data.installationId ?? null);
    await bed.log.append({ ...good, id, data });
    const ledger = await bed.start();
    expect(ledger.lines).toContainEqual(
      expect.objectContaining({ message: 'folding the log from a checkpoint', sequence }),
    );
    const [, skipped = '0'] = /^kronos_checkpoints_skipped_total (\d+)/m.exec(await ledger.text('/metrics')) ?? [];
    expect(Number(skipped)).toBe(counted);
    const warnings = ledger.lines.filter((line) => line.message === 'a checkpoint is skipped');
    return warnings.map((line) => String(line.problem));
  }

  it('one whose state has another digest', async () => {
    expect(await spoil(({ data }) => ({ ...data, sequence: data.sequence + 1, digest: 'sha256:00' }))).toEqual([
      expect.stringMatching(/digest/),
    ]);
  });

  it('one of another fold version, which is no fault: it is there after each upgrade', async () => {
    const newer = ({ data }: StateCheckpointed) => ({ ...data, sequence: data.sequence + 1, foldVersion: 999 });
    expect(await spoil(newer, 0)).toEqual([expect.stringMatching(/fold version/)]);
  });

  it('one whose object is gone', async () => {
    const body = {
      bucket: 'kronos-checkpoints',
      object: 'sha256:gone',
      digest: 'sha256:gone',
      bytes: 1,
      storedBytes: 1,
    };
    expect(await spoil(({ data }) => ({ ...data, sequence: data.sequence + 1, state: null, body }))).toHaveLength(1);
  });
});

describe('the ledger warns', () => {
  it('of a writer whose clock is wrong, and is not ready until that writer is right again', async () => {
    const ledger = await bed.start();
    const log = testLog('gpu', Date.now() + 60_000);
    log.configured();
    await bed.append(log.events.splice(0));
    await expect.poll(async () => (await ledger.get('/readyz')).status).toBe(503);
    expect(await ledger.body('/readyz')).toMatchObject({ checks: { clock: { ok: false } } });
    expect(ledger.lines).toContainEqual(expect.objectContaining({ writer: 'planner planner-1' }));
    log.pass((Date.now() - log.nowMs) / 1000).decided();
    await bed.append(log.events);
    await expect.poll(async () => (await ledger.get('/readyz')).status).toBe(200);
  });

  it('of no clock because of events that were there before it: a restored log has the stamps of its restore', async () => {
    const log = testLog('gpu', Date.now() - 60_000);
    log.configured();
    await bed.append(log.events);
    const ledger = await bed.start();
    expect(await ledger.body('/readyz')).toMatchObject({ ready: true, checks: { clock: { ok: true } } });
  });

  it('of an event that it cannot read, and shows its aggregate as unplannable', async () => {
    const ledger = await bed.start();
    const event = { ...testLog('gpu', Date.now()).paused(), type: 'aggregate.exploded' };
    const { bareConnection } = await import('@kronos/eventlog/testing');
    const connection = await bareConnection(bed.server.url);
    connection.publish('kronos.controls.gpu', JSON.stringify(event));
    await connection.drain();
    await expect
      .poll(() => ledger.body('/api/v1/aggregates'))
      .toMatchObject({ aggregates: [{ standing: 'unplannable', unreadable: { claimedType: 'aggregate.exploded' } }] });
    await expect.poll(() => ledger.text('/metrics')).toContain('kronos_log_unreadable_total{family="controls"} 1');
  });
});

describe('the JSON interface', () => {
  async function shown() {
    const log = testLog('gpu', Date.now() - 100_000);
    log.configured({ approvalTtlSeconds: 900 });
    const done = log.at(1).released([{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
    log.at(2).dispatched(done);
    log.at(3).started({ task: `${done}-s1` });
    log.at(4).completed({ task: `${done}-s1` });
    const plan = log.at(61).released([
      { serverId: 'vm2', from: 'h1', to: 'h2' },
      { serverId: 'vm3', from: 'h1', to: 'h3' },
    ]);
    log.at(62).started({ task: `${plan}-s1` });
    log.at(63).failed({ task: `${plan}-s1`, hostAtFault: 'h2' });
    const waiting = log.at(65).proposed([{ serverId: 'vm4', from: 'h1', to: 'h3' }]);
    log.about(ALL).at(66).quarantined('vm9', -1, 'grace');
    await bed.append(log.events);
    return { done, plan, waiting, ledger: await bed.start({ scope: ['gpu', 'idle one'] }) };
  }

  it('gives the alarms of kronos status, with the services that report', async () => {
    await bed.reported(['gpu'], ['scorer', 'executor', 'ledger']);
    const ledger = await bed.start({ scope: ['gpu'] });
    const body = await ledger.body('/api/v1/alarms');
    const look = { log: bed.log, state: fold(await stored()), scope: ['gpu'], maxClockSkewMs: 5000, clock: Date.now };
    const { alarms } = statusOf(await collectFacts(look));
    expect(body).toMatchObject({ well: false, alarms, services: [{ service: 'scorer' }, { service: 'executor' }, {}] });
    expect(alarms).toMatchObject([
      { code: 'service-missing', about: 'planner' },
      { code: 'snapshot-none', about: 'gpu' },
    ]);
  });

  it('lists aggregates of the configuration and of the log', async () => {
    const { ledger, waiting } = await shown();
    expect(await ledger.body('/api/v1/aggregates')).toMatchObject({
      sequence: 10,
      aggregates: [
        {
          name: 'gpu',
          standing: 'waitingForApproval',
          waitingPlan: { planId: waiting, steps: 1 },
          movesInFlight: 1,
          quarantined: 2,
          cooldown: { cause: 'released' },
          lastDecision: { release: 'proposed' },
        },
        { name: 'idle one', standing: 'unknown' },
      ],
    });
    expect(await ledger.body('/api/v1/aggregates/idle%20one')).toMatchObject({ name: 'idle one', moves: [] });
    expect(await ledger.body('/api/v1/aggregates/gpu')).toMatchObject({ moves: [{ serverId: 'vm3' }] });
  });

  it('shows plans and one plan with the decision that made it', async () => {
    const { ledger, done, plan, waiting } = await shown();
    expect(await ledger.body('/api/v1/plans?aggregate=gpu&limit=2')).toMatchObject({
      plans: [
        { id: waiting, state: 'proposed' },
        { id: plan, state: 'released', failed: 1 },
      ],
    });
    expect(await ledger.body(`/api/v1/plans/${done}`)).toMatchObject({
      plan: { state: 'done', completed: 1 },
      decision: { type: 'cycle.decided', data: { plan: { id: done, steps: [{ why: { code: 'gain' } }] } } },
      events: [{ type: 'cycle.decided' }, { type: 'plan.dispatched' }, {}, { type: 'migration.completed' }],
    });
  });

  it('shows tasks, VMs, hosts and the quarantine', async () => {
    const { ledger, plan, done } = await shown();
    expect(await ledger.body(`/api/v1/tasks/${plan}-s1`)).toMatchObject({
      task: { status: 'failed', lastFailure: { errorType: 'MigrationFailed', final: true } },
    });
    expect(await ledger.body(`/api/v1/tasks/${done}-s1`)).toMatchObject({ task: null, events: [{}, {}] });
    expect(await ledger.body('/api/v1/vms/vm2')).toMatchObject({
      aggregates: [{ aggregate: 'gpu', quarantine: { cause: 'failure' }, moves: [{ status: 'failed' }] }],
    });
    expect(await ledger.body('/api/v1/hosts/h2')).toMatchObject({
      aggregates: [{ failures: [expect.any(String)], brokenUntil: null }],
    });
    expect(await ledger.body('/api/v1/quarantine?aggregate=gpu')).toMatchObject({
      quarantine: [
        { serverId: 'vm2', cause: 'failure' },
        { serverId: 'vm9', cause: 'operator', until: null, by: 'grace' },
      ],
    });
  });

  it('shows decisions and history, by sequence and by time', async () => {
    const { ledger } = await shown();
    expect(await ledger.body('/api/v1/decisions?aggregate=gpu')).toMatchObject({
      decisions: [{ steps: 1 }, { steps: 2 }, { steps: 1, release: 'proposed' }],
    });
    const all = (await ledger.body('/api/v1/history')) as unknown as { events: { sequence: number }[] };
    expect(all.events.map((e) => e.sequence)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(await ledger.body('/api/v1/history?since=9')).toMatchObject({ events: [{ sequence: 9 }, { sequence: 10 }] });
    expect(await ledger.body(`/api/v1/history?since=${new Date(Date.now() + 60_000).toISOString()}`)).toMatchObject({
      events: [],
    });
    expect(await ledger.body('/api/v1/history?limit=2&aggregate=_all_')).toMatchObject({
      events: [{ text: 'quarantined vm9 until it is released', by: 'operator grace' }],
    });
  });

  it('reads a bounded part of a long log per request, few requests at once, and leaves nothing on the server', async () => {
    const log = testLog('gpu', Date.now() - 100_000);
    for (let i = 0; i < 11_000; i++) log.paused();
    await bed.append(log.events);
    const ledger = await bed.start({ scope: ['gpu', 'general'] });
    await expect
      .poll(() => ledger.body('/api/v1/history?limit=1&since=500'))
      .toMatchObject({ from: 'log', events: [{ sequence: 500 }], next: 501 });
    // An aggregate without events makes no request read on and on.
    expect(await ledger.body('/api/v1/history?since=1&aggregate=general')).toEqual({
      from: 'log',
      events: [],
      next: 5001,
    });
    const answers = Promise.all(
      Array.from({ length: 30 }, () => ledger.get('/api/v1/history?since=1&aggregate=general')),
    );
    expect((await ledger.get('/healthz')).status).toBe(200);
    const statuses = (await answers).map(({ status }) => status);
    expect(statuses).toContain(200);
    expect(statuses).toContain(503);
    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    const all = Promise.all(Array.from({ length: 30 }, () => ledger.get('/api/v1/history?since=1&aggregate=nobody')));
    expect((await all).map(({ status }) => status)).toEqual(Array(30).fill(404));
    // The view, the trace of arrivals, and the guard.
    await expect.poll(() => bed.consumers()).toBe(3);
  });

  it('finds the first event of a time by halving the log', async () => {
    const log = testLog('gpu', Date.now() - 100_000);
    for (let i = 0; i < 10_100; i++) log.paused();
    await bed.append(log.events.splice(0));
    const ledger = await bed.start();
    const all = (await ledger.body('/api/v1/history?since=1&limit=50')) as { events: { sequence: number }[] };
    expect(all.events).toHaveLength(50);
    const events: StoredEvent[] = [];
    for await (const event of bed.log.replay({ from: 40, to: 43 })) events.push(event);
    const since = new Date(events[0]?.storedAt ?? 0).toISOString();
    const first = (await ledger.body(`/api/v1/history?since=${since}&limit=1`)) as typeof all;
    let expected = 40;
    for await (const event of bed.log.replay({ to: 40 }))
      if (event.storedAt === events[0]?.storedAt) {
        expected = event.sequence;
        break;
      }
    expect(first.events.map(({ sequence }) => sequence)).toEqual([expected]);
  });

  it.each([
    ['/api/v1/nothing', 404],
    ['/api/v1/aggregates/other', 404],
    ['/api/v1/plans/none', 404],
    ['/api/v1/plans?limit=0', 400],
    ['/api/v1/plans?aggregate=other', 404],
    ['/api/v1/tasks/none', 404],
    ['/api/v1/vms/none', 404],
    ['/api/v1/hosts/none', 404],
    ['/api/v1/history?since=yesterday', 400],
    ['/api/v1/history?aggregate=other', 404],
    ['/api/v1/decisions', 400],
    ['/api/v1/decisions?aggregate=other', 404],
    ['/api/v1/aggregates/%E0%A4%A', 400],
    ['/nothing', 404],
  ])('refuses %s with %i and a reason', async (path, status) => {
    const ledger = await bed.start();
    expect(await ledger.get(path)).toEqual({ status, body: { error: expect.any(String) } });
  });

  it('serves the console: every file that it loads, none from elsewhere, and no inline code', async () => {
    const ledger = await bed.start();
    const loaded = new Set<string>();
    async function load(path: string): Promise<void> {
      if (loaded.has(path)) return;
      loaded.add(path);
      const answer = await fetch(`${ledger.url}${path}`);
      expect([path, answer.status]).toEqual([path, 200]);
      expect(answer.headers.get('content-security-policy')).toContain(
        "default-src 'none'; script-src 'self'; style-src",
      );
      const text = await answer.text();
      const links = path.endsWith('.js')
        ? text.matchAll(/(?:^|;)(?:import|export)\b[^;"'()=]*["']([^"']+)["']/gm)
        : text.matchAll(/(?:src|href)="([^"#]+)"/g);
      for (const [, link = ''] of links)
        if (!link.startsWith('data:'))
          await load(new URL(link, `http://ledger${path}`).href.replace('http://ledger', ''));
    }
    await load('/');
    expect([...loaded].filter((path) => !path.startsWith('/'))).toEqual([]);
    expect([...loaded]).toEqual(
      expect.arrayContaining([
        '/console/app.js',
        '/console/views/plan.js',
        '/console/lib/lit-html.js',
        '/console/lib/uplot.js',
      ]),
    );
    expect(await ledger.text('/')).not.toMatch(/<script(?![^>]* src=)|<style|\son\w+=|\sstyle=/);
    expect((await ledger.get('/console/none.js')).status).toBe(404);
  });

  it('changes neither a script nor the name of a field when a password is a common word', async () => {
    const plain = await bed.start();
    const before = [await plain.text('/console/app.js'), await plain.text('/api/v1/openapi.json')];
    await plain.stop();
    learnSecret('function');
    learnSecret('aggregates');
    const ledger = await bed.start();
    expect([await ledger.text('/console/app.js'), await ledger.text('/api/v1/openapi.json')]).toEqual(before);
    expect(await ledger.body('/api/v1/aggregates')).toHaveProperty('aggregates');
  });

  it('serves no console when that is off', async () => {
    const ledger = await bed.start({ console: false });
    expect((await ledger.get('/')).status).toBe(404);
  });
});
