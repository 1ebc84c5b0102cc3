/** The fault matrix: every fault, at every point of a task's life, with one executor and with three. */
import { systemClock } from '@kronos/clock';
import { until } from '@kronos/clock/testing';
import { errorText, streamNames, subject } from '@kronos/contracts';
import { taskConsumerName } from '@kronos/eventlog';
import { bareConnection, type NatsServer, startNatsServer } from '@kronos/eventlog/testing';
import type { TaskOptions } from '@kronos/executor';
import { type Bed, breaches, type Move, smallCloud, startBed } from '@kronos/executor/testing';
import type { ActInput, ScenarioInput } from '@kronos/simcloud';
import { type ExecutorProcess, Fleet } from './fleet.ts';
import type { StartOrder } from './process.ts';

/** The pace of Nova and the limits that go with it: 60 s become 2 s, so that a busy machine stays within them. */
const SPEED = 40;
export const ACK_WAIT_MS = 1000;
/** Ends only a cell that cannot succeed any more: on a busy machine the start of a process takes minutes. */
const PATIENCE_MS = 300_000;

export const caps = {
  maxConcurrentMigrations: 2,
  maxOutboundPerHost: 1,
  maxInboundPerHost: 1,
  maxConcurrentPerGroup: 1,
};

export const scaledOptions: Partial<TaskOptions> = {
  maxRetries: 6,
  pollIntervalMs: 50,
  retryBackoffMs: 100,
  retryBackoffMaxMs: 400,
  takeoverMs: 2000,
  postWindowMs: 1000,
  checkTtlMs: 1000,
  abortAgainMs: 300,
  settleMs: 1500,
  blindMaxMs: 300,
  requeueMs: 500,
  suspectDeliveries: 200,
};

/** A point of a task's life. The executor stops there while the fault is injected. */
interface Point {
  /** The stage that begins there; `running`: the executor follows while Nova copies; `inPost`: Nova processes the request. */
  readonly stage: string;
  /** In a move between Nova's cells: the first one, and the request that Nova works on at `inPost`. */
  readonly between?: 'migrate' | 'confirmResize' | 'revertResize';
  /** Prepares the cloud so that the task reaches the point. */
  readonly prepare?: readonly ActInput[];
  readonly options?: Partial<TaskOptions>;
  /** The outcome of the task. */
  readonly ends: 'migration.completed' | 'MigrationTimeout' | 'MigrationFailed';
}

const fail: ActInput = { act: 'faultServer', server: 'h1-1', fault: { kind: 'fail', times: 1 } };
const slow: ActInput = { act: 'faultServer', server: 'h1-1', fault: { kind: 'slow', seconds: 60, times: 1 } };
const hang: ActInput = { act: 'faultServer', server: 'h1-1', fault: { kind: 'hang' } };
const slowPost: ActInput = {
  act: 'faultApi',
  fault: { api: 'compute', method: 'POST', path: '/action$', effect: { kind: 'latency', ms: 250 } },
};

const livePoints: Readonly<Record<string, Point>> = {
  waiting: { stage: 'waiting', ends: 'migration.completed' },
  checking: { stage: 'checking', ends: 'migration.completed' },
  claiming: { stage: 'claiming', ends: 'migration.completed' },
  'before POST': { stage: 'posting', ends: 'migration.completed' },
  'in POST': { stage: 'inPost', prepare: [slowPost], ends: 'migration.completed' },
  'after POST': { stage: 'seeking', ends: 'migration.completed' },
  noting: { stage: 'noting', ends: 'migration.completed' },
  running: { stage: 'running', prepare: [slow], ends: 'migration.completed' },
  aborting: {
    stage: 'aborting',
    prepare: [hang],
    options: { deadlineMinMs: 300, deadlinePerGibMs: 0, hardTimeoutMs: 300 },
    ends: 'MigrationTimeout',
  },
  explaining: { stage: 'explaining', prepare: [fail], ends: 'migration.completed' },
  'before result': { stage: 'ending', ends: 'migration.completed' },
  'before next attempt': { stage: 'passing', prepare: [fail], ends: 'migration.completed' },
  'before ack': { stage: 'finished', ends: 'migration.completed' },
};

const confirmed = { between: 'confirmResize', ends: 'migration.completed' } as const;
const reverted = {
  between: 'revertResize',
  ends: 'MigrationFailed',
  options: { verify: { kind: 'command', command: 'exit 1' }, verifyTimeoutMs: 0 },
} as const;

