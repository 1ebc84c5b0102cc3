/** The notifications that Nova's services send of what happens to servers in the simulated cloud, as oslo.messaging puts them on RabbitMQ. */
import type { Cloud } from '@kronos/simcloud';

type Server = Cloud['servers'] extends Map<string, infer S> ? S : never;

interface Look {
  readonly host: string;
  readonly state: string;
}

const encoder = new TextEncoder();
const look = ({ host, vmState, taskState, powerState, flavor }: Server): Look => ({
  host,
  state: `${vmState} ${taskState} ${powerState} ${flavor.name}`,
});

/** Nova's name of no host is null. */
const hostOf = ({ host }: Server): string | null => (host === '' ? null : host);

export class NovaNotices {
  /** Hosts whose nova-compute sends only unversioned notifications. */
  readonly unversioned = new Set<string>();
  readonly #cloud: Cloud;
  readonly #publish: (content: Uint8Array) => void;
  readonly #seen = new Map<string, Look>();
  #serial = 0;

  constructor(cloud: Cloud, publish: (content: Uint8Array) => void) {
    this.#cloud = cloud;
    this.#publish = publish;
    for (const server of cloud.servers.values()) this.#seen.set(server.uuid, look(server));
  }

  /** A server was made, changed or deleted. */
  changed(server: Server): void {
    const before = this.#seen.get(server.uuid);
    const now = look(server);
    if (server.deletedMs !== null) {
      this.#seen.delete(server.uuid);
      // Without its nova-compute the API deletes it.
      if (this.#alive(now.host)) this.#compute('instance.delete.end', now.host, server);
      else this.#send('instance.delete.end', 'nova-api:api-1', server);
      return;
    }
    this.#seen.set(server.uuid, now);
    if (before === undefined) this.#compute('instance.create.end', now.host, server);
    else if (now.host === '' && before.host !== '') this.#compute('instance.shelve_offload.end', before.host, server);
    else if (server.taskState === null && before.state.startsWith('shelved_offloaded spawning'))
      this.#compute('instance.unshelve.end', now.host, server);
    else if (before.host !== '' && before.host !== now.host) {
      this.#compute('instance.live_migration_post.end', before.host, server);
      this.#compute('instance.live_migration_post_dest.end', now.host, server);
    } else if (before.state !== now.state && server.taskState === null)
      this.#compute('instance.power_on.end', now.host, server);
    // A conductor saves for a compute, and sends this notification in its place.
    const moved = before === undefined || before.state !== now.state || before.host !== now.host;
    this.#send('instance.update', moved ? 'nova-compute:conductor-1' : 'nova-api:api-1', server);
  }

  #alive(name: string): boolean {
    const host = this.#cloud.hosts.get(name);
    return host?.up === true && !host.crashed;
  }

  #compute(event: string, host: string, server: Server): void {
    if (!this.#alive(host)) return;
    if (this.unversioned.has(host))
      this.#put(event, `compute.${host}`, { instance_id: server.uuid, host: hostOf(server) });
    else this.#send(event, `nova-compute:${host}`, server);
  }

  #send(event: string, publisher: string, server: Server): void {
    this.#put(event, publisher, {
      'nova_object.name': 'InstanceActionPayload',
      'nova_object.data': { uuid: server.uuid, host: hostOf(server) },
    });
  }

  #put(event: string, publisher: string, payload: object): void {
    const message = {
      message_id: `m-${++this.#serial}`,
      publisher_id: publisher,
      event_type: event,
      priority: 'INFO',
      payload,
    };
    this.#publish(encoder.encode(JSON.stringify({ 'oslo.version': '2.0', 'oslo.message': JSON.stringify(message) })));
  }
}
