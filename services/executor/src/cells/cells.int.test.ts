import { createServer } from 'node:net';
import { until } from '@kronos/clock/testing';
import { listen } from '@kronos/http/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Bed, type Result, type Started, startBed, startExecutor } from '../../testing/index.ts';
import { defaultTaskOptions, type TaskOptions } from '../options.ts';

const AGGREGATE = 'old';
/** As in executor.int.test.ts. */
const ACK_WAIT_SECONDS = 120;
const caps = { maxConcurrentMigrations: 2, maxOutboundPerHost: 2, maxInboundPerHost: 2, maxConcurrentPerGroup: 1 };
const scaled: TaskOptions = {
  ...defaultTaskOptions,
  pollIntervalMs: 25,
  retryBackoffMs: 100,
  retryBackoffMaxMs: 1000,
  abortAgainMs: 500,
  settleMs: 3000,
  blindMaxMs: 500,
};

/** A cloud of two cells: o1 and o2 in aggregate old, n1 and n2 in aggregate new. The flavor m2 runs on new hosts only. */
async function bedOfCells(address: string | null = null): Promise<Bed> {
  const host = (name: string, cell: string, traits: string[] = []) => ({
    name,
    cell,
    traits,
    vcpus: 32,
    memoryMb: 65_536,
    diskGb: 1000,
  });
  const scenario = {
    name: 'cells',
    hosts: [
      host('o1', 'cell1'),
      host('o2', 'cell1'),
      host('n1', 'cell2', ['CUSTOM_NEW']),
      host('n2', 'cell2', ['CUSTOM_NEW']),
    ],
    aggregates: [
      { name: AGGREGATE, hosts: ['o1', 'o2'] },
      { name: 'new', hosts: ['n1', 'n2'] },
    ],
    flavors: [
      { name: 'm1', vcpus: 2, memoryMb: 2048, diskGb: 10 },
      { name: 'm2', vcpus: 4, memoryMb: 4096, diskGb: 10, extraSpecs: { 'trait:CUSTOM_NEW': 'required' } },
    ],
    servers: ['a', 'b', 'c'].map((name) => ({
      name,
      host: 'o1',
      flavor: 'm1',
      ports: address === null ? [] : [{ address }],
    })),
    crossCellResize: true,
  };
  const bed = await startBed(scenario, { ackWaitSeconds: ACK_WAIT_SECONDS, aggregate: AGGREGATE });
  onTestFinished(() => bed.close());
  return bed;
}

async function executorOn(
  bed: Bed,
  options: Partial<TaskOptions> = {},
  cells: typeof caps | null = caps,
): Promise<Started['nova']> {
  const { executor, nova, stop } = await startExecutor(
    { natsUrl: bed.nats.url, authUrl: bed.sim.urls.identity },
    {
      name: 'executor',
      session: { retry: { connection: { retries: 0, backoffMs: 10 }, status: { retries: 0, backoffMs: 10 } } },
      sriovPorts: 'auto',
      aggregates: [AGGREGATE],
      check: { aggregates: [AGGREGATE, 'new'], optOut: [], force: false },
      options: { ...scaled, ...options },
      caps: { ...caps, ...(cells === null ? {} : { cells }) },
      ackWaitMs: ACK_WAIT_SECONDS * 1000,
      concurrency: 100,
      level: process.env.TEST_LOG,
    },
  );
  executor.done.catch(() => undefined);
  onTestFinished(() => stop());
  return nova;
}

const types = (results: readonly Result[]): readonly string[] =>
  results.map(({ event }) => event.type.replace('migration.', ''));

/** The actions that were asked of Nova, in order. */
const asked = (bed: Bed): readonly string[] =>
  bed.sim
    .calls()
    .filter(({ path, status }) => path.endsWith('/action') && status !== 401)
    .map(({ body }) => Object.keys(body as object)[0] ?? '');

const stateOf = (bed: Bed, name: string) => {
  const { host, vmState, taskState, powerState, flavor, uuid } = bed.sim.cloud.server(name);
  const held = [...bed.sim.cloud.allocations].filter(([consumer]) => consumer === uuid).map(([, a]) => a.host);
  return { host, vmState, taskState, powerState, flavor: flavor.name, held };
};