/** The stages that only a move between cells has. */
const betweenPoints: Readonly<Record<string, Point>> = {
  'before POST': { stage: 'resizing', ...confirmed },
  'in POST': { stage: 'inPost', ...confirmed, between: 'migrate', prepare: [slowPost] },
  'on its way': { stage: 'travelling', ...confirmed },
  recording: { stage: 'recording', ...confirmed },
  arriving: { stage: 'arriving', ...confirmed },
  verifying: { stage: 'verifying', ...confirmed },
  verified: { stage: 'reportingVerified', ...confirmed },
  'before confirmRequested': { stage: 'settling', ...confirmed },
  'after confirmRequested': { stage: 'agreeing', ...confirmed },
  'before confirm': { stage: 'asking', ...confirmed },
  'in confirm': { stage: 'inPost', ...confirmed, prepare: [slowPost] },
  'after confirm': { stage: 'concluding', ...confirmed },
  'before result': { stage: 'ending', ...confirmed },
  'before ack': { stage: 'finished', ...confirmed },
  'before revertRequested': { stage: 'settling', ...reverted },
  'before revert': { stage: 'asking', ...reverted },
  'in revert': { stage: 'inPost', ...reverted, prepare: [slowPost] },
  'after revert': { stage: 'concluding', ...reverted },
};

const points: Readonly<Record<string, Point>> = {
  ...livePoints,
  ...Object.fromEntries(Object.entries(betweenPoints).map(([name, point]) => [`between cells: ${name}`, point])),
};

/** The parts that a fault can act on. */
interface Scene {
  readonly bed: Bed;
  readonly nats: NatsServer;
  readonly aggregate: string;
  /** The process that stopped at the point. */
  readonly target: ExecutorProcess;
  readonly all: readonly ExecutorProcess[];
  /** The message of the first task, for a second publish. */
  readonly message: string;
  /** Starts another executor, as a supervisor would. */
  readonly replace: () => void;
  /** Lets the target continue. */
  readonly go: () => void;
}

type Fault = (scene: Scene) => Promise<void>;

/** A temporary fault of the APIs. */
const outage =
  (ms: number, ...acts: readonly ActInput[]): Fault =>
  async ({ bed, go }) => {
    for (const act of acts) bed.sim.act(act);
    go();
    await systemClock.sleep(ms);
    bed.sim.act({ act: 'mendApi' });
    bed.sim.act({ act: 'resumeApi', api: '*' });
  };

const unavailable = (api: 'compute' | 'identity' | 'placement'): ActInput => ({
  act: 'faultApi',
  fault: { api, effect: { kind: 'status', status: 503 } },
});
const cutting = (when: 'before' | 'after' | 'middle', probability: number): ActInput => ({
  act: 'faultApi',
  fault: { api: '*', probability, effect: { kind: 'cut', when } },
});

const faults: Readonly<Record<string, Fault>> = {
  'executor killed': async ({ target, replace }) => {
    await target.kill();
    replace();
  },
  'every executor killed': async ({ all, replace }) => {
    await Promise.all(all.map((process) => process.kill()));
    replace();
  },
  'executor stops on SIGTERM': async ({ target, replace, go }) => {
    target.signal('SIGTERM');
    go();
    replace();
  },
  'executor paused past its ack wait': async ({ target, replace, go }) => {
    target.signal('SIGSTOP');
    replace();
    await systemClock.sleep(ACK_WAIT_MS * 3);
    go();
    target.signal('SIGCONT');
  },
  'executor paused for a moment': async ({ target, go }) => {
    target.signal('SIGSTOP');
    await systemClock.sleep(ACK_WAIT_MS / 2);
    go();
    target.signal('SIGCONT');
  },
  'nats-server killed and restarted': async ({ nats, go }) => {
    await nats.kill();
    go();
    await nats.restart();
  },
  'NATS away for longer than the ack wait': async ({ nats, go }) => {
    await nats.kill();
    go();
    await systemClock.sleep(ACK_WAIT_MS * 2.5);
    await nats.restart();
  },
  'NATS silent for longer than the ack wait': async ({ nats, go }) => {
    await nats.pause();
    go();
    await systemClock.sleep(ACK_WAIT_MS * 2.5);
    nats.resume();
  },
  'executor and nats-server killed': async ({ nats, target, replace }) => {
    await Promise.all([target.kill(), nats.kill()]);
    await nats.restart();
    replace();
  },
  'Nova down': outage(1500, unavailable('compute'), unavailable('placement')),
  'Nova silent': outage(1500, { act: 'pauseApi', api: 'compute' }),
  'Keystone down, every token revoked': outage(1500, unavailable('identity'), { act: 'revokeTokens' }),
  'every token revoked': async ({ bed, go }) => {
    bed.sim.act({ act: 'revokeTokens' });
    go();
  },
  'tokens expire every second': async ({ bed, go }) => {
    bed.sim.act({ act: 'setTokenSeconds', seconds: 1 });
    bed.sim.act({ act: 'revokeTokens' });
    go();
  },
  'answers slow': outage(3000, {
    act: 'faultApi',
    fault: { api: '*', effect: { kind: 'latency', ms: 50, jitterMs: 250 } },
  }),
  'requests cut off': outage(1500, cutting('before', 0.4)),
  'answers cut off': outage(1500, cutting('after', 0.3), cutting('middle', 0.3)),
  'the task published twice': async ({ nats, aggregate, message, go }) => {
    const raw = await bareConnection(nats.url);
    await raw.request(`kronos.migrations.${aggregate}`, message);
    await raw.close();
    go();
  },
};

