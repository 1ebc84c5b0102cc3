import { copyFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ALL, defaultEngineOptions, type StoredEvent } from '@kronos/contracts';
import { canonicalState, fold } from '@kronos/projections';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { counted, memoryHistory, operate } from '../testing/index.ts';
import { anonymizer } from './anonymize/anonymizer.ts';
import { RecordingExists, RecordingInvalid } from './errors.ts';
import { type RecordOptions, recordRange } from './record.ts';
import { readRecording } from './recording.ts';
import { VerifyCount, verify } from './verify.ts';
import { whatIf } from './whatIf.ts';

const op = operate({ seed: 9, cycles: 40, commands: 0.2, aggregates: ['gpu', 'web eu/1'] });
const history = memoryHistory(op.events, op.snapshots);
const options: RecordOptions = { range: {}, anonymize: false, madeBy: 'test', nowMs: 0 };
let root = '';
const place = (name: string) => join(root, name);

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'kronos-recording-'));
});
afterAll(() => rm(root, { recursive: true }));

const installations = { one: '11111111-1111-4111-8111-111111111111', other: '22222222-2222-4222-8222-222222222222' };
/** The event that names a log, as its first one. */
const created = (installationId: string): StoredEvent => ({
  sequence: 1,
  storedAt: op.events[0]?.storedAt ?? 0,
  event: {
    type: 'installation.created',
    version: 1,
    id: `installation.created:${installationId}`,
    time: new Date(op.events[0]?.storedAt ?? 0).toISOString(),
    aggregate: ALL,
    by: { service: 'provisioner', instance: 'test', version: 'test' },
    correlationId: installationId,
    causationId: null,
    data: { installationId, statement: 'provisioned', comment: null },
  },
});
const later = op.events.map((stored) => ({ ...stored, sequence: stored.sequence + 1 }));

const read = async (name: string) => (await readRecording(place(name))).history;
const all = async (name: string): Promise<StoredEvent[]> => Array.fromAsync((await read(name)).events());

describe('a recording', () => {
  it('holds the log and the snapshots as they were, to be run again', async () => {
    const recorded = await recordRange(history, place('whole'), options);
    expect(recorded).toMatchObject({ snapshots: 80, events: op.events.length, missing: [] });
    expect(await all('whole')).toEqual(op.events);
    const cycles = await Array.fromAsync(verify(await read('whole'), {}));
    expect(counted(new VerifyCount(), cycles).totals()).toMatchObject({ decisions: 80, identical: 80, ok: true });
  });

  it('is files that a person can read', async () => {
    expect((await readdir(place('whole'))).sort()).toEqual([
      'README.txt',
      'cooldowns.json',
      'log.jsonl',
      'manifest.jsonl',
      'recording.json',
      'snapshots',
    ]);
    expect(JSON.parse(await readFile(place('whole/cooldowns.json'), 'utf8'))).toEqual({
      aggregate_cooldowns: {},
      instance_cooldowns: {},
      instance_quarantines: {},
    });
    expect(await readdir(place('whole/snapshots'))).toEqual(['gpu', 'web=20eu=2F1']);
    const [first = ''] = (await readdir(place('whole/snapshots/gpu'))).sort();
    expect(first).toBe('2026-01-05T000000.001Z-gpu-29459520.json');
    expect((await readFile(place(`whole/snapshots/gpu/${first}`), 'utf8')).split('\n').length).toBeGreaterThan(100);
  });

  it('of one aggregate folds to the same facts about it', async () => {
    await recordRange(history, place('one'), { ...options, range: { aggregates: ['gpu'] } });
    const facts = fold(await all('one')).aggregates.get('gpu');
    expect(facts).toEqual(op.end.aggregates.get('gpu'));
    const one = await read('one');
    const cycles = await Array.fromAsync(verify(one, await one.kept()));
    expect(counted(new VerifyCount(), cycles).totals()).toMatchObject({ identical: 40, decisions: 40 });
  });

  it('of a range holds the log from its first event, up to the end of the range', async () => {
    const times = op.snapshots.map((s) => Date.parse(s.time)).toSorted((a, b) => a - b);
    const range = { sinceMs: times[20] ?? 0, untilMs: times[39] ?? 0 };
    const recorded = await recordRange(history, place('range'), { ...options, range });
    expect(recorded.snapshots).toBe(20);
    const events = await all('range');
    expect(events[0]).toEqual(op.events[0]);
    expect(events.length).toBeLessThan(op.events.length);
  });

  it('does not end at a decision whose snapshot has a time that the timestamp does not confirm', async () => {
    const wrong = op.events.findIndex(({ event }) => event.type === 'cycle.decided');
    const events = op.events.map((stored, i) =>
      i === wrong && stored.event.type === 'cycle.decided'
        ? {
            ...stored,
            event: { ...stored.event, data: { ...stored.event.data, snapshotTime: '2099-01-01T00:00:00.000Z' } },
          }
        : stored,
    );
    await recordRange(memoryHistory(events, op.snapshots), place('2099'), options);
    expect(await all('2099')).toEqual(events);
  });

  it('names the log that it is of, and shows when its log is another one', async () => {
    expect(JSON.parse(await readFile(place('whole/recording.json'), 'utf8')).log).toEqual({
      installationId: null,
      sequence: op.events.at(-1)?.sequence,
    });
    for (const [name, id] of Object.entries(installations))
      await recordRange(memoryHistory([created(id), ...later], op.snapshots), place(`log-${name}`), options);
    expect((await readRecording(place('log-one'))).problems).toEqual([]);
    await copyFile(place('log-other/log.jsonl'), place('log-one/log.jsonl'));
    expect((await readRecording(place('log-one'))).problems).toContainEqual(
      expect.stringMatching(
        `^log.jsonl: is of installation ${installations.other} .* installation ${installations.one} `,
      ),
    );
  });

  it('refuses a directory that is not empty, and writes nothing', async () => {
    await expect(recordRange(history, place('whole'), options)).rejects.toThrow(RecordingExists);
    expect(await all('whole')).toHaveLength(op.events.length);
  });

  it('refuses a range without snapshots before it makes a directory', async () => {
    const range = { sinceMs: 1, untilMs: 2 };
    await expect(recordRange(history, place('empty'), { ...options, range })).rejects.toThrow('holds no snapshot');
    expect(await readdir(root)).not.toContain('empty');
  });

  it('seeds a what-if from an edited cooldowns.json', async () => {
    await recordRange(history, place('seeded'), { ...options, range: { aggregates: ['gpu'] } });
    await writeFile(place('seeded/cooldowns.json'), '{"aggregate_cooldowns": {"gpu": 60}}');
    const { cooldowns } = await readRecording(place('seeded'));
    expect(cooldowns.aggregate_cooldowns).toEqual({ gpu: 60 });
    const [first] = await Array.fromAsync(
      whatIf(await read('seeded'), {}, { defaults: defaultEngineOptions, cooldowns }),
    );
    expect(first?.simulated.outcome).toBe('gated');
  });

  it.each([
    ['recording.json', '{"form": 3}', 'recording.json: form:'],
    ['recording.json', '{', 'recording.json: is no JSON'],
    ['log.jsonl', '{"sequence": 0}\n', 'log.jsonl:1: sequence'],
    ['log.jsonl', '\nnonsense\n', 'log.jsonl:2: is no JSON'],
    ['snapshots/gpu/2026-01-05T000000.001Z-gpu-29459520.json', '{}', 'gpu-29459520.json: version'],
    ['cooldowns.json', '{"instance_cooldowns": {"x": "soon"}}', 'instance_cooldowns.x'],
  ])('names the file that is wrong: %s with %s', async (file, text, message) => {
    const name = `bad-${file.replaceAll(/\W/g, '')}-${text.length}`;
    await recordRange(history, place(name), options);
    await writeFile(place(`${name}/${file}`), text);
    const use = async () => Array.fromAsync(verify(await read(name), {}));
    const problem = await use().then(
      (cycles) => cycles.map((cycle) => (cycle.verdict === 'notReplayed' ? cycle.reason : '')).join('\n'),
      (error: Error) => error.message,
    );
    expect(problem).toContain(message);
  });

  it('says so when a directory is no recording', async () => {
    await expect(readRecording(root)).rejects.toThrow(RecordingInvalid);
    await expect(readRecording(root)).rejects.toThrow('recording.json: is not there');
  });

  it('keeps an event that cannot be read', async () => {
    const unreadable: StoredEvent = {
      sequence: op.events.length + 1,
      storedAt: op.events.at(-1)?.storedAt ?? 0,
      event: {
        type: 'unreadable',
        aggregate: 'gpu',
        claimedType: 'x.y',
        claimedVersion: 3,
        problem: 'unknown type x.y',
        remedy: 'upgrade',
      },
    };
    await recordRange(memoryHistory([...op.events, unreadable], op.snapshots), place('unreadable'), options);
    expect((await all('unreadable')).at(-1)).toEqual(unreadable);
  });
});

