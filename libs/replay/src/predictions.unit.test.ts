import { type AggregateState, aggregateState, createFolder, predictionsOff } from '@kronos/projections';
import { random } from '@kronos/projections/testing';
import { describe, expect, it } from 'vitest';
import { type OperationOptions, operation } from '../testing/index.ts';

const DAY = 1440;
type Shown = NonNullable<OperationOptions['shown']>;

/** The state after each cycle of days in which loads go up and down, and each value is off by up to 5 % by chance. */
function* statesOf(days: number, seed: number, shown: Shown): Generator<AggregateState> {
  const chance = random(seed);
  const folder = createFolder();
  const cycles = operation({
    seed,
    cycles: days * DAY,
    aggregates: ['gpu'],
    planner: 'greedy',
    failures: 0.05,
    commands: 0,
    shown: (of) => shown(of) * (of.vm === null ? 1 : 0.95 + 0.1 * chance()),
  });
  for (let next = cycles.next(); next.done !== true; next = cycles.next()) {
    for (const stored of next.value.events) folder.apply(stored);
    yield aggregateState(folder.snapshot(), 'gpu');
  }
}

/** The first predictions that are off, if any are. */
function offIn(days: number, seed: number, shown: Shown) {
  let compared = 0;
  for (const state of statesOf(days, seed, shown)) {
    const [off] = predictionsOff(state);
    compared = state.calibration.get('cpu')?.later.count ?? 0;
    if (off !== undefined) return { off, compared };
  }
  return { off: null, compared };
}

const silent = (days: number, seed: number): void => {
  const { off, compared } = offIn(days, seed, () => 1);
  expect(off).toBeNull();
  expect(compared).toBeGreaterThan(40 * days);
};

describe('predictions of a planner at work', () => {
  it('are not off for two days in which nothing is wrong', () => silent(2, 5));

  it.skipIf(process.env.KRONOS_NIGHTLY !== '1').each([6, 7])(
    'are not off for a month in which nothing is wrong: seed %i',
    (seed) => silent(30, seed),
    600_000,
  );

  it('name the sizes of hosts when two hosts have half the size of the others', () => {
    const { off } = offIn(2, 5, ({ host, vm }) => (vm !== null && host < 2 ? 2 : 1));
    expect(off).toMatchObject({ policy: 'cpu', cause: 'host-sizes' });
    expect(off?.text).toContain('host_size_query');
  });

  it.skipIf(process.env.KRONOS_NIGHTLY !== '1').each([5, 6])(
    'name within a month the hosts on which each VM shows 1.3 times its load: seed %i',
    (seed) => {
      const { off } = offIn(30, seed, ({ host, vm }) => (vm !== null && host < 2 ? 1.3 : 1));
      expect(off).toMatchObject({ policy: 'cpu', cause: 'host-sizes' });
      expect(off?.hosts[0]?.host).toMatch(/compute-[12]$/);
    },
    600_000,
  );

  it('name the load that depends on the host when two hosts have 1.3 times what their VMs show', () => {
    const { off } = offIn(3, 5, ({ host, vm }) => (vm === null && host < 2 ? 1.3 : 1));
    expect(off).toMatchObject({ policy: 'cpu', cause: 'load-depends-on-host' });
    expect(off?.hosts[0]?.host).toMatch(/compute-[12]$/);
  });
});