export interface Cell {
  readonly name: string;
  readonly fault: string;
  readonly point: string;
  readonly replicas: 1 | 3;
}

/** All of them, live migrations first, in an order that has every fault and every point of theirs early. */
function allCells(): readonly Cell[] {
  const names = Object.keys(points);
  const live = Object.keys(livePoints).length;
  return [...cellsAt(names.slice(0, live)), ...cellsAt(names.slice(live))];
}

function cellsAt(places: readonly string[]): readonly Cell[] {
  const cells: Cell[] = [];
  for (let shift = 0; shift < places.length; shift += 1)
    for (const replicas of [3, 1] as const)
      for (const [i, fault] of Object.keys(faults).entries()) {
        const point = places[(i + shift + (replicas === 1 ? 6 : 0)) % places.length] ?? '';
        cells.push({
          name: `${fault}, ${point}, ${replicas} executor${replicas === 1 ? '' : 's'}`,
          fault,
          point,
          replicas,
        });
      }
  return cells;
}

/** One executor is killed at every second point. Each other kill happens at one of every eight. */
const KILL_SAMPLE = { one: 2, others: 8 };

/**
 * Every fault at a point of a live migration; kills at some of the points, and each other fault at one point of a move between
 * cells, with one executor and with three in turn. The simulation kills executors at any moment.
 */
function sample(): readonly Cell[] {
  const places = Object.keys(points);
  const between = Object.keys(betweenPoints).map((name) => `between cells: ${name}`);
  const chosen = new Set<string>();
  for (const [i, fault] of Object.keys(faults).entries()) {
    const step = fault === 'executor killed' ? KILL_SAMPLE.one : KILL_SAMPLE.others;
    const at = /executor.* killed/.test(fault)
      ? places.filter((_, place) => (place + i) % step === 0)
      : [between[i % between.length]];
    for (const [n, point] of at.entries()) chosen.add(`${fault}, ${point}, ${(i + n) % 2 === 0 ? 3 : 1}`);
  }
  const inSample = ({ fault, point, replicas }: Cell, place: number): boolean =>
    place < Object.keys(faults).length || chosen.has(`${fault}, ${point}, ${replicas}`);
  return allCells().filter(inSample);
}

/** `all`, `sample` (see {@link sample}), a number of cells, or a part of their names. */
export function choose(wanted: string): readonly Cell[] {
  const cells = allCells();
  if (wanted === 'all') return cells;
  if (wanted === 'sample') return sample();
  if (/^\d+$/.test(wanted)) return cells.slice(0, Number(wanted));
  return cells.filter((cell) => cell.name.includes(wanted));
}

/** Runs cells side by side, as they mostly wait. Each cell has a log of its own, as all have the same VMs; the executor processes are shared by all. */
export async function runCells(
  cells: readonly Cell[],
  workers: number,
  onDone: (cell: Cell, result: CellResult) => void,
): Promise<void> {
  const fleet = new Fleet(workers + 2);
  const waiting = [...cells];
  const attempt = async (cell: Cell): Promise<CellResult> => {
    const began = performance.now();
    const nats = await startNatsServer();
    try {
      return await runCell(cell, nats, fleet);
    } catch (error) {
      return { breaches: [errorText(error)], ms: performance.now() - began };
    } finally {
      await nats.stop();
    }
  };
  const worker = async (): Promise<void> => {
    for (let cell = waiting.shift(); cell !== undefined; cell = waiting.shift()) onDone(cell, await attempt(cell));
  };
  try {
    await Promise.all(Array.from({ length: workers }, worker));
  } finally {
    await fleet.close();
  }
}

