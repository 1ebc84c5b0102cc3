import type { CompleteEngineOptions, Decision, ServerObservation } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { decideInput, SKETCH_TIME } from '../testing/index.ts';
import { decide } from './decide.ts';
import { explain } from './explain/explain.ts';

/** A Thursday, 12:00 UTC. */
const NOON = SKETCH_TIME;

/** Host a is full; c is disabled where `leaving` says so. */
const input = (
  options: Partial<CompleteEngineOptions>,
  { own, leaving = false }: { readonly own?: ServerObservation['windows']; readonly leaving?: boolean } = {},
) =>
  decideInput({
    policies: { cpu: { threshold: 0.2, maxMigrationsPerCycle: 5 } },
    hosts: { a: {}, b: {}, c: { disabled: leaving } },
    vms: {
      v1: { host: 'a', w: { cpu: 0.3 }, set: own === undefined ? {} : { windows: own } },
      v2: { host: 'a', w: { cpu: 0.35 }, set: own === undefined ? {} : { windows: own } },
      v3: { host: 'c', w: { cpu: 0.05 }, set: own === undefined ? {} : { windows: own } },
    },
    options: { evacuateDisabledHosts: leaving, ...options },
  });
const limits = ({ plan, reason }: Decision) => ({
  code: reason.code,
  window: plan?.window,
  phases: plan?.steps.map((step) => step.phase),
  startBefore: [...new Set(plan?.steps.map((step) => step.startBefore))],
});

describe('a decision outside the windows', () => {
  it('acts: has a plan, which is not to be released, and the next opening', () => {
    const decision = decide(input({ windows: ['22:00-06:00'] }));
    expect(limits(decision)).toEqual({
      code: 'outside-window',
      window: { open: false, until: '2026-01-01T22:00:00.000Z' },
      phases: ['spread'],
      startBefore: [undefined],
    });
    expect(decision.reason.text).toContain('blocked by the window until 2026-01-01T22:00:00.000Z');
  });

  it('acts: the same in a blackout, and by windows that cannot be read', () => {
    expect(limits(decide(input({ blackouts: ['2026-01-01'] })))).toMatchObject({
      code: 'outside-window',
      window: { open: false, until: '2026-01-02T00:00:00.000Z' },
    });
    expect(limits(decide(input({ windows: ['soon'] })))).toMatchObject({
      code: 'outside-window',
      window: { open: false, until: null },
    });
  });

  it('does nothing: a cycle without a plan stays what it is', () => {
    const quiet = decide(
      decideInput({ policies: { cpu: {} }, hosts: { a: {} }, vms: {}, options: { windows: ['22:00-06:00'] } }),
    );
    expect(quiet).toMatchObject({ outcome: 'quiet', plan: null });
  });

  it('acts: with evacuation_ignores_windows evacuations are planned alone, to be released at once', () => {
    const given = { windows: ['22:00-06:00'] };
    expect(limits(decide(input(given, { leaving: true })))).toMatchObject({ code: 'outside-window' });
    expect(limits(decide(input({ ...given, evacuationIgnoresWindows: true }, { leaving: true })))).toEqual({
      code: 'planned',
      window: undefined,
      phases: ['evacuate'],
      startBefore: [undefined],
    });
    // Nothing to evacuate: the other plan is recorded as without the option.
    expect(limits(decide(input({ ...given, evacuationIgnoresWindows: true })))).toMatchObject({
      code: 'outside-window',
    });
  });
});

describe('a decision inside a window', () => {
  it('acts: every step has to start before it closes', () => {
    expect(limits(decide(input({ windows: ['10:00-14:00'] })))).toEqual({
      code: 'planned',
      window: { open: true, until: '2026-01-01T14:00:00.000Z' },
      phases: ['spread'],
      startBefore: ['2026-01-01T14:00:00.000Z'],
    });
  });

  it('does nothing: an exempt evacuation has no limit, and there is none without windows', () => {
    const { plan } = decide(input({ windows: ['10:00-14:00'], evacuationIgnoresWindows: true }, { leaving: true }));
    expect(plan?.steps.map(({ phase, startBefore }) => [phase, startBefore])).toEqual([
      ['evacuate', undefined],
      ['spread', '2026-01-01T14:00:00.000Z'],
    ]);
    expect(limits(decide(input({})))).toEqual({
      code: 'planned',
      window: undefined,
      phases: ['spread'],
      startBefore: [undefined],
    });
  });
});

describe("a VM's own window", () => {
  it('acts: closed, the VM does not move, and explain says until when', () => {
    const given = input({}, { own: ['Mon 22:00-06:00'] });
    expect(decide(given)).toMatchObject({ outcome: 'quiet', refusals: { 'vm-outside-window': 3 } });
    expect(explain(given).vm('v1')?.verdict).toEqual({
      code: 'vm-outside-window',
      detail: { windows: 'Mon 22:00-06:00', until: '2026-01-05T22:00:00.000Z' },
    });
  });

  it('acts: it narrows the window of the aggregate', () => {
    const narrow = (own: string) => limits(decide(input({ windows: ['10:00-14:00'] }, { own: [own] }))).startBefore;
    expect(narrow('11:00-13:00')).toEqual(['2026-01-01T13:00:00.000Z']);
    expect(narrow('11:00-16:00')).toEqual(['2026-01-01T14:00:00.000Z']);
    expect(limits(decide(input({}, { own: ['11:00-13:00'] }))).startBefore).toEqual(['2026-01-01T13:00:00.000Z']);
  });

  it('refuses: a VM whose window cannot be read never moves, not even by evacuation', () => {
    const given = input({ evacuationIgnoresWindows: true }, { own: ['at night'], leaving: true });
    expect(decide(given)).toMatchObject({ outcome: 'quiet', refusals: { 'vm-window-unreadable': 3 } });
    expect(explain(given).vm('v1')?.verdict).toMatchObject({ code: 'vm-window-unreadable' });
  });

  it('acts: with evacuation_ignores_windows the VM is evacuated all the same; without, it waits and is not stuck', () => {
    const own = ['Mon 22:00-06:00'];
    expect(limits(decide(input({ evacuationIgnoresWindows: true }, { own, leaving: true }))).phases).toEqual([
      'evacuate',
    ]);
    const waits = decide(input({}, { own, leaving: true }));
    expect(waits.evacuations).toMatchObject([
      { host: 'c', state: 'running', left: 1, waits: [{ code: 'vm-outside-window', serverName: 'v3' }] },
    ]);
  });

  it('does nothing: open without end', () => {
    expect(limits(decide(input({}, { own: ['00:00-24:00'] }))).startBefore).toEqual([undefined]);
    expect(NOON).toBe('2026-01-01T12:00:00.000Z');
  });
});