/** The allocations of others than servers: a migration that holds something. */
const heldByMigrations = (bed: Bed): number =>
  [...bed.sim.cloud.allocations.keys()].filter((consumer) => !bed.sim.cloud.servers.has(consumer)).length;

const RUNS = { vmState: 'active', taskState: null, powerState: 1 };
const OFF = { vmState: 'stopped', taskState: null, powerState: 4 };
const TO_N1 = { from: 'o1', to: 'n1', alternates: ['n2'] };
const NEW = { target: 'new' };
const waiting = (bed: Bed, name: string) =>
  until(() => bed.sim.cloud.server(name).vmState === 'resized' && bed.sim.cloud.server(name).taskState === null);

describe('a move between cells', () => {
  test('by cold migration: an ACTIVE and a stopped server arrive as they were, verified and confirmed', async () => {
    const bed = await bedOfCells();
    bed.sim.act({ act: 'setServer', server: 'b', vmState: 'stopped' });
    await executorOn(bed);
    const tasks = await bed.release(
      [
        { server: 'a', ...TO_N1 },
        { server: 'b', ...TO_N1 },
      ],
      { cell: NEW },
    );
    const [a, b] = await bed.finals(tasks);
    expect(a).toMatchObject({
      type: 'migration.completed',
      data: {
        outcome: 'migrated',
        host: 'n1',
        warnings: [],
        cell: { method: 'migrate', oldFlavor: 'm1', newFlavor: 'm1', settledBy: 'kronos' },
      },
    });
    expect(b).toMatchObject({ type: 'migration.completed', data: { warnings: [], cell: { downtimeMs: 0 } } });
    expect([stateOf(bed, 'a'), stateOf(bed, 'b')]).toEqual([
      { host: 'n1', ...RUNS, flavor: 'm1', held: ['n1'] },
      { host: 'n1', ...OFF, flavor: 'm1', held: ['n1'] },
    ]);
    expect(heldByMigrations(bed)).toBe(0);
    expect([...asked(bed)].sort()).toEqual(['confirmResize', 'confirmResize', 'migrate', 'migrate']);
    const ofA = (await bed.results()).filter(({ event }) => event.data.taskId === tasks[0]);
    expect(types(ofA)).toEqual(['started', 'observed', 'verifying', 'verified', 'confirmRequested', 'completed']);
  });

  test('by resize: the new flavor leads to the new hardware', async () => {
    const bed = await bedOfCells();
    await executorOn(bed);
    const tasks = await bed.release([{ server: 'a', ...TO_N1 }], {
      cell: { ...NEW, method: 'resize', newFlavor: 'm2' },
    });
    const [final] = await bed.finals(tasks);
    expect(final).toMatchObject({
      type: 'migration.completed',
      data: { warnings: [], cell: { method: 'resize', oldFlavor: 'm1', newFlavor: 'm2', settledBy: 'kronos' } },
    });
    const { host, ...rest } = stateOf(bed, 'a');
    expect(['n1', 'n2']).toContain(host);
    expect(rest).toEqual({ ...RUNS, flavor: 'm2', held: [host] });
    expect(asked(bed)).toEqual(['resize', 'confirmResize']);
  });

  test('a check that fails reverts it, and the server is what it was', async () => {
    const bed = await bedOfCells();
    await executorOn(bed, { verify: { kind: 'command', command: 'exit 3' }, verifyTimeoutMs: 0 });
    const tasks = await bed.release([{ server: 'a', ...TO_N1 }], { cell: NEW });
    const [final] = await bed.finals(tasks);
    expect(final).toMatchObject({
      type: 'migration.failed',
      data: {
        errorType: 'MigrationFailed',
        reason: { code: 'verification', text: 'reverted: the check command ended with 3' },
        retryPending: false,
        cell: { settledBy: 'kronos' },
      },
    });
    expect(stateOf(bed, 'a')).toEqual({ host: 'o1', ...RUNS, flavor: 'm1', held: ['o1'] });
    expect(heldByMigrations(bed)).toBe(0);
    expect(asked(bed)).toEqual(['migrate', 'revertResize']);
  });

  test('verify = tcp: a guest that accepts connections on its address is confirmed, one that does not is reverted', async () => {
    const guest = createServer((socket) => socket.destroy());
    const verify = { kind: 'tcp', port: await listen(guest) } as const;
    onTestFinished(() => void guest.close());
    const bed = await bedOfCells('127.0.0.1');
    await executorOn(bed, { verify, verifyTimeoutMs: 0 });
    const good = await bed.release([{ server: 'a', ...TO_N1 }], { cell: NEW });
    expect(await bed.finals(good)).toMatchObject([{ type: 'migration.completed', data: { host: 'n1', warnings: [] } }]);
    await new Promise((resolve) => guest.close(resolve));
    const bad = await bed.release([{ server: 'b', ...TO_N1 }], { cell: NEW });
    expect(await bed.finals(bad)).toMatchObject([
      {
        type: 'migration.failed',
        data: {
          reason: {
            code: 'verification',
            text: expect.stringContaining(`no connection to port ${verify.port}: 127.0.0.1: `),
          },
        },
      },
    ]);
    expect([stateOf(bed, 'a'), stateOf(bed, 'b')]).toEqual([
      { host: 'n1', ...RUNS, flavor: 'm1', held: ['n1'] },
      { host: 'o1', ...RUNS, flavor: 'm1', held: ['o1'] },
    ]);
  });

  test('verify = tcp: a guest without an address is reverted', async () => {
    const bed = await bedOfCells();
    await executorOn(bed, { verify: { kind: 'tcp', port: 22 }, verifyTimeoutMs: 0 });
    const tasks = await bed.release([{ server: 'a', ...TO_N1 }], { cell: NEW });
    expect(await bed.finals(tasks)).toMatchObject([
      { type: 'migration.failed', data: { reason: { text: 'reverted: the server has no address' } } },
    ]);
    expect(stateOf(bed, 'a')).toMatchObject({ host: 'o1', ...RUNS });
  });

  test('a stopped server is not probed, and stays stopped', async () => {
    const bed = await bedOfCells();
    bed.sim.act({ act: 'setServer', server: 'a', vmState: 'stopped' });
    await executorOn(bed, { verify: { kind: 'tcp', port: 1 }, verifyTimeoutMs: 0 });
    const tasks = await bed.release([{ server: 'a', ...TO_N1 }], { cell: NEW });
    expect(await bed.finals(tasks)).toMatchObject([{ type: 'migration.completed', data: { warnings: [] } }]);
    expect(stateOf(bed, 'a')).toMatchObject({ host: 'n1', ...OFF });
  });

  test('with confirm = manual it waits for a person, who reverts it', async () => {
    const bed = await bedOfCells();
    await executorOn(bed);
    const tasks = await bed.release([{ server: 'a', ...TO_N1 }], { cell: { ...NEW, confirm: 'manual' } });
    await until(async () => types(await bed.results()).includes('verified'));
    expect(asked(bed)).toEqual(['migrate']);
    await bed.command('migration.revertAsked', tasks[0] ?? '');
    expect(await bed.finals(tasks)).toMatchObject([
      { type: 'migration.failed', data: { errorType: 'Cancelled', reason: { code: 'operator' } } },
    ]);
    expect(stateOf(bed, 'a')).toMatchObject({ host: 'o1', ...RUNS });
  });

  test('a user who confirms it has decided: the outcome is accepted', async () => {
    const bed = await bedOfCells();
    const nova = await executorOn(bed);
    const tasks = await bed.release([{ server: 'a', ...TO_N1 }], { cell: { ...NEW, confirm: 'manual' } });
    await waiting(bed, 'a');
    await nova.settleResize({ serverId: bed.uuid('a'), act: 'confirm' }, { checkSend: () => null });
    expect(await bed.finals(tasks)).toMatchObject([
      { type: 'migration.completed', data: { host: 'n1', warnings: [], cell: { settledBy: 'others' } } },
    ]);
    expect(asked(bed)).toEqual(['migrate', 'confirmResize']);
  });

  test('a server that is deleted in VERIFY_RESIZE ends its task', async () => {
    const bed = await bedOfCells();
    await executorOn(bed);
    const tasks = await bed.release([{ server: 'a', ...TO_N1 }], { cell: { ...NEW, confirm: 'manual' } });
    await until(async () => types(await bed.results()).includes('verified'));
    bed.sim.act({ act: 'deleteServer', server: 'a' });
    expect(await bed.finals(tasks)).toMatchObject([
      { type: 'migration.failed', data: { errorType: 'Cancelled', reason: { code: 'server-gone' } } },
    ]);
    expect(asked(bed)).toEqual(['migrate']);
  });

  test('a full target is refused before anything is asked of Nova, and the alternate takes the server', async () => {
    const bed = await bedOfCells();
    bed.sim.act({ act: 'setHost', host: 'n1', full: true });
    await executorOn(bed);
    const tasks = await bed.release([{ server: 'a', ...TO_N1 }], { cell: NEW });
    expect(await bed.finals(tasks)).toMatchObject([{ type: 'migration.completed', data: { host: 'n2', attempt: 2 } }]);
    expect(asked(bed)).toEqual(['migrate', 'confirmResize']);
  });

  test.each([
    ['snapshot', 'o1', 'guest-off', { vmState: 'active', powerState: 4 }],
    ['spawn', 'o1', 'server-in-error', { vmState: 'error' }],
    ['revert', 'o1', 'server-in-error', { vmState: 'error' }],
  ] as const)('a %s that breaks is stated with its remedy', async (kind, host, code, state) => {
    const bed = await bedOfCells();
    bed.sim.act({ act: 'faultServer', server: 'a', fault: { kind } });
    const verify = kind === 'revert' ? ({ kind: 'command', command: 'exit 1' } as const) : ({ kind: 'none' } as const);
    await executorOn(bed, { verify, verifyTimeoutMs: 0 });
    const tasks = await bed.release([{ server: 'a', ...TO_N1 }], { cell: NEW });
    const [final] = await bed.finals(tasks);
    expect(final).toMatchObject({ type: 'migration.failed', data: { reason: { code }, retryPending: false } });
    expect(final?.type === 'migration.failed' && final.data.reason.text).toContain('reboot --hard');
    expect(stateOf(bed, 'a')).toMatchObject({ host, ...state });
  });

  test('a confirmation that breaks is a completed move with its server in ERROR', async () => {
    const bed = await bedOfCells();
    bed.sim.act({ act: 'faultServer', server: 'a', fault: { kind: 'confirm' } });
    await executorOn(bed);
    const tasks = await bed.release([{ server: 'a', ...TO_N1 }], { cell: NEW });
    expect(await bed.finals(tasks)).toMatchObject([
      { type: 'migration.completed', data: { host: 'n1', warnings: [{ code: 'server-in-error' }] } },
    ]);
  });

  test('without the policy Nova calls the host unknown: the reason says so, and no other host is tried', async () => {
    const bed = await bedOfCells();
    bed.sim.cloud.crossCell = false;
    await executorOn(bed);
    const tasks = await bed.release([{ server: 'a', ...TO_N1 }], { cell: NEW });
    expect(await bed.finals(tasks)).toMatchObject([
      { type: 'migration.failed', data: { reason: { code: 'cell-policy' }, hostAtFault: null } },
    ]);
    expect(asked(bed)).toEqual(['migrate']);
    expect(stateOf(bed, 'a')).toEqual({ host: 'o1', ...RUNS, flavor: 'm1', held: ['o1'] });
  });

  test('while moves between cells are off none starts', async () => {
    const bed = await bedOfCells();
    await executorOn(bed, {}, null);
    const tasks = await bed.release([{ server: 'a', ...TO_N1 }], { cell: NEW });
    expect(await bed.finals(tasks)).toMatchObject([
      { type: 'migration.failed', data: { reason: { code: 'cells-off' } } },
    ]);
    expect(asked(bed)).toEqual([]);
  });
});