const moves: readonly Move[] = [
  { server: 'h1-1', from: 'h1', to: 'h2', alternates: ['h3'] },
  { server: 'h3-1', from: 'h3', to: 'h4' },
  { server: 'h1-2', from: 'h1', to: 'h4' },
];

export interface CellResult {
  /** Broken promises as text; empty when all hold. */
  readonly breaches: readonly string[];
  readonly ms: number;
}

let cellsRun = 0;

/** The same hosts and servers; h1 and h3 in one of Nova's cells, h2 and h4 in another. */
function twoCells(aggregate: string): ScenarioInput {
  const one = smallCloud(4, 2, {}, aggregate);
  const isOld = ({ name }: { readonly name: string }): boolean => name === 'h1' || name === 'h3';
  return {
    ...one,
    hosts: one.hosts.map((host) => ({ ...host, cell: isOld(host) ? 'old' : 'new' })),
    aggregates: [
      { name: aggregate, hosts: ['h1', 'h3'] },
      { name: targetOf(aggregate), hosts: ['h2', 'h4'] },
    ],
    crossCellResize: true,
  };
}

const targetOf = (aggregate: string): string => `${aggregate}-new`;

/** Servers that changed, or that hold resources on another host too. */
async function changed(bed: Bed): Promise<readonly string[]> {
  let found: string[] = [];
  const whole = () => {
    bed.sim.settle();
    const { servers, allocations } = bed.sim.cloud;
    found = [...servers.values()].flatMap(({ name, uuid, host, vmState, taskState, powerState }) => {
      const held = allocations.get(uuid)?.host ?? 'nowhere';
      return vmState === 'active' && taskState === null && powerState === 1 && held === host
        ? []
        : [`${name} is ${vmState} (task ${taskState}, power ${powerState}) on ${host}, and its claim is ${held}`];
    });
    for (const consumer of allocations.keys())
      if (!servers.has(consumer)) found.push(`a migration still holds a claim on ${allocations.get(consumer)?.host}`);
    return found.length === 0;
  };
  // Nova releases a claim shortly after the end of a move.
  await until(whole, PATIENCE_MS / 10).catch(() => undefined);
  return found;
}

/** Runs one cell with processes of the fleet. */
async function runCell(cell: Cell, nats: NatsServer, fleet: Fleet): Promise<CellResult> {
  const began = performance.now();
  const point = points[cell.point];
  const fault = faults[cell.fault];
  if (point === undefined || fault === undefined) throw new RangeError(`no cell ${cell.name}`);
  cellsRun += 1;
  const aggregate = `cell-${process.pid}-${cellsRun}`;
  const { between } = point;
  const scenario = between === undefined ? smallCloud(4, 2, {}, aggregate) : twoCells(aggregate);
  const bed = await startBed(scenario, { nats, aggregate, speed: SPEED });
  const used: ExecutorProcess[] = [];
  const start = (hold: StartOrder['hold']): ExecutorProcess => {
    const taken = fleet.take();
    taken.start({
      do: 'start',
      natsUrl: nats.url,
      authUrl: bed.sim.urls.identity,
      aggregate,
      instance: `${aggregate}-${used.length + 1}`,
      caps: { ...caps, cells: caps },
      options: { ...scaledOptions, ...point.options },
      ackWaitMs: ACK_WAIT_MS,
      concurrency: 50,
      hold,
    });
    used.push(taken);
    return taken;
  };
  let failed = true;
  try {
    for (const act of point.prepare ?? []) bed.sim.act(act);
    const hold = point.stage === 'inPost' ? null : { point: point.stage, serverId: bed.uuid('h1-1') };
    const replicas = Array.from({ length: cell.replicas }, () => start(hold));
    await allStarted(replicas);
    let message = '';
    const tasks = await bed.release(moves, {
      edit: (each) => {
        if (message === '') message = JSON.stringify(each);
        return each;
      },
      cell: between === undefined ? null : { target: targetOf(aggregate) },
    });
    const target = hold === null ? await posting(bed, replicas, between) : await standing(replicas);
    for (const replica of replicas) if (replica !== target) replica.go();
    const replace = (): void => {
      if (cell.replicas === 1 || cell.fault === 'every executor killed') start(null);
    };
    await fault({ bed, nats, aggregate, target, all: replicas, message, replace, go: () => target.go() });
    const found = await wrongs(point, bed, { nats, aggregate }, tasks);
    failed = found.length > 0;
    return { breaches: found, ms: performance.now() - began };
  } finally {
    nats.resume();
    await giveBack(used, fleet, failed);
    await bed.close();
  }
}

