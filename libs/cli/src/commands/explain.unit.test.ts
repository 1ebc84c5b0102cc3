import { decisionOf } from '@kronos/cycle';
import { explain } from '@kronos/placement';
import { decideInput } from '@kronos/placement/testing';
import { testLog } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { UsageError } from '../errors.ts';
import { lessWork } from '../explain/cycle.ts';
import { vmText } from '../explain/vm.ts';
import { begun, lateNote, onlyOne } from './explain.ts';

const names = new Map([
  ['6d1f0d5e-8a34-4a4c-8d3b-0a4a3d2a7b11', 'db-01'],
  ['6d1f0d5e-9999-4a4c-8d3b-0a4a3d2a7b11', 'db-02'],
  ['7c000000-8a34-4a4c-8d3b-0a4a3d2a7b11', 'web'],
]);
const refused = (text: string, act: () => unknown = () => begun(text, names)): string => {
  try {
    act();
  } catch (error) {
    if (error instanceof UsageError) return `${error.message} | ${error.remedy}`;
    throw error;
  }
  return 'not refused';
};

describe('a decision that is late', () => {
  const noteOf = (secondsLate: number, release: 'released' | 'dryRun' = 'released'): string => {
    const log = testLog();
    const startBefore = new Date(log.nowMs + 1000).toISOString();
    const move = { serverId: 'vm1', from: 'h1', to: 'h2' };
    log.pass(1 + secondsLate).decided(release, [
      { ...move, startBefore },
      { ...move, serverId: 'vm2' },
    ]);
    const event = log.events.at(-1)?.event;
    if (event?.type !== 'cycle.decided') throw new Error('no decision');
    return lateNote({ event, decision: decisionOf(event.data) }, log.nowMs);
  };
  it('says how many of its steps were not released', () => {
    expect(noteOf(0)).toBe('1 step not released: the window closed before the decision was made at 00:00:01Z (now)\n');
    expect(noteOf(-0.001)).toBe('');
    expect(noteOf(0, 'dryRun')).toBe('');
  });
});

it('a decision with less work than the options allow says so', () => {
  const log = testLog();
  log.configured({ searchWorkLimit: 5000 });
  log.decided('released', [{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
  const event = log.events.at(-1)?.event;
  if (event?.type !== 'cycle.decided') throw new Error('no decision');
  const state = log.state();
  expect(lessWork({ event, state })).toBe('');
  expect(lessWork({ event: { data: { ...event.data, searchWorkLimit: 200 } }, state })).toBe(
    'The search was limited to 200 candidates instead of 5000 ([engine] search_work_limit): the decisions before it took longer than evaluation_interval.\n',
  );
});

describe('the beginning of a uuid', () => {
  it('finds the only VM that it begins', () => {
    expect(begun('7c000000', names)).toBe('7c000000-8a34-4a4c-8d3b-0a4a3d2a7b11');
    expect(begun('6D1F0D5E-9', names)).toBe('6d1f0d5e-9999-4a4c-8d3b-0a4a3d2a7b11');
  });

  it('is refused where several VMs have it', () => {
    expect(refused('6d1f0d5e')).toBe(
      '2 VMs begin with "6d1f0d5e" | Name one, or give its uuid; their uuids: 6d1f0d5e-8a34-4a4c-8d3b-0a4a3d2a7b11, 6d1f0d5e-9999-4a4c-8d3b-0a4a3d2a7b11.',
    );
  });

  it('finds nothing where it is shorter than in tables, or begins no uuid', () => {
    expect(begun('7c', names)).toBeNull();
    expect(begun('99999999', names)).toBeNull();
  });
});

describe('the beginning of names', () => {
  it('leads to the names', () => {
    expect(refused('db')).toBe('2 VMs begin with "db" | Name one, or give its uuid; their names: db-01, db-02.');
    expect(refused('we')).toBe('1 VM begins with "we" | Name one, or give its uuid; their names: web.');
  });
});

describe('several VMs with one name', () => {
  const twins = [
    { id: 'one', host: 'h1', projectId: 'blue' },
    { id: 'two', host: 'h2', projectId: null },
  ];
  it('are refused with the uuid, the host and the project of each', () => {
    expect(refused('web', () => onlyOne(twins, 'web'))).toBe(
      '2 VMs are called "web" | Give the uuid: one on h1 (project blue), two on h2',
    );
  });
  it('are none where one VM or none has it', () => {
    expect(onlyOne(twins.slice(1), 'web')).toBe(twins[1]);
    expect(onlyOne([], 'web')).toBeUndefined();
  });
});

describe('a VM that never moves', () => {
  const group = { id: '7d4b0f7e-0000-4000-8000-000000000001', name: 'web-group', policy: 'anti-affinity' as const };
  const explanation = explain(
    decideInput({
      policies: { cpu: { threshold: 0.2 } },
      hosts: { a: {}, b: {} },
      vms: { v1: { host: 'a', w: { cpu: 0.3 }, set: { locked: true } }, v2: { host: 'a', w: { cpu: 0.4 } } },
      snapshot: { serverGroups: [{ ...group, maxServerPerHost: 1, members: ['v1'] }] },
    }),
  );
  const textOf = (id: string): string => {
    const explained = { explanation, decision: explanation.decision, state: { damaged: new Map() } };
    const terminal = { out() {}, err() {}, steer() {}, colour: false, columns: 100, live: false };
    return vmText(terminal, explained as unknown as Parameters<typeof vmText>[1], { id, is: () => false, nowMs: 0 });
  };

  it('is not said to have a legal destination, and its groups have their names', () => {
    const text = textOf('v1');
    expect(text).toContain('it stays: ');
    expect(text).toMatch(/^IF IT COULD MOVE TO /im);
    expect(text).toMatch(/^b .*takes it$/m);
    expect(text).not.toContain('legal');
    expect(text).toContain('; in group web-group\n');
    expect(text).not.toContain(group.id);
  });

  it('has another heading than a VM that may move', () => {
    expect(textOf('v2')).toMatch(/^if it went to /im);
    expect(textOf('v2')).not.toContain('takes it');
  });
});
