import { describe, expect, it } from 'vitest';
import { recorded } from '../testing/index.ts';
import { authors, wrongAuthor } from './authority.ts';
import { actorSchema } from './envelope.ts';
import { type Message, messagesByFamily } from './messages.ts';
import { families } from './names.ts';
import { familiesOf, parseMessage, readMessage } from './reading.ts';

const services = actorSchema.shape.service.options;
const bytes = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
/** One recorded event of each type, by type. */
const samples = new Map((recorded as Message[]).map((event) => [event.type, event]));
const by = (event: Message, service: Message['by']['service']): Message =>
  ({ ...event, by: { ...event.by, service } }) as Message;

describe('the table of authority', () => {
  it('names the authors of every type', () => {
    const types = Object.values(messagesByFamily).flatMap((schemas) => schemas.map((s) => s.shape.type.value));
    expect(Object.keys(authors).sort()).toEqual([...types].sort());
    for (const allowed of Object.values(authors)) expect(allowed.length).toBeGreaterThan(0);
  });

  it('lets an event be read on the subject of its type, from its author, and nowhere else from nobody else', () => {
    expect(samples.size).toBeGreaterThan(8);
    for (const [type, event] of samples)
      for (const family of families)
        for (const service of services) {
          const sample = by(event, service);
          const read = readMessage(bytes(sample), { family, name: sample.aggregate });
          const right =
            messagesByFamily[family].some((s) => s.shape.type.value === type) &&
            (service === event.by.service || (authors[type].includes(service) && wrongAuthor(sample) === null));
          expect(read.ok, `${type} of the ${service} on kronos.${family}`).toBe(right);
          if (!read.ok) expect(read.remedy).toBe('skip');
        }
  });

  it('does not let operator or executor decide, configure or checkpoint, whatever subject they use', () => {
    for (const type of ['cycle.decided', 'planner.configured', 'plan.dispatched', 'state.checkpointed'] as const)
      for (const service of ['operator', 'executor'] as const) expect(authors[type]).not.toContain(service);
  });

  it('lets the planner end a task that was never started or that was closed, and say nothing else about a task', () => {
    const failed = samples.get('migration.failed');
    if (failed?.type !== 'migration.failed') throw new Error('no migration.failed was recorded');
    const expired = {
      ...by(failed, 'planner'),
      data: {
        ...failed.data,
        started: false,
        retryPending: false,
        next: null,
        errorType: 'Cancelled',
        hostAtFault: null,
      },
    };
    expect(parseMessage(expired).ok).toBe(true);
    const closed = { ...expired.data, started: true, reason: { code: 'closed', text: 'closed by ada' } };
    expect(parseMessage({ ...expired, data: closed }).ok).toBe(true);
    for (const change of [
      { started: true },
      { retryPending: true },
      { errorType: 'MigrationFailed' },
      { hostAtFault: 'h1' },
    ])
      expect(parseMessage({ ...expired, data: { ...expired.data, ...change } }).ok, JSON.stringify(change)).toBe(false);
  });

  it('refuses a message that names another aggregate than its subject, or is on none of the subjects', () => {
    const [event] = samples.values();
    if (event === undefined) throw new Error('nothing was recorded');
    expect(readMessage(bytes(event), { family: 'plans', name: 'another' }).ok).toBe(false);
    expect(readMessage(bytes(event), null).ok).toBe(false);
  });

  it('says which subjects a service needs', () => {
    expect(familiesOf('scorer')).toEqual(['snapshots', 'inventory', 'services']);
    expect(familiesOf('planner')).toEqual(['plans', 'migrations', 'results', 'services']);
    expect(familiesOf('executor')).toEqual(['migrations', 'results', 'services']);
    expect(familiesOf('ledger')).toEqual(['ledger', 'services', 'alarms']);
    expect(familiesOf('operator')).toEqual(['controls']);
  });
});

describe('reading a message', () => {
  it.each([
    [new Uint8Array(), 'skip'],
    [bytes('text'), 'skip'],
    [bytes({ type: 'plan.painted', version: 1 }), 'upgrade'],
    [bytes({ type: 'plan.dispatched', version: 2 }), 'upgrade'],
    [bytes({ type: 'plan.dispatched', version: 1 }), 'skip'],
    [
      new TextEncoder().encode(`{"type":"migration.failed","version":1,"data":${'['.repeat(6000)}${']'.repeat(6000)}}`),
      'skip',
    ],
  ])('names the remedy that fits: %#', (data, remedy) =>
    expect(readMessage(data, { family: 'plans', name: 'gpu' })).toMatchObject({ ok: false, remedy }),
  );

  it('takes a bounded time, whatever is wrong with the message', () => {
    const event = recorded.find(({ type }) => type === 'cycle.decided');
    const wide = (element: string, count: number): Uint8Array =>
      new TextEncoder().encode(
        JSON.stringify({ ...event, extra: null }).replace(
          /"warnings":\[[^\]]*\]/,
          `"warnings":[${Array(count).fill(element).join(',')}]`,
        ),
      );
    const deep = `${'['.repeat(40)}1e999${']'.repeat(40)}`;
    const started = performance.now();
    for (const data of [
      wide('0', 100_000),
      wide('{}', 40_000),
      wide(`{"code":"a","text":"b","detail":{"x":${deep}}}`, 3_000),
    ]) {
      const read = readMessage(data, { family: 'plans', name: 'gpu' });
      expect(read.ok ? '' : read.problem).toMatch(/^data\.warnings\.0/);
    }
    // Collecting every problem takes a minute for the second one alone.
    expect(performance.now() - started).toBeLessThan(30_000);
  });
});
