import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { coreScript } from '@kronos/browser-core';
import { defaultEngineOptions, type Snapshot } from '@kronos/contracts';
import { decideInput, digest, runCycle } from '@kronos/cycle';
import { snapshotOf } from '@kronos/placement/testing';
import { aggregateState, initialLogState } from '@kronos/projections';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const { changedInput, changesIn, changesNothing, verdict } = await import(
  new URL('./question.js', import.meta.url).href
);

let root: string;
let core: typeof import('@kronos/placement');
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'kronos-question-'));
  await writeFile(join(root, 'core.mjs'), coreScript());
  core = await import(/* @vite-ignore */ join(root, 'core.mjs'));
});
afterAll(() => rm(root, { recursive: true }));

const snapshot: Snapshot = snapshotOf({
  policies: { cpu: { threshold: 0.1 }, memory: { threshold: 0.9 } },
  hosts: { a: {}, b: {}, c: {} },
  vms: {
    v1: { host: 'a', w: { cpu: 0.3, memory: 0.1 } },
    v2: { host: 'a', w: { cpu: 0.2, memory: 0.1 } },
    v3: { host: 'b', w: { cpu: 0.2, memory: 0.1 } },
  },
});
const state = aggregateState(initialLogState(), 'gpu');
const options = { ...defaultEngineOptions, cooldownSeconds: 0, searchWorkLimit: 100_000 };
/** The input that the page has: it came as JSON. */
const input = JSON.parse(JSON.stringify(decideInput(state, snapshot, options)));
const asked = (text: string, gated = false) => changesIn(new URLSearchParams(text), input, gated);
const decided = (text: string) => core.decide(changedInput(input, asked(text), core.score));

describe('other options for a recorded moment', () => {
  it('give the digest of the ledger where nothing is changed', () => {
    expect(changesNothing(asked(''))).toBe(true);
    const recorded = runCycle({ snapshot, state, options });
    expect(recorded.decision.plan).not.toBe(null);
    expect(digest(decided(''))).toBe(recorded.digests.decision);
  });

  it('take thresholds, weights, budgets, numbers and switches from the address, and nothing that is impossible', () => {
    const changes = asked(
      'policy.cpu.threshold=0.3&policy.cpu.weight=7&policy.memory.weight=0.25&option.minGain=0.01&option.allowParking=true&option.restrictToAz=false&policy.none.threshold=1&option.targetRatio=',
    );
    expect(changes).toEqual({
      policies: { cpu: { threshold: 0.3 }, memory: { weight: 0.25 } },
      options: { minGain: 0.01, allowParking: true },
      anyway: false,
    });
  });

  it('decide by them: no plan above a threshold that is not reached, fewer moves within a smaller budget', () => {
    expect(decided('').plan?.steps.length).toBeGreaterThan(0);
    expect(decided('policy.cpu.threshold=0.95').plan).toBe(null);
    expect(decided('policy.cpu.maxMigrationsPerCycle=0&policy.memory.maxMigrationsPerCycle=0').plan).toBe(null);
  });

  it('plan in spite of a pause only where that is asked for, which a gated moment does by itself', () => {
    const paused = { ...input, memory: { ...input.memory, paused: { atMs: Date.parse(snapshot.time), by: 'ada' } } };
    const plan = (text: string, gated: boolean) =>
      core.decide(changedInput(paused, changesIn(new URLSearchParams(text), paused, gated), core.score)).plan;
    expect(plan('', false)).toBe(null);
    expect(plan('anyway=true', false)).not.toBe(null);
    expect(plan('', true)).not.toBe(null);
    expect(plan('anyway=false', true)).toBe(null);
  });

  it('leave the input as it is', () => {
    const before = JSON.stringify(input);
    decided('policy.cpu.threshold=0.3&anyway=true&option.minGain=0.2');
    expect(JSON.stringify(input)).toBe(before);
  });
});

describe('the verdict', () => {
  const steps = (n: number, ramMb = 4096) => Array.from({ length: n }, () => ({ ramMb }));
  it.each([
    [
      [2, 1.5],
      [1, 1.2],
      '1 move, 4 GiB in place of 2 moves, 8 GiB, and 1.20× of the threshold at the end in place of 1.50×: better balanced.',
    ],
    [
      [2, 0.8],
      [1, 1.2],
      '1 move, 4 GiB in place of 2 moves, 8 GiB, but 1.20× of the threshold at the end in place of 0.80×: worse balanced.',
    ],
    [[1, 1.2], [2, 1.2], '2 moves, 8 GiB in place of 1 move, 4 GiB; the balance is the same, 1.20× of the threshold.'],
    [
      [1, 0.9],
      [1, 0.8],
      '1 move, 4 GiB, as with the options in force; 0.80× of the threshold at the end in place of 0.90×.',
    ],
    [[0, 1.6], [2, 0.9], '2 moves, 8 GiB, where there is no plan now: 1.60× of the threshold becomes 0.90×.'],
    [[1, 0.9], [1, 0.9], '1 move, 4 GiB and 0.90× of the threshold at the end, as with the options in force.'],
    [[2, 0.9], [0, 1.6], 'No plan in place of 2 moves: it is balanced. 1.60× of the threshold stays.'],
    [[0, 0.9], [0, 0.9], 'No plan, as now: it is balanced.'],
  ])('of %j and %j', ([m, r], [n, s], sentence) => {
    const is = { steps: steps(m as number), ratio: r };
    expect(verdict(is, { steps: steps(n as number), ratio: s, reason: 'it is balanced' })).toBe(sentence);
  });
});