describe('an anonymized recording', () => {
  const anonymized = { ...options, anonymize: true };

  it('has the same decisions, by their numbers', async () => {
    await recordRange(history, place('anonymous'), anonymized);
    const cycles = await Array.fromAsync(verify(await read('anonymous'), {}));
    expect(counted(new VerifyCount(), cycles).totals()).toMatchObject({ decisions: 80, identical: 80, ok: true });
    expect(cycles.some((cycle) => cycle.steps > 0)).toBe(true);
  });

  it('holds none of the names and ids', async () => {
    const names = anonymizer();
    for (const snapshot of op.snapshots) names.learnSnapshot(snapshot);
    for (const { event } of op.events) names.learnEvent(event);
    names.settle();
    const files = await readdir(place('anonymous'), { recursive: true, withFileTypes: true });
    const texts = await Promise.all(
      files.filter((f) => f.isFile()).map((f) => readFile(join(f.parentPath, f.name), 'utf8')),
    );
    const text = [...files.map((f) => f.name), ...texts].join('\n');
    expect(names.names().length).toBeGreaterThan(60);
    const left = names.names().filter((name) => new RegExp(`(?<![\\w-])${RegExp.escape(name)}(?![\\w-])`).test(text));
    expect(left).toEqual([]);
  });

  it('keeps the id of the log, which names nobody', async () => {
    const log = memoryHistory([created(installations.one), ...later], op.snapshots);
    await recordRange(log, place('hidden'), { ...options, anonymize: true });
    const [first] = await all('hidden');
    expect(first?.event).toMatchObject({ type: 'installation.created', data: { installationId: installations.one } });
    expect((await readRecording(place('hidden'))).problems).toEqual([]);
  });

  it('folds to as many facts', async () => {
    const was = fold(op.events);
    const is = fold(await all('anonymous'));
    const shape = (state: ReturnType<typeof fold>) =>
      [...state.aggregates.values()].map((f) => [f.plans.size, f.tasks.size, f.recentPlans.length, f.vmReleases.size]);
    expect(shape(is)).toEqual(shape(was));
    expect(canonicalState(is)).not.toBe(canonicalState(was));
  });
});
