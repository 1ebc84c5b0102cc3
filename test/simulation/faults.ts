/**
 * Faults, and the acts of people meanwhile. The seed draws the whole list before the run; each entry draws its details
 * from a source of its own, so that the run without some of the others is the same otherwise. Only what Kronos promises to
 * survive is on the list.
 */
import { byText, DAY_MS } from '@kronos/contracts';
import type { ActInput, SeriesFaultSetting } from '@kronos/simcloud';
import type { InventoryMode } from './asked.ts';
import type { Chance } from './chance.ts';
import type { Drawn } from './options.ts';
import { BROKERS } from './rabbit.ts';
import { serviceNames } from './services.ts';
import type { Stage } from './stage/stage.ts';

export interface Fault {
  readonly number: number;
  readonly kind: string;
  /** Name of the source that it draws its details from: other kinds of faults do not change them. */
  readonly source: string;
  readonly atMs: number;
}

type UserAction = Parameters<Stage['changeState']>[1];

interface Kind {
  /** The average number per day. */
  readonly perDay: number;
  /** It takes part in runs with this `[inventory] mode` only; default: in every run. */
  readonly inventory?: readonly InventoryMode[];
  /** It takes part in runs with two releases, and in each of them. */
  readonly releases?: true;
  readonly act: (stage: Stage, chance: Chance) => void;
}

const seconds = (chance: Chance, low: number, high: number): number =>
  1000 * Math.exp(chance.between(Math.log(low), Math.log(high)));

const anyProcess = (stage: Stage, chance: Chance): string => {
  const service = chance.pick([...serviceNames, 'executor', 'executor', 'planner'] as const);
  return chance.pick(stage.processes(service));
};

/** A server, mostly one that is about to be moved. */
function waitingServer(stage: Stage, chance: Chance): ReturnType<Stage['servers']>[number] {
  const open = stage.openTasks();
  const wanted = open.length > 0 && chance.flip(0.7) ? chance.pick(open).server : null;
  return stage.servers().find(({ id }) => id === wanted) ?? chance.pick(stage.servers());
}

/** A user takes a server out of use, and mostly back again: some never do. */
const putAside =
  (aside: UserAction, back: UserAction): Kind['act'] =>
  (stage, chance) => {
    const { id } = waitingServer(stage, chance);
    stage.changeState(id, aside);
    if (chance.flip(0.8)) stage.after(seconds(chance, 60, 7200), () => stage.changeState(id, back));
  };

/** Those of the user of Kronos. */
export const ROLES = ['admin', 'manager', 'member', 'reader'];

/** A fault of an API that lasts for a while. */
function apiTrouble(stage: Stage, chance: Chance, effect: object, more: object = {}): void {
  const fault = {
    api: chance.pick(['compute', 'compute', 'compute', 'placement', 'prometheus', 'identity'] as const),
    probability: chance.pick([0.05, 0.2, 0.5, 1]),
    effect,
    ...more,
  };
  const made = stage.act({ act: 'faultApi', fault } as ActInput);
  if (typeof made?.id === 'number') {
    const { id } = made;
    stage.after(seconds(chance, 2, 300), () => stage.act({ act: 'mendApi', id }));
  }
}

/** Series are wrong for a while. */
function seriesTrouble(stage: Stage, fault: SeriesFaultSetting, lastsMs: () => number): void {
  const id = stage.act({ act: 'faultSeries', fault })?.id;
  if (typeof id === 'number') stage.after(lastsMs(), () => stage.act({ act: 'mendSeries', id }));
}

/** The one request that matters most, with an outcome that is hard to know. */
const POST = { api: 'compute', method: 'POST', path: '/action$', probability: 1 } as const;

