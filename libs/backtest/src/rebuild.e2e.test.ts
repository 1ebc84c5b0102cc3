import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@kronos/clock';
import { defaultEngineOptions, type Snapshot } from '@kronos/contracts';
import { decideCycle } from '@kronos/cycle';
import { aggregateState, createFolder } from '@kronos/projections';
import { createPrometheus } from '@kronos/prometheus';
import { readRecording } from '@kronos/replay';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  AGGREGATE,
  type Difference,
  differencesOf,
  liveScript,
  observeOptions,
  policies,
  type Scripted,
  STEP_MS,
  script,
  smallCloud,
} from '../testing/scripted.ts';
import { readPast } from './read.ts';
import { runBacktest } from './run.ts';
import type { Parameters as Given } from './sources.ts';
import { openSteps, type Steps } from './steps.ts';
import { writeRecording } from './write.ts';

const options = { ...defaultEngineOptions, dryRun: true, searchWorkLimit: 600_000 };

const parametersOf = ({ startMs, endMs }: Scripted): Given => ({
  form: 1,
  asked: 'test',
  sinceMs: startMs + STEP_MS,
  untilMs: endMs,
  stepMs: STEP_MS,
  stalenessMs: STEP_MS,
  observe: observeOptions,
  aggregates: { [AGGREGATE]: { policies, balance: true, options } },
  sources: ['Nova', 'Prometheus'],
});

let root: string;
let lived: Scripted;
let steps: Steps;

const read = (directory: string, given: Scripted, signal = new AbortController().signal) =>
  readPast({
    directory,
    parameters: parametersOf(given),
    nova: given.nova,
    placement: given.placement,
    prometheus: given.prometheus,
    clock: systemClock,
    perSecond: 1000,
    signal,
    onProgress: () => undefined,
  });

/** Writes the recording of what was read, and plans over it. */
async function planned(directory: string, of: Steps) {
  const { signal } = new AbortController();
  const about = { madeBy: 'kronos test', nowMs: 0, decisions: false, signal, onProgress: () => undefined };
  await writeRecording({ directory, steps: of, ...about });
  const { history } = await readRecording(directory, undefined, async () => of.entries());
  return await runBacktest({ directory, history, steps: of, defaults: options, signal });
}

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'kronos-backtest-'));
  lived = await liveScript({ scenario: smallCloud(), scenes: script, hours: 2 });
  await read(join(root, 'whole'), lived);
  steps = await openSteps(join(root, 'whole'));
});

afterAll(async () => {
  await lived.close();
  await rm(root, { recursive: true });
});

describe('two hours of a scripted life, rebuilt from the history', () => {
  it('shows every server where the scorer saw it, at every step, and lists what it shows otherwise', async () => {
    const differences: Difference[] = [];
    for (const [step, recorded] of lived.recorded.entries())
      differences.push(...differencesOf(recorded, await steps.snapshot(AGGREGATE, step)));
    expect(steps.count).toBe(lived.recorded.length);
    expect(differences).toEqual([]);
  });

  it('decides as Kronos did where the placements agree', async () => {
    const state = aggregateState(createFolder().snapshot(), AGGREGATE);
    const decided = (snapshot: Snapshot) => decideCycle({ snapshot, state, options }).decision;
    for (const step of [0, 8, 14]) {
      const recorded = lived.recorded[step];
      if (recorded === undefined) throw new Error(`no step ${step}`);
      const was = decided(recorded);
      const would = decided(await steps.snapshot(AGGREGATE, step));
      expect(would.plan?.steps.map(({ serverName, to }) => [serverName, to])).toEqual(
        was.plan?.steps.map(({ serverName, to }) => [serverName, to]),
      );
      expect(would.outcome).toBe(was.outcome);
    }
  });

  it('says that its snapshots are reconstructed, and from what', async () => {
    const snapshot = await steps.snapshot(AGGREGATE, 3);
    expect(snapshot.reconstructed).toMatchObject({ sources: ['Nova', 'Prometheus'], unknown: {} });
  });

  it('names the moves that people made', () => {
    expect(steps.past.moves.map(({ serverName, type, from, to }) => `${serverName} ${type} ${from} ${to}`)).toEqual([
      'vm-1 live-migration h1 h4',
      'vm-3 live-migration h1 h5',
      expect.stringMatching(/^vm-6 resize h2 h\d$/),
      'vm-8 live-migration h2 h3',
      'vm-1 live-migration h4 h2',
      'late live-migration h3 h1',
      'vm-12 live-migration h2 h3',
    ]);
  });
});

