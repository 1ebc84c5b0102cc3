import type { Chance } from '../chance.ts';
import type { Notifications } from '../keptInventory.ts';
import type { Post } from '../rabbit.ts';
import type { Supervisor } from '../supervisor.ts';

/** In runs without notifications these do nothing. */
export interface NotificationActs {
  /** A broker of RabbitMQ is gone for a while; `keeps`: Nova's services keep what they send while both are. */
  stopBroker(host: string, ms: number, keeps: boolean): void;
  /** The connection of a process to RabbitMQ breaks, and each end notices later. */
  cutBroker(process: string, chance: Chance): void;
  /** How notifications travel from Nova to RabbitMQ. */
  post(post: Post): void;
  /** The queue of Kronos on RabbitMQ is deleted with what is in it. */
  dropQueue(): void;
  /** Whether the nova-compute of a host sends only unversioned notifications. */
  unversioned(host: string, yes: boolean): void;
}

const NOTHING: NotificationActs = {
  stopBroker: () => undefined,
  cutBroker: () => undefined,
  post: () => undefined,
  dropQueue: () => undefined,
  unversioned: () => undefined,
};

export function notificationActs(supervisor: Supervisor, notifications: Notifications | null): NotificationActs {
  if (notifications === null) return NOTHING;
  const { rabbit, notices } = notifications;
  return {
    stopBroker: (host, ms, keeps) => rabbit.stop(host, ms, keeps),
    cutBroker: (name, chance) => rabbit.cut(supervisor.processOf(name)?.name ?? '', chance),
    post: (post) => void Object.assign(rabbit.post, post),
    dropQueue: () => rabbit.dropQueue(),
    unversioned(host, yes) {
      if (yes) notices.unversioned.add(host);
      else notices.unversioned.delete(host);
    },
  };
}
