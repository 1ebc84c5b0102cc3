import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defaultEngineOptions } from '@kronos/contracts';
import { decide } from '@kronos/placement';
import { decideInput } from '@kronos/placement/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openPlanned } from './planned.ts';
import type { Parameters } from './sources.ts';

let root: string;
let directory: string;
let file: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'kronos-planned-'));
  directory = join(root, 'case');
  file = `${directory}.planned.jsonl`;
});
afterEach(() => rmSync(root, { recursive: true }));

const parameters = { form: 1, asked: '30d', sinceMs: 0, untilMs: 300_000, stepMs: 300_000 } as Parameters;
const decision = decide(
  decideInput({
    policies: { cpu: { threshold: 0.1 } },
    hosts: { a: {}, b: {} },
    vms: { v1: { host: 'a', w: { cpu: 0.3 } }, v2: { host: 'a', w: { cpu: 0.2 } } },
  }),
);

describe('the decisions of a backtest that was interrupted', () => {
  it('are there again, byte for byte, also when the last line was not written to its end', () => {
    const first = openPlanned(directory, parameters, defaultEngineOptions);
    first.add('gpu-1', decision);
    first.add('gpu-2', { ...decision, plan: null });
    appendFileSync(file, '{"id":"gpu-3","decis');
    const again = openPlanned(directory, parameters, defaultEngineOptions);
    expect(again.count).toBe(2);
    expect(JSON.stringify(again.decision('gpu-1'))).toBe(JSON.stringify(decision));
    expect(again.decision('gpu-3')).toBeUndefined();
    again.add('gpu-3', decision);
    const last = openPlanned(directory, parameters, defaultEngineOptions);
    expect(last.count).toBe(3);
    last.forget();
    expect(existsSync(file)).toBe(false);
  });

  it('do not count for other options, and are written over', () => {
    openPlanned(directory, parameters, defaultEngineOptions).add('gpu-1', decision);
    const other = openPlanned(directory, parameters, { ...defaultEngineOptions, cooldownSeconds: 1 });
    expect(other.count).toBe(0);
    expect(other.decision('gpu-1')).toBeUndefined();
    expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(2);
  });
});