async function allStarted(replicas: readonly ExecutorProcess[]): Promise<void> {
  for (const replica of replicas)
    if ((await replica.report('started', PATIENCE_MS)) === null) throw new Error('an executor did not start');
}

/** Returns the processes of a cell to the fleet; after a failure prints what they said, and kills them. */
async function giveBack(used: readonly ExecutorProcess[], fleet: Fleet, failed: boolean): Promise<void> {
  if (failed) for (const each of used) process.stderr.write(each.output);
  for (const each of used) each.signal('SIGCONT');
  for (const each of used) each.go();
  await Promise.all(used.map((each) => (failed ? each.kill() : fleet.giveBack(each))));
}

/** The errors after all tasks have ended: broken rules, the rest of the work queue, and wrong ends of tasks. */
async function wrongs(
  point: Point,
  bed: Bed,
  { nats, aggregate }: { readonly nats: NatsServer; readonly aggregate: string },
  tasks: readonly string[],
): Promise<string[]> {
  const finals = await bed.finals(tasks, PATIENCE_MS);
  const left = await emptied(nats, aggregate, PATIENCE_MS);
  const found = left === null ? [] : [left];
  found.push(...breaches(bed.sim, await bed.results(), tasks, caps), ...(await changed(bed)));
  for (const [i, final] of finals.entries()) {
    // The failing check applies to every server.
    const expected = i === 0 || point.between === 'revertResize' ? point.ends : 'migration.completed';
    const is = final.type === 'migration.failed' ? final.data.errorType : final.type;
    const why = final.type === 'migration.failed' ? ` (${final.data.reason.code}: ${final.data.reason.text})` : '';
    if (is !== expected) found.push(`task ${i + 1} ended as ${is}${why}, expected ${expected}`);
  }
  return found;
}

/** The replica that stopped at the point. */
async function standing(replicas: readonly ExecutorProcess[]): Promise<ExecutorProcess> {
  const first = await Promise.race(
    replicas.map(async (replica) => ((await replica.report('holding', PATIENCE_MS)) === null ? null : replica)),
  );
  if (first === null) throw new Error('no task came to the point');
  return first;
}

/**
 * Waits until the cloud works on a request that it has not answered, to migrate or the one that is named; any replica may have
 * sent it.
 */
async function posting(
  bed: Bed,
  replicas: readonly ExecutorProcess[],
  named: Point['between'],
): Promise<ExecutorProcess> {
  const path = `/servers/${bed.uuid('h1-1')}/action`;
  const isNamed = (body: unknown): boolean => named === undefined || Object.hasOwn(body as object, named);
  const inHand = () =>
    bed.sim.calls().some((call) => call.path.endsWith(path) && call.status === null && isNamed(call.body));
  await until(inHand, PATIENCE_MS, 'a request that is not answered yet');
  const started = (await bed.results()).find(
    ({ event }) => event.type === 'migration.started' && event.data.serverId === bed.uuid('h1-1'),
  );
  const number = Number(started?.event.by.instance.split('-').at(-1));
  const sender = replicas[number - 1];
  if (sender === undefined) throw new Error('nobody has started the task');
  return sender;
}

/**
 * Waits until nothing of the aggregate is to be done any more, by the stream or by its durable; gives what is left. After a kill
 * one of the two may lag for ever: the server wrote that a message was acknowledged, and not that it is gone, or the reverse.
 */
async function emptied(nats: NatsServer, aggregate: string, withinMs: number): Promise<string | null> {
  const tasks = subject('migrations', aggregate);
  const raw = await bareConnection(nats.url);
  const api = async (name: string, body: object): Promise<unknown> =>
    (await raw.request(`$JS.API.${name}`, JSON.stringify(body))).json();
  let left = '';
  const empty = async () => {
    const stream = await api(`STREAM.INFO.${streamNames.migrations}`, { subjects_filter: tasks });
    const { state } = stream as { state: { subjects?: Readonly<Record<string, number>> } };
    const stored = state.subjects?.[tasks] ?? 0;
    const durable = await api(`CONSUMER.INFO.${streamNames.migrations}.${taskConsumerName(aggregate)}`, {});
    const { num_pending: pending, num_ack_pending: held } = durable as {
      num_pending: number;
      num_ack_pending: number;
    };
    left = `${stored} messages are left on the work queue, ${pending} to be delivered, ${held} held`;
    return stored === 0 || (pending === 0 && held === 0);
  };
  try {
    return await until(empty, withinMs).then(
      () => null,
      () => left,
    );
  } finally {
    await raw.close();
  }
}
