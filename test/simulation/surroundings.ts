/** The surroundings of Kronos: the cloud, NATS, and the networks to both, with the checker that watches them. */
import { SimulatedServer, type StoredMessage } from '@kronos/eventlog/simulated';
import type { InProcessSim } from '@kronos/simcloud';
import type { Asked } from './asked.ts';
import type { Chance } from './chance.ts';
import { type Breach, Checker } from './checker/checker.ts';
import { rulesOf } from './checker/rulesOf.ts';
import { SimulatedRecord } from './cloudRecord.ts';
import { CloudNetwork, NatsNetwork } from './network.ts';
import type { Drawn, Setting } from './options.ts';
import { openCloud, watchCalls } from './simulatedCloud.ts';
import { trueClock, type World } from './world.ts';

/** The base of every part of a run. */
export interface Run {
  readonly asked: Asked;
  readonly world: World;
  readonly chance: Chance;
  readonly drawn: Drawn;
}

export interface Surroundings {
  readonly sim: InProcessSim;
  readonly record: SimulatedRecord;
  readonly checker: Checker;
  readonly server: SimulatedServer;
  readonly nats: NatsNetwork;
  readonly cloudNetwork: CloudNetwork;
}

export interface Onlookers {
  readonly onBreach: (breach: Breach) => void;
  /** Called while the server stores a message. */
  readonly onStored: (stream: string, message: StoredMessage) => void;
}

export function openSurroundings(
  { asked, world, chance, drawn }: Run,
  setting: Setting,
  { onBreach, onStored }: Onlookers,
): Surroundings {
  const sim = openCloud(setting.scenario, asked.seed, world);
  const { cloud } = sim;
  const record = new SimulatedRecord(cloud);
  const checker = new Checker(rulesOf(drawn, setting, cloud), record, () => world.wall, onBreach);
  const server = new SimulatedServer({
    clock: trueClock(world),
    idsFirst: drawn.idsFirst,
    onStored,
    onDelivered: (reply) => checker.queue.delivered(reply),
    onAnswered: (reply, answer) => checker.queue.answered(reply, answer),
  });
  const nats = new NatsNetwork(world, server, chance, drawn.taskPollMs);
  nats.onAnswer = (process, reply) => checker.queue.answering(process, reply);
  const cloudNetwork = new CloudNetwork(world, sim, chance);
  watchCalls(sim, {
    read: (path) => checker.cloud.read(path),
    called(made) {
      record.requested(made.requestId);
      if (checker.cloud.called({ ...made, leftMs: cloudNetwork.leftMs }) === 'former') record.disown(made.requestId);
    },
  });
  return { sim, record, checker, server, nats, cloudNetwork };
}

/** How often the checker looks at the cloud. */
const LOOK_MS = 10_000;

/** The checker looks at the cloud now, and again from time to time. */
export function keepLooking(world: World, sim: InProcessSim, checker: Checker): void {
  sim.settle();
  checker.cloud.look(sim.cloud.servers.values(), sim.cloud.hosts.keys());
  world.after(LOOK_MS, () => keepLooking(world, sim, checker));
}
