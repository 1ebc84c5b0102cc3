import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testLog } from '@kronos/projections/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { cellPlansOf } from '../cells/status.ts';
import { readFlavorMap, sourceOf } from './cells.ts';

const directory = mkdtempSync(join(tmpdir(), 'kronos-cells-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe('where servers leave', () => {
  const host = (name: string) => ({ name }) as Parameters<typeof sourceOf>[0][number]['hosts'][number];
  const snapshots = [
    { aggregate: 'old', hosts: [host('o1'), host('o2')] },
    { aggregate: 'new', hosts: [host('n1')] },
  ];
  const scope = ['old', 'new', 'empty'];

  it('is an aggregate, or the one aggregate of all hosts that are named', () => {
    expect(sourceOf(snapshots, scope, ['old'])).toBe('old');
    expect(sourceOf(snapshots, scope, ['o2', 'o1'])).toBe('old');
    expect(sourceOf(snapshots, scope, ['old', 'o1'])).toBe('old');
    expect(sourceOf(snapshots, scope, ['empty'])).toBe('empty');
  });

  it('is refused where names are not there, or are of several aggregates', () => {
    expect(() => sourceOf(snapshots, scope, ['o1', 'o3'])).toThrow(
      '--from o3 is neither an aggregate in scope nor a host',
    );
    expect(() => sourceOf(snapshots, scope, ['o1', 'n1'])).toThrow('several aggregates: old, new');
    expect(() => sourceOf(snapshots, scope, [])).toThrow('--from names no aggregate and no host');
  });
});

describe('a flavor map', () => {
  const file = (text: string): string => {
    const path = join(directory, 'map.yaml');
    writeFileSync(path, text);
    return path;
  };

  it('is YAML or JSON', () => {
    expect(readFlavorMap(file('m1.small: n1.small\n"m1.big": n1.big\n'))).toEqual({
      'm1.small': 'n1.small',
      'm1.big': 'n1.big',
    });
    expect(readFlavorMap(file('{"a": "b"}'))).toEqual({ a: 'b' });
  });

  it.each(['', 'small', '- small', 'small: 3', 'small: {a: b}', '{}'])('is refused: %j', (text) => {
    expect(() => readFlavorMap(file(text))).toThrow('is not a map of flavors');
  });

  it('is refused where it is not YAML, or not there', () => {
    expect(() => readFlavorMap(file('a: b: c'))).toThrow('is not YAML');
    expect(() => readFlavorMap(join(directory, 'none'))).toThrow('cannot be read: there is no such file');
  });
});

describe('the state of plans between cells', () => {
  const move = (n: number) => ({ serverId: `vm${n}`, from: 'h1', to: 'n1' });
  const found = (log: ReturnType<typeof testLog>) => cellPlansOf([log.state()], log.nowMs);
  function approved() {
    const log = testLog();
    log.configured();
    const plan = log.cellsProposed([move(1), move(2)]);
    log.approved(plan);
    return { log, plan, task: `${plan}-s1` };
  }

  it('names what waits for approval, and what has expired', () => {
    const log = testLog();
    log.configured();
    log.released([{ serverId: 'vm9', from: 'h1', to: 'h2' }]);
    const planId = log.cellsProposed([move(1)], { approvalTtlSeconds: 60 });
    expect(found(log)).toMatchObject([{ planId, to: 'new', state: 'waitsForApproval', moves: 1, tasks: [] }]);
    log.pass(61);
    expect(found(log)).toMatchObject([{ planId, state: 'expired' }]);
  });

  it('follows each move from its start to its confirmation', () => {
    const { log, task } = approved();
    const stage = () => found(log)[0]?.tasks.find(({ taskId }) => taskId === task);
    expect(stage()).toMatchObject({ stage: 'waits', method: 'cold migration', sinceMs: null });
    log.started({ task });
    expect(stage()).toMatchObject({ stage: 'moves', to: 'n1' });
    log.verifying({ task }, 'n2');
    expect(stage()).toMatchObject({ stage: 'is in VERIFY_RESIZE and being checked', to: 'n2' });
    log.verified({ task });
    expect(stage()?.stage).toMatch(/^is verified/);
    log.settleAsked('revert', task);
    expect(stage()?.stage).toBe('is to be reverted, as ada asked');
    log.settleRequested('revert', { task }, 'operator');
    expect(stage()?.stage).toBe('is being reverted: operator');
  });

  it('counts what is over', () => {
    const { log, plan, task } = approved();
    log.started({ task });
    log.failed({ task });
    expect(found(log)).toMatchObject([{ planId: plan, state: 'released', moves: 2, failed: 1, tasks: [{}] }]);
  });
});