describe('a history with holes', () => {
  it('reads a Prometheus that refuses long ranges in shorter pieces, and has every step', async () => {
    const small = await liveScript({ scenario: smallCloud({ maxSamples: 200 }), scenes: [], hours: 1 });
    try {
      await read(join(root, 'refuses'), small);
      const found = await openSteps(join(root, 'refuses'));
      const unknown = await Promise.all(
        small.recorded.map(async (_, step) => (await found.snapshot(AGGREGATE, step)).reconstructed?.unknown),
      );
      expect(unknown).toEqual(small.recorded.map(() => ({})));
      const whole = { startMs: small.startMs, endMs: small.endMs, stepMs: STEP_MS };
      await expect(small.prometheus.range('vm_cpu_cores', whole)).rejects.toThrow('too many samples');
    } finally {
      await small.close();
    }
  });

  it('asks a Prometheus that answers too slowly for less, and counts the steps that it never answered', async () => {
    const impatient = createPrometheus({ url: lived.sim.urls.prometheus, maxRetries: 0, timeoutMs: 500 });
    const slow = (times: number | null) =>
      lived.sim.act({
        act: 'faultApi',
        fault: { api: 'prometheus', effect: { kind: 'latency', ms: 3000 }, ...(times === null ? {} : { times }) },
      });
    try {
      slow(1);
      await read(join(root, 'slow'), { ...lived, prometheus: impatient });
      expect((await (await openSteps(join(root, 'slow'))).snapshot(AGGREGATE, 5)).reconstructed?.unknown).toEqual({});
      slow(null);
      const short = { ...lived, endMs: lived.startMs + 9 * STEP_MS };
      await read(join(root, 'tooSlow'), { ...short, prometheus: impatient });
      const found = await (await openSteps(join(root, 'tooSlow'))).snapshot(AGGREGATE, 5);
      expect(found.reconstructed?.unknown).toEqual({ queriesWithoutAnswer: 2 });
      expect(found.hostReadings[0]?.text).toContain('500 ms');
    } finally {
      lived.sim.act({ act: 'mendApi' });
      await impatient.close();
    }
  });

  it('counts the steps at which Prometheus has lost its samples, and skips the policies there', async () => {
    const lossy = await liveScript({
      scenario: smallCloud(),
      scenes: [
        { atMs: 20 * 60_000, act: { act: 'faultSeries', fault: { kind: 'missing' } } },
        { atMs: 40 * 60_000, act: { act: 'mendSeries' } },
      ],
      hours: 1,
    });
    try {
      await read(join(root, 'lost'), lossy);
      const found = await openSteps(join(root, 'lost'));
      const seen = await Promise.all(lossy.recorded.map((_, step) => found.snapshot(AGGREGATE, step)));
      const holes = seen.filter(({ reconstructed }) => (reconstructed?.unknown.queriesWithoutAnswer ?? 0) > 0);
      expect(holes).toHaveLength(4);
      for (const { scores } of holes) expect(scores.combined).toBeNull();
      // The planner goes on after the hole, and no hour of it counts for anything.
      const [figures] = await planned(join(root, 'lost'), found);
      const judged = lossy.recorded.length - 4;
      expect(figures).toMatchObject({ steps: lossy.recorded.length, judged, withoutPlan: expect.any(Object) });
      expect(figures?.unknown).toEqual({ queriesWithoutAnswer: { steps: 4, most: 2 } });
      expect(figures?.moves.count).toBeGreaterThan(0);
      for (const { was } of figures?.policies ?? []) expect(was.aboveMs).toBeLessThanOrEqual(judged * STEP_MS);
    } finally {
      await lossy.close();
    }
  });

  it('counts the series of VMs that Nova has forgotten, and places none of them', async () => {
    // An operator who archives deleted rows at once: neither changes-since nor an action shows the server any more.
    const { nova } = lived;
    const forgetful = {
      ...lived,
      nova: {
        ...nova,
        listServers: async (...args: Parameters<typeof nova.listServers>) =>
          (await nova.listServers(...args)).filter(({ status }) => status !== 'DELETED'),
      },
    };
    await read(join(root, 'forgot'), forgetful);
    const found = await openSteps(join(root, 'forgot'));
    const before = await found.snapshot(AGGREGATE, 1);
    expect(before.reconstructed?.unknown).toEqual({ vmSeriesWithoutServer: 2 });
    expect(before.servers.map(({ name }) => name)).not.toContain('vm-20');
    expect((await found.snapshot(AGGREGATE, found.count - 1)).reconstructed?.unknown).toEqual({});
  });

  it('counts the servers whose actions Nova does not tell, and goes on', async () => {
    const silent = {
      ...lived,
      nova: {
        ...lived.nova,
        listInstanceActions: () => Promise.reject(new Error('503 Service Unavailable')),
      },
    };
    await read(join(root, 'silent'), silent);
    const found = await openSteps(join(root, 'silent'));
    const { unknown = {} } = (await found.snapshot(AGGREGATE, 5)).reconstructed ?? {};
    expect(unknown.serversWithoutActions).toBeGreaterThan(0);
  });

  it('goes on where an interrupted run stopped, and asks nothing twice', async () => {
    const directory = join(root, 'interrupted');
    const stop = new AbortController();
    const { prometheus } = lived;
    let asked = 0;
    const counted = (limit: number): Scripted => ({
      ...lived,
      prometheus: {
        ...prometheus,
        range: async (...args: Parameters<typeof prometheus.range>) => {
          asked += 1;
          if (asked > limit) stop.abort();
          return prometheus.range(...args);
        },
      },
    });
    await expect(read(directory, counted(2), stop.signal)).rejects.toThrow();
    const before = asked;
    asked = 0;
    await read(directory, counted(Number.POSITIVE_INFINITY));
    expect(before).toBe(3);
    expect(asked).toBe(2);
    const again = await openSteps(directory);
    expect(await again.snapshot(AGGREGATE, 5)).toEqual({
      ...(await steps.snapshot(AGGREGATE, 5)),
      reconstructed: expect.anything(),
    });
  });

  it('refuses a directory with another backtest', async () => {
    const other = { ...lived, startMs: lived.startMs };
    await expect(
      readPast({
        directory: join(root, 'whole'),
        parameters: { ...parametersOf(other), asked: 'another' },
        nova: lived.nova,
        placement: lived.placement,
        prometheus: lived.prometheus,
        clock: systemClock,
        perSecond: 1000,
        signal: new AbortController().signal,
        onProgress: () => undefined,
      }),
    ).rejects.toMatchObject({ code: 'KRONOS_BACKTEST_DIRECTORY' });
  });
});
