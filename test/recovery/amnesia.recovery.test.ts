import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { verifyArchive } from '@kronos/archive';
import { foldLog } from '@kronos/checkpoints';
import { type LogEvent, streamNames } from '@kronos/contracts';
import { canonicalState, createFolder } from '@kronos/projections';
import { afterEach, expect, it } from 'vitest';
import { kronos } from '../../libs/cli/test/world.ts';
import { ended, openWorld, released, type ServiceName, settled, type World } from '../e2e/world.ts';
import { assertOnce } from './once.ts';

let world: World | null = null;
let scratch = '';
afterEach(async () => {
  await world?.close();
  await rm(scratch, { recursive: true, force: true });
});

const forgetful = ['planner', 'ledger'] as const;
const home = (service: ServiceName) => join(scratch, service);
const archive = () => join(home('ledger'), 'archive');

/** Each service writes only into its own directory. */
async function openHomes(): Promise<(of: ServiceName | 'provision') => Record<string, string>> {
  scratch = await mkdtemp(join(tmpdir(), 'kronos-amnesia-'));
  for (const service of ['scorer', 'planner', 'executor', 'ledger'] as const) await mkdir(home(service));
  return (of) =>
    of === 'provision'
      ? {}
      : {
          HOME: home(of),
          TMPDIR: home(of),
          XDG_CACHE_HOME: home(of),
          OS_LEDGER__ARCHIVE_DIR: archive(),
          OS_LEDGER__CHECKPOINT_INTERVAL: '1',
        };
}

/** The machines of ledger and planner are lost with all their files, and come back empty. */
async function loseMachines(at: World): Promise<void> {
  await expect.poll(() => readdir(archive()).catch(() => [])).not.toEqual([]);
  for (const service of forgetful)
    for (const child of at.stage.processes.get(service) ?? []) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await gone;
    }
  for (const service of forgetful) {
    await rm(home(service), { recursive: true });
    await mkdir(home(service));
  }
  for (const service of forgetful) at.stage.start(service);
}

const started = (n: number) => (events: readonly LogEvent[]) =>
  events.filter((e) => e.type === 'migration.started').length >= n;

it('ledger and planner that lose all their files in the middle of a run change nothing in its outcome', async () => {
  world = await openWorld({ speed: 20, env: await openHomes() });
  const { log, configFile } = world.stage;
  await world.until('a first plan', (events) => released(events).length > 0);
  await loseMachines(world);
  await world.until('moves under way', started(2));
  await loseMachines(world);
  await world.until('a balanced cloud', settled);

  const { events } = world;
  assertOnce(events, await world.migrations());
  expect(ended(events).size).toBeGreaterThan(0);

  // Each snapshot has one decision, and each decision replays from the log.
  const decided = events.flatMap((e) => (e.type === 'cycle.decided' ? [e.data.snapshotId] : []));
  expect(decided).toHaveLength(new Set(decided).size);
  const replayed = await kronos(['replay', '--json'], { env: { KRONOS_CONFIG: configFile }, nowMs: Date.now() });
  expect(replayed.status, replayed.out + replayed.err).toBe(0);

  // The state from the first event equals the state from the newest checkpoint, and the archive is complete again.
  const skipped: unknown[] = [];
  const starts: number[] = [];
  const view = await foldLog(log, { onSkipped: (one) => skipped.push(one), onStart: (at) => starts.push(at) });
  const state = view.at().state;
  await view.close();
  const folder = createFolder();
  for await (const stored of log.replay({ to: state.sequence })) folder.apply(stored);
  expect(canonicalState(state)).toBe(canonicalState(folder.snapshot()));
  expect(starts[0]).toBeGreaterThan(0);
  expect(skipped).toEqual([]);
  await expect
    .poll(async () => (await verifyArchive(archive())).last)
    .toBeGreaterThanOrEqual(await log.lastSequence(streamNames.log));
  expect((await verifyArchive(archive())).first).toBe(1);
});
