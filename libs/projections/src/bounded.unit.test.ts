import { defaultEngineOptions, type LogEvent, type StoredEvent } from '@kronos/contracts';
import { describe, expect, it } from 'vitest';
import { TEST_START_MS, testLog } from '../testing/index.ts';
import { canonicalState, fromParts, toParts } from './checkpoint.ts';
import { coolingDown } from './cooldown.ts';
import { createFolder } from './evolve.ts';
import { absence, quarantined } from './quarantine.ts';
import { aggregateState } from './state.ts';

const move = (n: number) => ({ serverId: `vm${n}`, from: 'h1', to: 'h2' });
const DAY = 86_400;
const at = (seconds: number): number => TEST_START_MS + seconds * 1000;
const endless = { ...defaultEngineOptions, instanceQuarantineSeconds: -1 };

/** A decision that says which VMs with a failed move are absent. */
function decided(log: ReturnType<typeof testLog>, servers: readonly string[], gated = false): void {
  const said = absence(
    log.state(),
    servers.map((id) => ({ id })),
  );
  log.decided('none', [], gated ? { outcome: 'gated' } : {});
  const event = log.events.at(-1)?.event;
  if (!gated && said !== null && event?.type === 'cycle.decided') event.data.absence = said;
}

/** A VM whose move failed at the start. */
function failed(): ReturnType<typeof testLog> {
  const log = testLog();
  log.configured();
  const plan = log.released([move(1)]);
  log.started({ task: `${plan}-s1` });
  log.failed({ task: `${plan}-s1` });
  return log;
}

describe('releases of VMs', () => {
  it('are kept while a cooldown can last, and forgotten an hour later', () => {
    const log = testLog();
    log.configured();
    log.released([move(1)]);
    log.at(7 * DAY - 60).decided();
    const options = { instanceCooldownSeconds: 7 * DAY, adaptiveCooldownFactor: 1 };
    expect(coolingDown(log.state(), 'vm1', at(7 * DAY - 60), options)).toBe(at(7 * DAY));
    log.at(7 * DAY + 2 * 3600).decided();
    expect(log.state().vmReleases.size).toBe(0);
  });

  it('make a cooldown grow for a day, and no cooldown is longer than 7 days', () => {
    const log = testLog();
    log.configured();
    for (const hour of [0, 30, 31, 32]) log.at(hour * 3600).released([move(1)]);
    log.at(40 * 3600).decided();
    expect(log.state().vmReleases.get('vm1')).toHaveLength(3);
    const until = (instanceCooldownSeconds: number, adaptiveCooldownFactor: number) =>
      coolingDown(log.state(), 'vm1', at(32 * 3600), { instanceCooldownSeconds, adaptiveCooldownFactor });
    expect(until(600, 2)).toBe(at(32 * 3600 + 2400));
    expect(until(1800, 100)).toBe(at(32 * 3600 + DAY));
    expect(until(90 * DAY, 1)).toBe(at(32 * 3600 + 7 * DAY));
  });
});

