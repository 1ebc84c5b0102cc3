import type { Message } from '@kronos/contracts';
import { expect, it } from 'vitest';
import { Chance } from '../chance.ts';
import { EPOCH_MS, World } from '../world.ts';
import { Approvers } from './approvers.ts';
import type { Commands } from './commands.ts';

const MINUTE_MS = 60_000;

/** When plans whose steps have these windows are answered, ms since their proposal: one plan for each seed. */
async function answers(closings: readonly (number | null)[]): Promise<number[]> {
  const found: number[] = [];
  for (let seed = 0; seed < 200; seed++) {
    const chance = new Chance(`approvers/${seed}`);
    const world = new World(chance);
    const commands: Pick<Commands, 'append'> = { append: () => found.push(world.now) };
    const steps = closings.map((ms) => (ms === null ? {} : { startBefore: new Date(EPOCH_MS + ms).toISOString() }));
    const data = { release: 'proposed', snapshotId: 'plan', plan: { steps } };
    const proposed = { type: 'cycle.decided', aggregate: 'web', data } as unknown as Message;
    new Approvers(world, chance, 60 * MINUTE_MS, commands as Commands).stored(proposed);
    await world.run(120 * MINUTE_MS);
  }
  return found;
}

const between = (times: readonly number[], fromMs: number, toMs: number): number =>
  times.filter((ms) => fromMs <= ms && ms <= toMs).length;

it('many answers come right after the window of one move has closed, while that of another is open', async () => {
  const [first, later] = [40 * MINUTE_MS, 50 * MINUTE_MS];
  expect(between(await answers([later, first]), first, first + MINUTE_MS)).toBeGreaterThan(50);
  expect(between(await answers([null, first]), first, first + MINUTE_MS)).toBeGreaterThan(50);
});

it.each([
  ['close together', [40, 40]],
  ['close after the plan has expired', [61, 70]],
  ['do not close', [null, null]],
])('windows that %s change no answer', async (_, minutes) => {
  const closings = minutes.map((each) => (each === null ? null : each * MINUTE_MS));
  expect(await answers(closings)).toEqual(await answers([]));
});
