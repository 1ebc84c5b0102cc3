import { describe, expect, it } from 'vitest';
import {
  type DrainRuleFacts,
  HOST_CLAIM_MS,
  type HostActFacts,
  hostActBlocked,
  hostActRetryMs,
  judgeService,
  nextDrainAct,
} from './drain.ts';

const NOW = 1_000_000;
const facts = (set: Partial<DrainRuleFacts> = {}): DrainRuleFacts => ({
  undrainAsked: false,
  disabledBy: null,
  claim: null,
  failure: null,
  ...set,
});
const next = (set: Partial<DrainRuleFacts>, nowMs = NOW) => nextDrainAct(facts(set), nowMs);

describe('the next act of a drain', () => {
  it('is to disable the host, and to enable what Kronos disabled once its end is asked for', () => {
    expect(next({})).toEqual({ do: 'claim', act: 'disable', attempt: 1 });
    expect(next({ disabledBy: 'kronos', undrainAsked: true })).toEqual({ do: 'claim', act: 'enable', attempt: 1 });
  });

  it('is to watch a disabled host while its end is not asked for', () => {
    expect(next({ disabledBy: 'kronos' })).toEqual({ do: 'watch' });
    expect(next({ disabledBy: 'others' })).toEqual({ do: 'watch' });
  });

  it('leaves a host that others disabled', () => {
    expect(next({ disabledBy: 'others', undrainAsked: true })).toEqual({ do: 'leave' });
  });

  it('waits while a claim may be acted on, and takes it over afterwards', () => {
    const claim = { act: 'disable', attempt: 2, atMs: NOW } as const;
    expect(next({ claim }, NOW + HOST_CLAIM_MS - 1)).toEqual({ do: 'wait', untilMs: NOW + HOST_CLAIM_MS });
    expect(next({ claim }, NOW + HOST_CLAIM_MS)).toEqual({ do: 'claim', act: 'disable', attempt: 3 });
    // The result of the claim is read first, also after a later request.
    expect(next({ claim, undrainAsked: true }, NOW + HOST_CLAIM_MS)).toMatchObject({ act: 'disable', attempt: 3 });
  });

  it('waits after a failure, longer each time and at most ten minutes', () => {
    const failure = { act: 'disable', attempt: 1, atMs: NOW } as const;
    expect(next({ failure })).toEqual({ do: 'wait', untilMs: NOW + 30_000 });
    expect(next({ failure }, NOW + 30_000)).toEqual({ do: 'claim', act: 'disable', attempt: 2 });
    expect([2, 3, 5, 6, 60].map(hostActRetryMs)).toEqual([60_000, 120_000, 480_000, 600_000, 600_000]);
    // A failure to disable says nothing of enabling.
    expect(next({ failure, disabledBy: 'kronos', undrainAsked: true })).toMatchObject({ act: 'enable', attempt: 1 });
  });
});

describe('what a claimed act changes', () => {
  const OWN = 'Kronos drain 1 by ada';
  const disabled = (disabledReason: string | null, forcedDown = false) =>
    ({ status: 'disabled', forcedDown, disabledReason }) as const;
  const enabled = { status: 'enabled', forcedDown: false, disabledReason: null } as const;

  it('disables an enabled service, and knows its own work', () => {
    expect(judgeService('disable', enabled, OWN, 1).kind).toBe('change');
    expect(judgeService('disable', disabled(OWN), OWN, 2).kind).toBe('done');
  });

  it('does not claim the work of others', () => {
    expect(judgeService('disable', disabled('broken disk'), OWN, 1).kind).toBe('doneByOthers');
    expect(judgeService('disable', disabled(null), OWN, 1).kind).toBe('doneByOthers');
    expect(judgeService('enable', enabled, OWN, 1).kind).toBe('doneByOthers');
  });

  it('enables only what shows the reason that Kronos gave', () => {
    expect(judgeService('enable', disabled(OWN), OWN, 1).kind).toBe('change');
    expect(judgeService('enable', disabled('broken disk'), OWN, 1)).toMatchObject({ kind: 'leave', code: 'changed' });
    expect(judgeService('enable', disabled(null), OWN, 1)).toMatchObject({ kind: 'leave', code: 'changed' });
    expect(judgeService('enable', disabled(OWN, true), OWN, 1)).toMatchObject({ kind: 'leave', code: 'forced-down' });
    // A later attempt finds what an earlier one did.
    expect(judgeService('enable', enabled, OWN, 2).kind).toBe('done');
  });

  it('changes nothing that is not known', () => {
    expect(judgeService('disable', null, OWN, 1).kind).toBe('unknown');
    const unknown = { status: 'unknown', forcedDown: false, disabledReason: null } as const;
    expect(judgeService('enable', unknown, OWN, 1).kind).toBe('unknown');
  });
});

describe('the change of a service', () => {
  const open: HostActFacts = {
    aggregate: 'gpu',
    unreadable: null,
    paused: { here: null, everywhere: null },
    configured: { options: { dryRun: false } },
  };

  it('is not blocked when nothing stands against it', () => {
    expect(hostActBlocked(open, 'disable', { executorDryRun: false })).toBeNull();
    expect(hostActBlocked(open, 'enable', { executorDryRun: false })).toBeNull();
  });

  it.each<[Partial<HostActFacts>, RegExp]>([
    [{ paused: { here: { by: 'ada' }, everywhere: null } }, /gpu is paused by ada/],
    [{ paused: { here: null, everywhere: { by: 'grace' } } }, /gpu is paused by grace/],
    [{ configured: { options: { dryRun: true } } }, /dry_run is on for gpu/],
    [{ configured: null }, /no planner has written its options for gpu/],
  ])('is blocked for a disable by %j, and not for an enable', (facts, why) => {
    expect(hostActBlocked({ ...open, ...facts }, 'disable', { executorDryRun: false })).toMatch(why);
    expect(hostActBlocked({ ...open, ...facts }, 'enable', { executorDryRun: false })).toBeNull();
  });

  it.each(['disable', 'enable'] as const)(
    'is blocked for an %s by dry_run of the executor and by an unreadable event',
    (act) => {
      expect(hostActBlocked(open, act, { executorDryRun: true })).toMatch(/dry_run is on in the executor/);
      expect(hostActBlocked({ ...open, unreadable: { sequence: 7 } }, act, { executorDryRun: false })).toMatch(
        /event 7 of the log cannot be read/,
      );
    },
  );
});
