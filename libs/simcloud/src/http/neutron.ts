import type { Cloud } from '../cloud.ts';
import type { Port, Server } from '../model.ts';
import { type Call, json, type Reply } from './exchange.ts';
import { denied, type Keystone } from './identity.ts';

const EXTENSIONS = ['binding', 'port-resource-request', 'port-resource-request-groups'];

/** Neutron's API as far as a port decides where its server may go. Only administrators see bindings and resource requests. */
export class NeutronApi {
  readonly #cloud: Cloud;
  readonly #identity: Keystone;
  readonly #keystone: () => string;

  constructor(cloud: Cloud, identity: Keystone, keystone: () => string) {
    this.#cloud = cloud;
    this.#identity = identity;
    this.#keystone = keystone;
  }

  answer(call: Call): Reply {
    const token = this.#identity.check(call.headers['x-auth-token'], call.nowMs);
    if (token === undefined) return denied(call, this.#keystone());
    if (call.method !== 'GET')
      return failure(405, 'HTTPMethodNotAllowed', `The simulated Neutron does not know ${call.method}.`);
    if (call.path === '/v2.0/extensions')
      return json(200, { extensions: EXTENSIONS.map((alias) => ({ alias, name: alias, links: [] })) });
    if (call.path !== '/v2.0/ports') return failure(404, 'HTTPNotFound', 'The resource could not be found.');
    const sees = token.user.roles.some((role) => role === 'admin' || role === 'kronos_reader');
    const ids = call.query.getAll('device_id');
    const marker = call.query.get('marker') ?? '';
    const limit = Number(call.query.get('limit') ?? this.#cloud.scenario.maxLimit);
    const ports = [...this.#cloud.servers.values()]
      .filter(({ uuid }) => ids.length === 0 || ids.includes(uuid))
      .flatMap((server) => server.ports.map((port) => view(server, port, sees)))
      .filter(({ id }) => id > marker)
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit);
    return json(200, { ports });
  }
}

function view(server: Server, { id, mac, vnicType, minKbps }: Port, sees: boolean) {
  const request =
    minKbps === null
      ? null
      : {
          request_groups: [{ id, required: [], resources: { NET_BW_EGR_KILOBIT_PER_SEC: minKbps } }],
          same_subtree: [id],
        };
  return {
    id,
    device_id: server.uuid,
    mac_address: mac,
    device_owner: 'compute:nova',
    project_id: server.projectId,
    status: 'ACTIVE',
    ...(sees ? { 'binding:vnic_type': vnicType, resource_request: request } : {}),
  };
}

const failure = (status: number, type: string, message: string): Reply =>
  json(status, { NeutronError: { type, message, detail: '' } });