describe('the failure of a VM', () => {
  it('is kept while the VM is there: by an option it may quarantine the VM for ever', () => {
    const log = failed();
    for (let day = 1; day <= 400; day++) {
      log.at(day * DAY);
      decided(log, ['vm1']);
    }
    expect(quarantined(log.state(), 'vm1', at(400 * DAY), endless)?.untilMs).toBeNull();
  });

  it('is forgotten when the VM has been absent for 7 days', () => {
    const log = failed();
    log.at(DAY);
    decided(log, []);
    expect(log.state().vmFailures.get('vm1')?.absentSinceMs).toBe(at(DAY));
    log.at(8 * DAY - 3600);
    decided(log, []);
    expect(log.state().vmFailures.size).toBe(1);
    log.at(8 * DAY);
    decided(log, []);
    expect(log.state().vmFailures.size).toBe(0);
  });

  it('is kept when the VM comes back before, even in the decision that would forget it', () => {
    const log = failed();
    log.at(DAY);
    decided(log, []);
    log.at(20 * DAY);
    decided(log, ['vm1']);
    expect(log.state().vmFailures.get('vm1')?.absentSinceMs).toBeNull();
  });

  it('is not forgotten by a decision that did not look at the servers', () => {
    const log = failed();
    log.at(DAY);
    decided(log, []);
    log.at(20 * DAY);
    decided(log, [], true);
    expect(log.state().vmFailures.size).toBe(1);
  });

  it('counts again when a later move of the VM fails', () => {
    const log = failed();
    log.at(DAY);
    decided(log, []);
    const plan = log.at(2 * DAY).released([move(1)]);
    log.started({ task: `${plan}-s1` });
    log.failed({ task: `${plan}-s1` });
    expect(log.state().vmFailures.get('vm1')).toMatchObject({ atMs: at(2 * DAY), absentSinceMs: null });
  });

  it('that quarantines for a time does so for at most 7 days', () => {
    const options = { ...defaultEngineOptions, instanceQuarantineSeconds: 90 * DAY };
    expect(quarantined(failed().state(), 'vm1', at(1), options)?.untilMs).toBe(at(7 * DAY));
  });
});

describe('what an operator set', () => {
  it('for a time is forgotten after its end, for all aggregates too; without an end it is kept', () => {
    const log = testLog();
    log.configured();
    log.decided();
    log.quarantined('vm1', 30 * DAY);
    log.quarantined('vm2', -1);
    log.about('_all_').quarantined('vm3', 60);
    log.quarantined('vm4', -1);
    log
      .about('gpu')
      .at(30 * DAY - 60)
      .decided();
    const ids = () => [...log.state().operatorQuarantines.keys()].sort();
    expect(ids()).toEqual(['vm1', 'vm2', 'vm4']);
    log.at(400 * DAY).decided();
    expect(ids()).toEqual(['vm2', 'vm4']);
  });
});

describe('after years', () => {
  it('the state is as large as after two weeks, and the same from any checkpoint', () => {
    const log = testLog();
    log.configured();
    const folder = createFolder();
    let restored = createFolder();
    let sequence = 0;
    const sizes = new Map<number, number>();
    const feed = (): void => {
      for (const stored of log.events.splice(0)) {
        const next: StoredEvent = { ...stored, sequence: ++sequence };
        folder.apply(next);
        restored.apply(next);
      }
    };
    for (let day = 1; day <= 365; day++) {
      // Each VM lives for three days; one move a day fails, and a VM that is there since the start has failed once.
      for (let half = 0; half < 2; half++) {
        log.at((day + half / 2) * DAY);
        const alive = [0, 1, 2].flatMap((back) => Array.from({ length: 10 }, (_, i) => `vm${(day - back) * 10 + i}`));
        const said = absence(
          aggregateState(folder.snapshot(), 'gpu'),
          alive.map((id) => ({ id })),
        );
        const plan = log.released(alive.slice(0, 10).map((serverId) => ({ serverId, from: 'h1', to: `h${day}` })));
        const event = log.events.at(-1)?.event as LogEvent;
        if (said !== null && event.type === 'cycle.decided') event.data.absence = said;
        log.dispatched(plan, 10);
        for (let i = 1; i <= 9; i++) log.completed({ task: `${plan}-s${i}` });
        log.failed({ task: `${plan}-s10`, hostAtFault: `h${day}` });
        feed();
      }
      if (day % 50 === 0) {
        const parts = fromParts(JSON.parse(JSON.stringify(toParts(folder.snapshot(), 'x'))));
        if (!parts.ok) throw new Error(parts.problem);
        restored = createFolder(parts.state);
      }
      sizes.set(day, canonicalState(folder.snapshot()).length);
    }
    expect(canonicalState(restored.snapshot())).toBe(canonicalState(folder.snapshot()));
    expect(sizes.get(365)).toBeLessThan((sizes.get(40) ?? 0) * 1.2);
  });
});
