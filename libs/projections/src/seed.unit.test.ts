import { describe, expect, it } from 'vitest';
import { TEST_START_MS, testLog } from '../testing/index.ts';
import { cooldownOf, coolingDown } from './cooldown.ts';
import { CooldownsInvalid } from './errors.ts';
import { quarantined } from './quarantine.ts';
import { emptyCooldowns, readCooldowns, seed } from './seed.ts';
import { aggregateState, initialLogState } from './state.ts';

const options = {
  cooldownSeconds: 600,
  instanceCooldownSeconds: 1800,
  adaptiveCooldownFactor: 1,
  instanceQuarantineSeconds: 9,
};
const nowMs = TEST_START_MS;
const given = { nowMs, aggregates: ['gpu', 'web'], options };
const seeded = (json: unknown, from = initialLogState()) =>
  aggregateState(seed(from, readCooldowns(json), given), 'gpu');

describe('cooldowns.json', () => {
  it('starts cooldowns that end after the seconds that remain', () => {
    const state = seeded({ aggregate_cooldowns: { gpu: 120, web: 5 }, instance_cooldowns: { vm1: 300 } });
    expect(cooldownOf(state, nowMs, options)?.untilMs).toBe(nowMs + 120_000);
    expect(coolingDown(state, 'vm1', nowMs, options)).toBe(nowMs + 300_000);
  });

  it('is clamped to the configured durations', () => {
    const state = seeded({ aggregate_cooldowns: { gpu: 99_999 }, instance_cooldowns: { vm1: 99_999 } });
    expect(cooldownOf(state, nowMs, options)?.untilMs).toBe(nowMs + 600_000);
    expect(coolingDown(state, 'vm1', nowMs, options)).toBe(nowMs + 1_800_000);
  });

  it('sets quarantines, for ever too, and does not clamp them', () => {
    const state = seeded({ instance_quarantines: { vm1: 1800, vm2: -1 } });
    expect(quarantined(state, 'vm1', nowMs, options)?.untilMs).toBe(nowMs + 1_800_000);
    expect(quarantined(state, 'vm2', nowMs + 1e12, options)?.untilMs).toBeNull();
  });

  it('changes nothing when it is empty or says 0', () => {
    expect(readCooldowns({})).toEqual(emptyCooldowns);
    const state = seeded({
      aggregate_cooldowns: { gpu: 0 },
      instance_cooldowns: { vm1: 0 },
      instance_quarantines: { vm1: 0 },
    });
    expect([state.lastRelease, state.vmReleases.size, state.operatorQuarantines.size]).toEqual([null, 0, 0]);
  });

  it('does not shorten what the log says', () => {
    const log = testLog();
    log.released([{ serverId: 'vm1', from: 'h1', to: 'h2' }]);
    const state = seeded({ aggregate_cooldowns: { gpu: 10 }, instance_cooldowns: { vm1: 10 } }, log.fold());
    expect(cooldownOf(state, nowMs, options)?.untilMs).toBe(nowMs + 600_000);
    expect(coolingDown(state, 'vm1', nowMs, options)).toBe(nowMs + 1_800_000);
  });

  it('is refused with every mistake named', () => {
    const read = () =>
      readCooldowns({
        aggregate_cooldown: {},
        aggregate_cooldowns: { gpu: -1 },
        instance_cooldowns: [],
        instance_quarantines: { vm1: -2, vm2: 'long' },
      });
    expect(read).toThrow(CooldownsInvalid);
    try {
      read();
    } catch (error) {
      expect((error as CooldownsInvalid).problems).toEqual([
        'aggregate_cooldown: no such section; there are aggregate_cooldowns, instance_cooldowns, instance_quarantines',
        'aggregate_cooldowns.gpu: -1 is not a number of seconds, 0 or more',
        'instance_cooldowns: must be an object of names and seconds',
        'instance_quarantines.vm1: -2 is not a number of seconds, 0 or more, or -1 without end',
        'instance_quarantines.vm2: "long" is not a number of seconds, 0 or more, or -1 without end',
      ]);
    }
    expect(() => readCooldowns([])).toThrow(/must be an object/);
  });
});