export const kinds: Readonly<Record<string, Kind>> = {
  kill: { perDay: 30, act: (stage, chance) => stage.kill(anyProcess(stage, chance), seconds(chance, 0.5, 120)) },
  // Most mistakes show only when something happens right after an event: waits for one and hits who wrote it.
  moment: {
    perDay: 200,
    act(stage, chance) {
      const type = chance.pick([
        'migration.started',
        'migration.started',
        'migration.started',
        'migration.observed',
        'migration.completed',
        'migration.failed',
        'migration.requested',
        'cycle.decided',
        'plan.dispatched',
      ]);
      const delayMs = seconds(chance, 0.0005, 5);
      const lastsMs = seconds(chance, 0.5, 90);
      const what = chance.pick(['kill', 'kill', 'pause', 'pause', 'cut', 'stall'] as const);
      stage.onNext(type, (process) => stage.after(delayMs, () => stage[what](process, lastsMs)));
    },
  },
  terminate: {
    perDay: 12,
    act: (stage, chance) => stage.terminate(anyProcess(stage, chance), seconds(chance, 0.5, 60)),
  },
  // A service is upgraded, or set back: one of its processes after the other, or one of them alone. Often while a move runs.
  release: {
    perDay: 400,
    releases: true,
    act(stage, chance) {
      const service = chance.pick(serviceNames);
      const all = chance.shuffle(stage.processes(service));
      const release = chance.pick(['this', 'other'] as const);
      const next = ([process, ...others]: readonly string[]): void => {
        if (process === undefined) return;
        stage.replace(process, release, seconds(chance, 0.5, 60));
        stage.after(seconds(chance, 1, 120), () => next(others));
      };
      const begin = () => next(chance.flip(0.5) ? all : all.slice(0, 1));
      if (chance.flip(0.5)) begin();
      else stage.onNext('migration.started', () => stage.after(seconds(chance, 0.05, 20), begin));
    },
  },
  // Options that reach one planner before the other: of the two, the one that started last plans.
  'planner-options': {
    perDay: 6,
    act: (stage, chance) =>
      stage.reconfigure(
        chance.pick(stage.processes('planner')),
        seconds(chance, 0.5, 60),
        seconds(chance, 60, 4 * 3600),
      ),
  },
  'pause-short': {
    perDay: 60,
    act: (stage, chance) => stage.pause(anyProcess(stage, chance), seconds(chance, 0.1, 10)),
  },
  'pause-long': {
    perDay: 20,
    act: (stage, chance) => stage.pause(anyProcess(stage, chance), seconds(chance, 10, 200)),
  },
  skew: {
    perDay: 10,
    act(stage, chance) {
      const process = anyProcess(stage, chance);
      stage.skew(process, chance.between(-2000, 2000));
      stage.after(seconds(chance, 60, 7200), () => stage.skew(process, 0));
    },
  },
  'clock-wrong': {
    perDay: 4,
    act(stage, chance) {
      const process = anyProcess(stage, chance);
      stage.skew(process, (chance.flip(0.5) ? 1 : -1) * seconds(chance, 60, 7200));
      stage.after(seconds(chance, 30, 1800), () => stage.skew(process, 0));
    },
  },
  cut: { perDay: 40, act: (stage, chance) => stage.cut(anyProcess(stage, chance), seconds(chance, 0.1, 90)) },
  stall: { perDay: 40, act: (stage, chance) => stage.stall(anyProcess(stage, chance), seconds(chance, 0.2, 40)) },
  'nats-restart': {
    perDay: 4,
    act(stage, chance) {
      const ms = seconds(chance, 1, 30);
      for (const process of stage.processes()) stage.cut(process, ms + chance.between(0, 2000));
    },
  },
  'nats-weather': {
    perDay: 20,
    act(stage, chance) {
      stage.natsWeather({
        delayMs: chance.pick([0.5, 5, 50, 500]),
        lost: chance.pick([0, 0.02, 0.2]),
        unanswered: chance.pick([0, 0.02, 0.2]),
      });
      stage.after(seconds(chance, 5, 300), () => stage.natsWeather({ delayMs: 0.5, lost: 0, unanswered: 0 }));
    },
  },
  'http-delay': {
    perDay: 10,
    act(stage, chance) {
      stage.httpDelay(chance.pick([50, 300, 1500]));
      stage.after(seconds(chance, 5, 300), () => stage.httpDelay(5));
    },
  },
  refuse: { perDay: 20, act: (stage, chance) => stage.refuse(anyProcess(stage, chance), seconds(chance, 1, 120)) },
  'api-status': {
    perDay: 20,
    act(stage, chance) {
      const status = chance.pick([500, 502, 503, 504, 429]);
      // 429 is the answer of a rate limit, which passes nothing on.
      apiTrouble(stage, chance, { kind: 'status', status, processed: chance.flip(0.4) && status >= 500 });
    },
  },
  'api-cut': {
    perDay: 15,
    act: (stage, chance) =>
      apiTrouble(stage, chance, { kind: 'cut', when: chance.pick(['before', 'after', 'middle']) }),
  },
  'api-hang': {
    perDay: 8,
    act: (stage, chance) => apiTrouble(stage, chance, { kind: 'hang', when: chance.pick(['before', 'after']) }),
  },
  'api-garbage': { perDay: 5, act: (stage, chance) => apiTrouble(stage, chance, { kind: 'garbage' }) },
  'api-unauthorized': { perDay: 4, act: (stage, chance) => apiTrouble(stage, chance, { kind: 'unauthorized' }) },
  'post-unknown': {
    perDay: 60,
    act: (stage, chance) =>
      apiTrouble(
        stage,
        chance,
        chance.pick([
          { kind: 'status', status: 504, processed: true },
          { kind: 'status', status: 500, processed: chance.flip(0.5) },
          { kind: 'cut', when: 'after' },
          { kind: 'cut', when: 'before' },
          { kind: 'hang', when: chance.pick(['before', 'after']) },
        ]),
        { ...POST, times: chance.int(1, 3) },
      ),
  },
  'revoke-tokens': { perDay: 6, act: (stage) => void stage.act({ act: 'revokeTokens' }) },
  'move-fails': {
    perDay: 120,
    act(stage, chance) {
      const server = chance.pick(stage.servers()).id;
      const fault = chance.pick([
        { kind: 'fail', times: 1 },
        { kind: 'error', times: 1 },
        { kind: 'hang', times: 1 },
        { kind: 'slow', seconds: chance.between(30, 600), times: 1 },
        { kind: 'pre-check', times: 1 },
        { kind: 'conductor-delay', seconds: seconds(chance, 1, 240) / 1000, times: 1 },
        { kind: 'lost', times: 1 },
        { kind: 'abort-ignored', times: 1 },
      ] as const);
      stage.act({ act: 'faultServer', server, fault });
    },
  },
  'host-fails-moves': {
    perDay: 10,
    act(stage, chance) {
      const fault = chance.pick([
        { kind: 'refuse', times: chance.int(1, 4) },
        { kind: 'fail-inbound', times: chance.int(1, 4) },
        { kind: 'hook', times: chance.int(1, 4) },
        { kind: 'slow-inbound', factor: chance.between(2, 10), times: chance.int(1, 4) },
      ] as const);
      stage.act({ act: 'faultHost', host: chance.pick(stage.hosts()), fault });
    },
  },
  'host-disabled': {
    perDay: 6,
    act(stage, chance) {
      const host = chance.pick(stage.hosts());
      stage.act({ act: 'setHost', host, disabled: true });
      stage.after(seconds(chance, 60, 7200), () => stage.act({ act: 'setHost', host, disabled: false }));
    },
  },
  // An operator takes a host out of use while a plan uses it: its tasks go elsewhere only where that still helps, and it is not charged.
  'moving-host-disabled': {
    perDay: 20,
    act: (stage, chance) =>
      stage.onNext('migration.started', () =>
        stage.after(seconds(chance, 0.1, 60), () => {
          const moving = stage.movingHosts();
          if (moving.length === 0) return;
          const host = chance.pick(moving);
          stage.act({ act: 'setHost', host, disabled: true });
          stage.after(seconds(chance, 30, 3600), () => stage.act({ act: 'setHost', host, disabled: false }));
        }),
      ),
  },
  // Likewise of the destination of a task that waits for its turn.
  'destination-disabled': {
    perDay: 20,
    act: (stage, chance) =>
      stage.onNext('plan.dispatched', () =>
        stage.after(seconds(chance, 1, 60), () => {
          const waiting = stage.waitingTasks();
          if (waiting.length === 0) return;
          const { destination: host } = chance.pick(waiting);
          stage.act({ act: 'setHost', host, disabled: true });
          stage.after(seconds(chance, 120, 3600), () => stage.act({ act: 'setHost', host, disabled: false }));
        }),
      ),
  },
  // Its nova-compute dies, mostly while it has a part in a move, and is started again.
  'host-dies': {
    perDay: 6,
    act(stage, chance) {
      const lastsMs = seconds(chance, 5, 3600);
      const die = (hosts: readonly string[]): void => {
        const host = chance.pick(hosts);
        stage.act({ act: 'killHost', host });
        stage.after(lastsMs, () => stage.act({ act: 'startHost', host }));
        // An operator who looks at once is sometimes earlier than Kronos itself.
        if (chance.flip(0.5)) stage.after(lastsMs + seconds(chance, 0.1, 120), () => stage.closeAbandoned());
      };
      if (chance.flip(0.3)) die(stage.hosts());
      else
        stage.onNext('migration.started', () =>
          stage.after(seconds(chance, 0.1, 120), () => {
            const moving = stage.movingHosts();
            if (moving.length > 0) die(moving);
          }),
        );
    },
  },
  'operator-closes': { perDay: 48, act: (stage) => stage.closeAbandoned() },
  'person-moves': {
    perDay: 20,
    act: (stage, chance) =>
      void stage.act({ act: 'migrateServer', server: chance.pick(stage.servers()).id, host: null }),
  },
  'person-locks': {
    perDay: 10,
    act(stage, chance) {
      const server = chance.pick(stage.servers()).id;
      stage.act({ act: 'lockServer', server, reason: null });
      stage.after(seconds(chance, 60, 3600), () => stage.act({ act: 'unlockServer', server }));
    },
  },
  // Mostly of a server that waits for its turn. Nova lists a power state that is wrong after the restart of a compute, too.
  'person-stops': {
    perDay: 20,
    act(stage, chance) {
      const { id: server } = waitingServer(stage, chance);
      const [off, on] = chance.pick([
        [
          { vmState: 'stopped', powerState: 4 },
          { vmState: 'active', powerState: 1 },
        ],
        [
          { vmState: 'paused', powerState: 3 },
          { vmState: 'active', powerState: 1 },
        ],
        [{ powerState: 4 }, { powerState: 1 }],
        [{ powerState: 0 }, { powerState: 1 }],
      ] as const);
      stage.act({ act: 'setServer', server, ...off });
      stage.after(seconds(chance, 30, 3600), () => stage.act({ act: 'setServer', server, ...on }));
    },
  },
  'person-rescues': { perDay: 6, act: putAside('rescue', 'unrescue') },
  // A shelved server is on no host. Nova chooses one when it is unshelved.
  'person-shelves': { perDay: 6, act: putAside('shelve', 'unshelve') },
  'person-aborts': {
    perDay: 30,
    act: (stage, chance) =>
      stage.onNext('migration.started', () => {
        const servers = stage.openTasks().map(({ server }) => server);
        stage.after(seconds(chance, 0.5, 60), () => {
          for (const server of servers) stage.stopMigration(server);
        });
      }),
  },
  // Some users never answer.
  'person-resizes': {
    perDay: 8,
    act(stage, chance) {
      const { id } = waitingServer(stage, chance);
      stage.migrateCold(id);
      const how = chance.pick(['confirmResize', 'confirmResize', 'revertResize'] as const);
      if (chance.flip(0.8)) stage.after(seconds(chance, 60, 14_400), () => stage.endResize(id, how));
    },
  },
  // Nova's default is ERROR; the operator of the simulation makes it ACTIVE later. Nobody can end its move any more.
  'person-resets': {
    perDay: 6,
    act(stage, chance) {
      const resized = stage.resizedServers();
      if (resized.length > 0) stage.act({ act: 'setServer', server: chance.pick(resized), vmState: 'error' });
    },
  },
  // Nova itself never changes the members of a group after boot; people do, by creating servers anew.
  'group-changes': {
    perDay: 8,
    act(stage, chance) {
      const group = `late-${chance.int(0, 1e9)}`;
      const policy = chance.pick(['anti-affinity', 'affinity', 'soft-anti-affinity'] as const);
      stage.act({ act: 'createGroup', group: { name: group, policy } });
      for (let i = 0; i < 3; i++) stage.act({ act: 'setGroup', server: waitingServer(stage, chance).id, group });
    },
  },
  // A member of the group of a server that waits for its turn is created, perhaps where that server is to go.
  'member-boots': {
    perDay: 20,
    act: (stage, chance) =>
      stage.onNext('migration.requested', () => {
        const waiting = stage.waitingTasks();
        if (waiting.length === 0) return;
        const { server, destination } = chance.pick(waiting);
        const host = chance.flip(0.7) ? destination : chance.pick(stage.hosts());
        stage.bootMember(server, `member-${chance.int(0, 1e9)}`, host);
      }),
  },
  'host-leaves': {
    perDay: 4,
    act(stage, chance) {
      const host = chance.pick(stage.hosts());
      stage.setMember(host, false);
      stage.after(seconds(chance, 30, 3600), () => stage.setMember(host, true));
    },
  },
  // It moves to another aggregate, and is in both until somebody takes it out of one.
  'host-in-two-aggregates': {
    perDay: 4,
    act(stage, chance) {
      const host = chance.pick(stage.hosts());
      stage.setSecondAggregate(host, true);
      stage.after(seconds(chance, 60, 3600), () => stage.setSecondAggregate(host, false));
    },
  },
  // One nova-compute after the other, with hours between them: no VM goes back to one that is still to come. Some upgrades stop halfway.
  'computes-upgraded': {
    perDay: 2,
    act(stage, chance) {
      const hypervisorVersion = stage.nextHypervisor();
      const hosts = chance.shuffle(stage.hosts());
      const next = ([host, ...others]: readonly string[]): void => {
        if (host === undefined || chance.flip(0.1)) return;
        stage.act({ act: 'setHost', host, up: false });
        stage.after(seconds(chance, 2, 120), () => stage.act({ act: 'setHost', host, up: true, hypervisorVersion }));
        stage.after(seconds(chance, 120, 7200), () => next(others));
      };
      next(hosts);
    },
  },
  // Nova's API does not reach the database of the cell, mostly while moves run, which go on.
  'cell-unreachable': {
    perDay: 4,
    act(stage, chance) {
      const lastsMs = seconds(chance, 10, 1800);
      const begin = (): void => {
        stage.reachCells(false);
        stage.after(lastsMs, () => stage.reachCells(true));
      };
      if (chance.flip(0.3)) begin();
      else stage.onNext('migration.started', () => stage.after(seconds(chance, 0.1, 120), begin));
    },
  },
  'host-full': {
    perDay: 8,
    act(stage, chance) {
      const host = chance.pick(stage.hosts());
      stage.act({ act: 'setHost', host, full: true });
      stage.after(seconds(chance, 30, 3600), () => stage.act({ act: 'setHost', host, full: false }));
    },
  },
  // The message bus, or the conductor: every nova-compute is reported down.
  'computes-down': {
    perDay: 4,
    act(stage, chance) {
      const hosts = stage.hosts();
      for (const host of hosts) stage.act({ act: 'setHost', host, up: false });
      stage.after(seconds(chance, 10, 1200), () => {
        for (const host of hosts) stage.act({ act: 'setHost', host, up: true });
      });
    },
  },
  'role-taken': {
    perDay: 4,
    act(stage, chance) {
      const take = (): void => {
        stage.act({ act: 'setRoles', user: 'admin', roles: ['reader'] });
        stage.after(seconds(chance, 5, 900), () => stage.act({ act: 'setRoles', user: 'admin', roles: [...ROLES] }));
      };
      if (chance.flip(0.5)) take();
      else stage.onNext('migration.started', () => stage.after(seconds(chance, 0.1, 30), take));
    },
  },
  'server-deleted': {
    perDay: 6,
    act: (stage, chance) => void stage.act({ act: 'deleteServer', server: chance.pick(stage.servers()).id }),
  },
  'server-created': {
    perDay: 6,
    act(stage, chance) {
      const name = `new-${chance.int(0, 1e9)}`;
      const server = { name, host: chance.pick(stage.hosts()), flavor: 'g.medium' };
      stage.act({ act: 'createServer', server });
    },
  },
  load: {
    perDay: 200,
    act(stage, chance) {
      const { host } = chance.pick(stage.servers());
      const busy = chance.flip(0.5);
      for (const server of stage.servers()) {
        if (server.host !== host || chance.flip(0.4)) continue;
        const cpuCores = busy ? chance.between(1.5, 3) : chance.between(0.1, 0.5);
        stage.act({ act: 'setServer', server: server.id, demand: { cpuCores, memoryMb: chance.int(1000, 4000) } });
      }
    },
  },
  'series-missing': {
    perDay: 12,
    act(stage, chance) {
      const kind = chance.pick(['missing', 'missing', 'stale', 'frozen', 'duplicate', 'nan'] as const);
      const fault = { kind, labels: { host: chance.pick(stage.hosts()) } };
      seriesTrouble(stage, fault, () => seconds(chance, 60, 1800));
    },
  },
  // The exporters of all hosts, or those of VMs on one: by their values everything is idle, or nothing is there.
  'exporters-die': {
    perDay: 3,
    act(stage, chance) {
      const kind = chance.pick(['missing', 'stale'] as const);
      const labels = { host: chance.pick(stage.hosts()) };
      const dead = chance.pick([
        {},
        {},
        { metric: 'host_cpu_utilisation' },
        { metric: 'vm_cpu_cores' },
        { metric: 'vm_cpu_cores', labels },
        { metric: 'vm_mem_mb', labels },
      ]);
      seriesTrouble(stage, { kind, ...dead }, () => seconds(chance, 60, 7200));
    },
  },
  'operator-pauses': {
    perDay: 12,
    act(stage, chance) {
      const aggregate = chance.pick([...stage.aggregates, '_all_']);
      stage.command('aggregate.paused', aggregate, {});
      stage.after(seconds(chance, 30, 1800), () => stage.command('aggregate.resumed', aggregate, {}));
    },
  },
  'operator-quarantines': {
    perDay: 12,
    act(stage, chance) {
      const { id: serverId, host } = waitingServer(stage, chance);
      const aggregate = stage.aggregateOf(host);
      const length = chance.pick([300, 1800, -1]);
      stage.command('instance.quarantined', aggregate, { serverId, seconds: length });
      if (length < 0 || chance.flip(0.5))
        stage.after(seconds(chance, 60, 3600), () => stage.command('instance.unquarantined', aggregate, { serverId }));
    },
  },
  // Half of them while moves run. Closes are without force: Kronos aborts first, and keeps the slot until Nova shows that nothing works
  // on the server.
  'operator-cancels': {
    perDay: 45,
    act(stage, chance) {
      const command = chance.pick(['migration.cancelled', 'migration.aborted', 'migration.closed'] as const);
      const act = (): void => {
        const open = stage.openTasks();
        if (open.length === 0) return;
        const { taskId } = chance.pick(open);
        const aggregate = stage.aggregates.find((each) => taskId.startsWith(`${each}-`)) ?? '';
        stage.command(command, aggregate, { taskId });
      };
      if (chance.flip(0.5)) act();
      else stage.onNext('migration.started', () => stage.after(seconds(chance, 0.5, 60), act));
    },
  },
  // A drain that ends while VMs still leave, or hours after the last one has left.
  'operator-drains': {
    perDay: 6,
    act(stage, chance) {
      const host = chance.pick(stage.hosts());
      const aggregate = stage.aggregateOf(host);
      stage.command('host.drainAsked', aggregate, { host });
      stage.after(seconds(chance, 60, 14_400), () => stage.command('host.undrainAsked', aggregate, { host }));
    },
  },
  'operator-evaluates': {
    perDay: 6,
    act: (stage, chance) =>
      stage.command('evaluation.requested', chance.pick([...stage.aggregates, '_all_']), { purpose: 'evaluate' }),
  },
  'skew-large': {
    perDay: 4,
    act(stage, chance) {
      const process = anyProcess(stage, chance);
      stage.skew(process, chance.pick([-1, 1]) * seconds(chance, 60, 3600));
      stage.after(seconds(chance, 30, 3600), () => stage.skew(process, 0));
    },
  },
  'stream-full': {
    perDay: 4,
    act(stage, chance) {
      const stream = chance.pick([
        'KRONOS_LOG',
        'KRONOS_LOG',
        'KRONOS_SNAPSHOTS',
        'KRONOS_MIGRATIONS',
        'KRONOS_CHECKPOINTS',
      ]);
      stage.fill(stream, seconds(chance, 1, 600));
    },
  },
  forged: { perDay: 12, act: (stage, chance) => stage.forge(chance) },
  // A restore that was careless, or a disk that was replaced: the log is another one, and others have seen the first.
  'log-wiped': {
    perDay: 1,
    act: (stage, chance) =>
      stage.wipe(
        chance.pick([
          ['KRONOS_LOG'],
          ['KRONOS_LOG'],
          ['KRONOS_LOG', 'KRONOS_MIGRATIONS'],
          ['KRONOS_LOG', 'KRONOS_CHECKPOINTS'],
        ]),
        seconds(chance, 0.01, 60),
        chance.flip(0.5),
        seconds(chance, 10, 3600),
      ),
  },
  // The log is lost while moves run that do not end by themselves; their deadline comes minutes later.
  'log-wiped-moving': {
    perDay: 2,
    act: (stage, chance) =>
      stage.onNext('migration.requested', () => {
        for (const { server } of stage.openTasks())
          stage.act({ act: 'faultServer', server, fault: { kind: 'hang', times: 1 } });
        const afterMs = seconds(chance, 150, 280);
        const goneMs = seconds(chance, 0.01, 60);
        const named = chance.flip(0.5);
        const statedAfterMs = seconds(chance, 900, 3600);
        stage.onNext('migration.observed', () =>
          stage.after(afterMs, () => stage.wipe(['KRONOS_LOG'], goneMs, named, statedAfterMs)),
        );
      }),
  },
  'task-repeated': { perDay: 20, act: (stage, chance) => stage.repeatTask(chance) },
  // Two deliveries of one attempt, which wait for the same place.
  'task-doubled': {
    perDay: 60,
    act: (stage, chance) =>
      stage.onNext('migration.requested', () =>
        stage.after(seconds(chance, 0.001, 1), () => stage.repeatTask('newest')),
      ),
  },
  // A planner that sleeps in the middle of a decision, for longer than snapshots and message ids live.
  'planner-sleeps': {
    perDay: 60,
    act: (stage, chance) =>
      stage.onNext('snapshot.taken', () => {
        const planner = chance.pick(stage.processes('planner'));
        const lastsMs = seconds(chance, 20, 900);
        stage.after(seconds(chance, 0.0005, 0.1), () => stage.pause(planner, lastsMs));
      }),
  },
  // An executor that sleeps in the middle of a pre-flight, for longer than what it has read counts.
  'executor-sleeps': {
    perDay: 60,
    act(stage, chance) {
      const type = chance.pick(['migration.requested', 'plan.dispatched', 'migration.completed']);
      const executor = chance.pick(stage.processes('executor'));
      const delayMs = seconds(chance, 0.001, 0.5);
      const lastsMs = seconds(chance, 20, 300);
      stage.onNext(type, () => stage.after(delayMs, () => stage.pause(executor, lastsMs)));
    },
  },
  // An executor that sleeps between a start and its request, for longer than the request may wait.
  'start-sleeps': {
    perDay: 20,
    act(stage, chance) {
      const delayMs = seconds(chance, 0.0001, 0.002);
      const lastsMs = seconds(chance, 11, 60);
      stage.onNext('migration.started', (executor) => stage.after(delayMs, () => stage.pause(executor, lastsMs)));
    },
  },
  // A scorer that sleeps while it takes a snapshot, and stores it when a later one has been decided.
  'scorer-sleeps': {
    perDay: 60,
    act(stage, chance) {
      const untilMs = stage.nextSnapshotMs();
      const scorer = chance.pick(stage.processes('scorer'));
      const lastsMs = seconds(chance, 60, 600);
      stage.after(untilMs + seconds(chance, 0.001, 2), () => stage.pause(scorer, lastsMs));
    },
  },
  // One planner sleeps while it decides a snapshot, until the other one, which was away at that snapshot, has decided the next.
  'planners-apart': {
    perDay: 60,
    act: (stage, chance) =>
      stage.onNext('snapshot.taken', () => {
        const [away, asleep] = chance.shuffle(stage.processes('planner'));
        if (away === undefined || asleep === undefined) return;
        const untilMs = stage.nextSnapshotMs();
        const [afterMs, sleepMs] = [seconds(chance, 0.0005, 0.1), seconds(chance, 5, 60)];
        stage.kill(away, untilMs + seconds(chance, 0.5, 5));
        stage.after(afterMs, () => stage.pause(asleep, untilMs + sleepMs));
      }),
  },
  // Some of what a pre-flight reads comes at once, and some a minute or two later.
  'checks-hang': {
    perDay: 60,
    act: (stage, chance) =>
      stage.onNext('plan.dispatched', () =>
        apiTrouble(
          stage,
          chance,
          { kind: 'hang', when: 'before' },
          {
            api: 'compute',
            method: 'GET',
            path: chance.pick(['/os-services', '/os-aggregates', '/os-migrations']),
            probability: 1,
            times: chance.int(1, 8),
          },
        ),
      ),
  },
  // A person empties the work queue of what waits on it.
  'tasks-lost': {
    perDay: 6,
    act: (stage, chance) => {
      const downMs = seconds(chance, 70, 300);
      stage.onNext('plan.dispatched', () => stage.loseTasks(downMs));
    },
  },
  // Nova carries the request out after the client has stopped waiting for the answer.
  'post-late': {
    perDay: 20,
    act: (stage, chance) =>
      apiTrouble(stage, chance, { kind: 'latency', ms: 1000 * chance.between(5, 50) }, { ...POST, times: 1 }),
  },
  'broker-stops': {
    perDay: 20,
    inventory: ['notifications'],
    act: (stage, chance) => stage.stopBroker(chance.pick(BROKERS), seconds(chance, 1, 900), chance.flip(0.5)),
  },
  'brokers-stop': {
    perDay: 12,
    inventory: ['notifications'],
    act(stage, chance) {
      const keeps = chance.flip(0.5);
      for (const host of BROKERS) stage.stopBroker(host, seconds(chance, 5, 3600), keeps);
    },
  },
  'broker-cut': {
    perDay: 20,
    inventory: ['notifications'],
    act: (stage, chance) => stage.cutBroker(chance.pick(stage.processes('scorer')), chance),
  },
  'notifications-astray': {
    perDay: 30,
    inventory: ['notifications'],
    act(stage, chance) {
      stage.post({
        lost: chance.pick([0, 0.1, 0.5, 1]),
        doubled: chance.pick([0, 0.2, 0.8]),
        delayMs: 1000 * chance.pick([0.02, 1, 20, 200]),
      });
      stage.after(seconds(chance, 10, 1800), () => stage.post({ lost: 0, doubled: 0, delayMs: 20 }));
    },
  },
  'queue-deleted': { perDay: 4, inventory: ['notifications'], act: (stage) => stage.dropQueue() },
  // A compute that is upgraded, or goes back.
  'compute-upgraded': {
    perDay: 10,
    inventory: ['notifications'],
    act: (stage, chance) => stage.unversioned(chance.pick(stage.hosts()), chance.flip(0.4)),
  },
  // Of the three, Nova's `updated` shows only the metadata key that is set.
  'person-excludes': {
    perDay: 20,
    act(stage, chance) {
      const server = chance.pick(stage.servers()).id;
      const by = chance.flip(0.5) ? 'tag' : 'metadata';
      stage.exclude(server, by, true);
      stage.after(seconds(chance, 30, 7200), () => stage.exclude(server, by, false));
    },
  },
  'log-garbled': {
    perDay: 8,
    act(stage, chance) {
      const garble = (): void => stage.garble(chance.pick(stage.aggregates), seconds(chance, 10, 1200));
      if (chance.flip(0.5)) garble();
      // While tasks wait for their turn.
      else stage.onNext('plan.dispatched', () => stage.after(seconds(chance, 0.001, 20), garble));
    },
  },
};

/** The list of a run: every kind takes part in some runs and not in others, so that each is also seen alone. */
export function drawFaults(chance: Chance, drawn: Drawn, durationMs: number): Fault[] {
  const found: { kind: string; source: string; atMs: number }[] = [];
  for (const [kind, { perDay, inventory, releases }] of Object.entries(kinds)) {
    if (inventory?.includes(drawn.inventory) === false) continue;
    if (releases === true && drawn.beside === null) continue;
    const own = chance.fork(kind);
    if (kind !== 'load' && releases !== true && own.flip(0.25)) continue;
    const rate = (perDay * drawn.trouble) / DAY_MS;
    for (let at = own.exponential(1 / rate), nth = 0; at < durationMs; at += own.exponential(1 / rate), nth++)
      found.push({ kind, source: `${kind}/${nth}`, atMs: Math.floor(at) });
  }
  return found.sort((a, b) => a.atMs - b.atMs || byText(a.kind, b.kind)).map((fault, number) => ({ number, ...fault }));
}
