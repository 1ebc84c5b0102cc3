/** Two versions of Kronos side by side: an upgrade one service at a time with moves under way, and the way back. */
import { type ChildProcess, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LogEvent } from '@kronos/contracts';
import { afterEach, describe, expect, it } from 'vitest';
import { endProcess } from '../../libs/cli/src/demo/installation.ts';
import { runHere } from '../e2e/command.ts';
import { openWorld, type ServiceName, settled, type World } from '../e2e/world.ts';
import { assertOnce } from './once.ts';
import { COMMIT_OF_0_1_0, checkOut, missing } from './versions.ts';

const none = missing(COMMIT_OF_0_1_0);
if (none !== null) console.warn(`skipped: upgrades from 0.1.0; ${none}`);
const nightly = process.env.KRONOS_NIGHTLY === '1';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

const count = (events: readonly LogEvent[], type: LogEvent['type']) => events.filter((e) => e.type === type).length;

/** An installation of 0.1.0 on a simulated cloud; `replace` ends a service and starts it in one of the versions. */
async function installed() {
  const directory = mkdtempSync(join(tmpdir(), 'kronos-upgrade-'));
  undo.push(() => rmSync(directory, { recursive: true, force: true }));
  const before = checkOut(COMMIT_OF_0_1_0, join(directory, '0.1.0'));
  const world = await openWorld({ main: before });
  undo.push(() => world.close());
  const running = new Map<ServiceName, ChildProcess>(
    [...world.stage.processes].flatMap(([name, [first]]) => (first === undefined ? [] : [[name, first]])),
  );
  const replace = async (service: ServiceName, version: 'old' | 'new'): Promise<void> => {
    const child = running.get(service);
    if (child !== undefined) await endProcess(child);
    running.set(service, world.stage.start(service, version === 'old' ? before(service) : undefined));
  };
  return { directory, world, replace };
}

/** Waits until a service of this installation has decided and moved something more. */
async function goesOn(world: World, what: string): Promise<void> {
  const decided = count(world.events, 'cycle.decided');
  await world.until(`a decision after ${what}`, (events) => count(events, 'cycle.decided') > decided);
}

const ORDERS: readonly (readonly ServiceName[])[] = [
  ['ledger', 'executor', 'planner', 'scorer'],
  ['scorer', 'planner', 'executor', 'ledger'],
  ['planner', 'ledger', 'scorer', 'executor'],
];

describe.skipIf(none !== null)('from 0.1.0 to this version', () => {
  it.each(nightly ? ORDERS : ORDERS.slice(0, 1))(
    'no move is lost and none is done twice when %s, %s, %s and %s are replaced while moves run, and then go back',
    async (...order) => {
      const { world, replace } = await installed();
      await world.until('a started move', (events) => count(events, 'migration.started') > 0);
      for (const service of order) await replace(service, 'new');
      await goesOn(world, 'the upgrade');
      for (const service of order.toReversed()) await replace(service, 'old');
      await goesOn(world, 'the downgrade');
      for (const service of order) await replace(service, 'new');
      await world.until('balance', settled);
      assertOnce(world.events, await world.migrations());
      const { status, text } = await runHere(['-c', world.stage.configFile, 'replay']);
      expect(status, text).toBe(0);
    },
  );

  it('an event that 0.1.0 does not know stops its planner with the remedy, and this version plans on', async () => {
    const { directory, world, replace } = await installed();
    await goesOn(world, 'the start');
    const env = { KRONOS_CONFIG: world.stage.configFile };
    expect(await runHere(['host', 'release', 'compute-01'], env)).toMatchObject({ status: 0 });
    const unplannable = (events: readonly LogEvent[]) =>
      events.findLast((e) => e.type === 'cycle.decided' && e.data.reason.code === 'unreadable-event');
    await world.until('an unplannable decision', (events) => unplannable(events) !== undefined);
    const said = JSON.stringify(unplannable(world.events));
    expect(said).toContain('host.released');
    const command = [join(directory, '0.1.0/libs/cli/src/main.ts'), '-c', world.stage.configFile, 'status'];
    const status = spawnSync(process.execPath, command, { encoding: 'utf8' });
    expect(status.stdout, status.stderr).toContain('Install a version of Kronos that reads host.released version 1');

    for (const service of ['ledger', 'executor', 'planner', 'scorer'] as const) await replace(service, 'new');
    const before = count(world.events, 'cycle.decided');
    await world.until('plans again', (events) =>
      events
        .filter((e) => e.type === 'cycle.decided')
        .slice(before)
        .some((e) => e.data.reason.code !== 'unreadable-event'),
    );
    await world.until('balance', settled);
    assertOnce(world.events, await world.migrations());
  });
});
