/** The parts of a run in the modes that keep lists of servers: Nova's notifications, RabbitMQ, and the witness of their contents. */
import type { InProcessSim } from '@kronos/simcloud';
import type { Chance } from './chance.ts';
import { InventoryWitness } from './inventoryWitness.ts';
import { NovaNotices } from './novaNotices.ts';
import type { Drawn } from './options.ts';
import { SimulatedRabbit } from './rabbit.ts';
import type { Run, Surroundings } from './surroundings.ts';
import type { World } from './world.ts';

export interface KeptInventory {
  /** Null: the lists are read in each cycle. */
  readonly witness: InventoryWitness | null;
  /** Null: nobody takes Nova's notifications. */
  readonly notifications: Notifications | null;
}

export interface Notifications {
  readonly rabbit: SimulatedRabbit;
  readonly notices: NovaNotices;
}

/** @param optOut tags and metadata keys that exclude a server */
export function keptInventory(
  { world, chance, drawn }: Run,
  { sim, cloudNetwork: network }: Pick<Surroundings, 'sim' | 'cloudNetwork'>,
  optOut: readonly string[],
): KeptInventory {
  if (drawn.inventory === 'api') return { witness: null, notifications: null };
  const { cloud } = sim;
  const notifications = drawn.inventory === 'notifications' ? notificationsOf(world, chance, drawn, sim) : null;
  const witness = new InventoryWitness(drawn.syncSeconds * 1000, optOut, cloud.servers.values());
  cloud.onServer = (server) => {
    witness.changed(server, cloud.nowMs);
    notifications?.notices.changed(server);
  };
  network.onReply = (process, { method, url, status }, beganMs) => {
    if (method === 'GET' && status === 200 && url.startsWith(sim.urls.compute))
      witness.read(process, url.slice(sim.urls.compute.length), beganMs);
  };
  if (notifications !== null)
    notifications.rabbit.onConsumer = (process, takes) => witness.consuming(process, takes, world.wall);
  return { witness, notifications };
}

function notificationsOf(world: World, chance: Chance, { unversioned }: Drawn, { cloud }: InProcessSim): Notifications {
  const rabbit = new SimulatedRabbit(world, chance);
  const notices = new NovaNotices(cloud, (content) => rabbit.publish(content));
  for (const host of cloud.hosts.keys())
    if (chance.fork(`unversioned/${host}`).flip(unversioned)) notices.unversioned.add(host);
  return { rabbit, notices };
}
