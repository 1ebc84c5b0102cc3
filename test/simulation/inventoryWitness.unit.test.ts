import type { Snapshot } from '@kronos/contracts';
import { openSim, parseScenario } from '@kronos/simcloud';
import { beforeEach, expect, it } from 'vitest';
import { InventoryWitness } from './inventoryWitness.ts';

const SYNC_MS = 300_000;
const CYCLE_MS = Date.UTC(2026, 0, 5);
const iso = (ms: number): string => new Date(ms).toISOString();

const scenario = parseScenario({
  hosts: ['a', 'b'].map((name) => ({ name })),
  flavors: [{ name: 'small', vcpus: 1, memoryMb: 512, diskGb: 1 }],
  servers: [{ name: 'vm', host: 'a', flavor: 'small' }],
});
let nowMs: number;
let sim: ReturnType<typeof openSim>;
let witness: InventoryWitness;
let vm: string;

beforeEach(() => {
  nowMs = CYCLE_MS - 1_000_000;
  sim = openSim({ scenario, seed: 1, clock: { now: () => nowMs }, after: () => () => undefined });
  vm = [...sim.cloud.servers.keys()][0] ?? '';
  witness = new InventoryWitness(SYNC_MS, ['kronos:exclude'], sim.cloud.servers.values());
  sim.cloud.onServer = (server) => witness.changed(server, sim.cloud.nowMs);
  witness.started('scorer-1', CYCLE_MS - 900_000);
  witness.consuming('scorer-1', true, CYCLE_MS - 899_000);
});

/** A snapshot of host `a` with the server, if any, as it is shown. */
const snapshot = (
  from: 'api' | 'changes' | 'notifications',
  checkedMs: number,
  shown: { readonly locked?: boolean; readonly alsoOn?: readonly string[] } | null = {},
) =>
  ({
    id: 's',
    observedFrom: iso(CYCLE_MS),
    problems: [],
    hosts: [{ name: 'a', listing: { from, checkedAt: iso(checkedMs) } }],
    servers:
      shown === null
        ? []
        : [
            {
              id: vm,
              host: 'a',
              alsoOn: [],
              vmState: 'active',
              taskState: null,
              locked: false,
              flavor: 'small',
              optedOutBy: null,
              ...shown,
            },
          ],
  }) as unknown as Snapshot;
const judged = (one: Snapshot): string[] =>
  witness.judge(one, 'scorer-1', CYCLE_MS + 5000).map(({ rule, text }) => `${rule}: ${text}`);
const heard = (ms: number): void =>
  witness.reported(
    new TextEncoder().encode(JSON.stringify({ data: { host: 'a', after: 3, notices: [{ own: true, after: 3 }] } })),
    ms,
  );
const read = (ms: number): void => witness.read('scorer-1', '/servers/detail?all_tenants=True&limit=1000', ms);
const lock = (ms: number): void => {
  nowMs = ms;
  sim.act({ act: 'lockServer', server: vm, reason: null });
};

it('a server may be shown as it was when its list was compared, and not as it was before', () => {
  lock(CYCLE_MS - 60_000);
  expect(judged(snapshot('changes', CYCLE_MS - 61_000))).toEqual([]);
  expect(judged(snapshot('changes', CYCLE_MS - 61_000, { locked: true }))).toEqual([]);
  expect(judged(snapshot('changes', CYCLE_MS - 59_000))).toEqual([expect.stringMatching(/^stale: .*was not since/)]);
});

it('a server on a host outside the aggregate may be shown on the one that still holds resources for it, as it is there', () => {
  const server = sim.cloud.server(vm);
  witness.changed({ ...server, host: 'b' }, CYCLE_MS - 600_000);
  expect(judged(snapshot('changes', CYCLE_MS))).toHaveLength(1);
  expect(judged(snapshot('changes', CYCLE_MS, { alsoOn: ['b'] }))).toEqual([]);
  expect(judged(snapshot('changes', CYCLE_MS, { alsoOn: ['b'], locked: true }))).toHaveLength(1);
  witness.changed({ ...server, host: 'b', locked: true }, CYCLE_MS - SYNC_MS - 1000);
  expect(judged(snapshot('changes', CYCLE_MS, { alsoOn: ['b'] }))).toHaveLength(1);
});

it('a server that was there all the time must be shown, and a deleted one must not', () => {
  expect(judged(snapshot('changes', CYCLE_MS, null))).toEqual([expect.stringMatching(/^stale: .*is missing/)]);
  nowMs = CYCLE_MS - 60_000;
  sim.act({ act: 'deleteServer', server: vm });
  expect(judged(snapshot('changes', CYCLE_MS - 50_000, null))).toEqual([]);
  expect(judged(snapshot('changes', CYCLE_MS - 50_000))).toHaveLength(1);
});

it('a list must have been compared within an interval before its cycle', () => {
  expect(judged(snapshot('changes', CYCLE_MS - SYNC_MS))).toEqual([]);
  expect(judged(snapshot('changes', CYCLE_MS - SYNC_MS - 1000))).toHaveLength(1);
});

it('a list that is called read must have been read in its cycle', () => {
  expect(judged(snapshot('api', CYCLE_MS + 100))).toEqual([expect.stringMatching(/^untrusted: .*was not/)]);
  read(CYCLE_MS + 100);
  expect(judged(snapshot('api', CYCLE_MS + 100))).toEqual([]);
});

it('a kept list is used only of a host that was heard, and read after that', () => {
  const kept = snapshot('notifications', CYCLE_MS - 100);
  read(CYCLE_MS - 500_000);
  expect(judged(kept)).toEqual([expect.stringContaining('untrusted: s: a was not heard')]);
  heard(CYCLE_MS - 400_000);
  expect(judged(kept)).toEqual([expect.stringContaining('was not read since')]);
  read(CYCLE_MS - 300_000);
  expect(judged(kept)).toEqual([]);
});

it('what was heard before RabbitMQ was gone for more than an interval does not count', () => {
  heard(CYCLE_MS - 890_000);
  read(CYCLE_MS - 880_000);
  const kept = snapshot('notifications', CYCLE_MS - 100);
  witness.consuming('scorer-1', false, CYCLE_MS - 800_000);
  witness.consuming('scorer-1', true, CYCLE_MS - 600_000);
  expect(judged(kept)).toEqual([]);
  witness.consuming('scorer-1', false, CYCLE_MS - 550_000);
  witness.consuming('scorer-1', true, CYCLE_MS - 200_000);
  expect(judged(kept)).toHaveLength(1);
});

it('a snapshot is not judged where the clock of its scorer was changed shortly before', () => {
  const missing = snapshot('changes', CYCLE_MS, null);
  expect(judged(missing)).toHaveLength(1);
  witness.skewed('scorer-1', 60_000, CYCLE_MS - 60_000);
  expect(judged(missing)).toEqual([]);
});

it('times of a scorer whose clock is wrong for long are put right', () => {
  witness.skewed('scorer-1', -60_000, CYCLE_MS - 2_000_000);
  lock(CYCLE_MS - 30_000);
  // By its own clock a minute earlier.
  expect(judged(snapshot('changes', CYCLE_MS - 80_000))).toHaveLength(1);
  expect(judged(snapshot('changes', CYCLE_MS - 100_000))).toEqual([]);
});
