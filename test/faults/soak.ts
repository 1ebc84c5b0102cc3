/**
 * A long random run: plans of moves one after the other, executors that come and go, NATS and the APIs failing at random.
 * `node test/faults/soak.ts [--seed N] [--minutes M] [--replicas N]`. Prints its seed first; what is drawn from it is the same each
 * time, what the processes make of it is not. Exit code 1 when anything that must hold did not.
 */
import { parseArgs } from 'node:util';
import { systemClock } from '@kronos/clock';
import { startNatsServer } from '@kronos/eventlog/testing';
import { breaches, type Move, smallCloud, startBed } from '@kronos/executor/testing';
import { random } from '@kronos/projections/testing';
import type { ActInput } from '@kronos/simcloud';
import { ACK_WAIT_MS, caps, scaledOptions } from './cells.ts';
import { type ExecutorProcess, Fleet } from './fleet.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    minutes: { type: 'string', default: '10' },
    replicas: { type: 'string', default: '3' },
  },
});
const seed = Number(values.seed);
const replicas = Number(values.replicas);
console.log(`seed ${seed}`);
const uniform = random(seed);
const int = (most: number): number => Math.floor(uniform() * most);
const pick = <T>(from: readonly T[]): T => {
  const found = from[int(from.length)];
  if (found === undefined) throw new RangeError('nothing to pick from');
  return found;
};
/** How long a fault lasts, and the time between two faults. */

const HOSTS = 6;
const aggregate = `soak-${process.pid}`;
const nats = await startNatsServer();
const bed = await startBed(smallCloud(HOSTS, 4, {}, aggregate), { nats, aggregate, speed: 40 });
const fleet = new Fleet(2);
const running: ExecutorProcess[] = [];
let started = 0;

function start(): void {
  const taken = fleet.take();
  started += 1;
  taken.start({
    do: 'start',
    natsUrl: nats.url,
    authUrl: bed.sim.urls.identity,
    aggregate,
    instance: `${aggregate}-${started}`,
    caps,
    options: { ...scaledOptions, deadlineMinMs: 4000, deadlinePerGibMs: 0 },
    ackWaitMs: ACK_WAIT_MS,
    concurrency: 50,
    hold: null,
  });
  running.push(taken);
}

const drop = (process: ExecutorProcess): void => {
  running.splice(running.indexOf(process), 1);
};

/** An act that is undone later. */
async function forAWhile(act: ActInput, ms: number): Promise<void> {
  bed.sim.act(act);
  await systemClock.sleep(ms);
  bed.sim.act({ act: 'mendApi' });
  bed.sim.act({ act: 'resumeApi', api: '*' });
}

const troubles: readonly (readonly [string, () => Promise<void>])[] = [
  [
    'an executor is killed',
    async () => {
      const victim = pick(running);
      drop(victim);
      await victim.kill();
      start();
    },
  ],
  [
    'an executor stops and another starts',
    async () => {
      const victim = pick(running);
      drop(victim);
      victim.signal('SIGTERM');
      start();
    },
  ],
  [
    'an executor is paused',
    async () => {
      const victim = pick(running);
      victim.signal('SIGSTOP');
      await systemClock.sleep(200 + int(4000));
      victim.signal('SIGCONT');
    },
  ],
  [
    'nats-server is killed',
    async () => {
      await nats.kill();
      await systemClock.sleep(int(3000));
      await nats.restart();
    },
  ],
  [
    'nats-server is silent',
    async () => {
      await nats.pause();
      await systemClock.sleep(200 + int(3000));
      nats.resume();
    },
  ],
  ['tokens are revoked', async () => void bed.sim.act({ act: 'revokeTokens' })],
  [
    'Nova answers 503',
    () => forAWhile({ act: 'faultApi', fault: { api: 'compute', effect: { kind: 'status', status: 503 } } }, int(2000)),
  ],
  ['no API answers', () => forAWhile({ act: 'pauseApi', api: '*' }, int(2000))],
  [
    'answers are cut off',
    () =>
      forAWhile(
        { act: 'faultApi', fault: { api: '*', probability: 0.3, effect: { kind: 'cut', when: 'after' } } },
        int(2000),
      ),
  ],
  [
    'a server will fail to migrate',
    async () => {
      const kind = pick(['fail', 'error', 'hang', 'error-after-switchover'] as const);
      bed.sim.act({ act: 'faultServer', server: `h${1 + int(HOSTS)}-${1 + int(4)}`, fault: { kind, times: 1 } });
    },
  ],
];

/** Moves of servers that are not moving, each from its host. */
function nextMoves(): readonly Move[] {
  const servers = [...bed.sim.cloud.servers.values()].filter((server) => server.vmState === 'active');
  const chosen = new Set(Array.from({ length: 1 + int(5) }, () => pick(servers)));
  return [...chosen].map((server) => {
    const from = Number(server.host.slice(1));
    const to = (shift: number): string => `h${((from - 1 + shift) % HOSTS) + 1}`;
    const shift = 1 + int(HOSTS - 1);
    return { server: server.name, from: server.host, to: to(shift), alternates: [to((shift % (HOSTS - 1)) + 1)] };
  });
}

for (let i = 0; i < replicas; i += 1) start();
const until = performance.now() + Number(values.minutes) * 60_000;
const tasks: string[] = [];
let plans = 0;
let failed = false;
try {
  while (performance.now() < until) {
    const moves = nextMoves();
    const ids = await bed.release(moves);
    plans += 1;
    tasks.push(...ids);
    let over = false;
    const settled = bed.finals(ids, 120_000).finally(() => {
      over = true;
    });
    settled.catch(() => undefined);
    while (!over) {
      await systemClock.sleep(100 + int(700));
      if (over || uniform() < 0.3) continue;
      const [name, make] = pick(troubles);
      console.log(`  ${name}`);
      await make();
    }
    const finals = await settled;
    bed.sim.act({ act: 'mendAll' });
    const ends = finals.map((final) => (final.type === 'migration.failed' ? final.data.errorType : final.type));
    console.log(`plan ${plans}: ${ends.join(', ')}`);
    const found = breaches(bed.sim, await bed.results(), ids, caps);
    if (found.length > 0) throw new Error(found.join('\n'));
  }
} catch (error) {
  failed = true;
  console.error(`seed ${seed}: ${error instanceof Error ? error.message : error}`);
}
console.log(JSON.stringify({ seed, plans, tasks: tasks.length, executors: started, failed }));
await fleet.close();
await bed.close().catch(() => undefined);
await nats.stop();
process.exit(failed ? 1 : 0);
