import { z } from 'zod';
import { type Api, createApi, type GetRequest, type Query } from './api.ts';
import type { CallOptions } from './novaTransport.ts';
import { Pages } from './paging.ts';
import type { Session } from './session.ts';

/** A port of a server, as far as it decides where the server may go. */
export interface Port {
  readonly id: string;
  readonly serverId: string;
  /** `normal`, `direct`, `macvtap`, `accelerator-direct` ...; `normal` where Neutron has no port bindings. */
  readonly vnicType: string;
  /** Its MAC address. */
  readonly mac: string;
  /** It asks Placement for resources, such as a guaranteed bandwidth. */
  readonly requestsResources: boolean;
}

type PortKind = Omit<Port, 'requestsResources'>;

export interface Neutron {
  /**
   * The ports of these servers.
   *
   * @throws EndpointNotFound where the catalog has no network service; BadAnswer where Neutron hides an attribute from this user
   */
  listPorts(serverIds: readonly string[], options?: CallOptions): Promise<Port[]>;
  /**
   * The kinds of all ports that this user may see: those of all projects for an administrator, and of its own project for others.
   *
   * @param options `serverId`: the ports of this server alone
   * @throws as `listPorts`
   */
  listPortKinds(options?: CallOptions & { readonly serverId?: string }): Promise<PortKind[]>;
}

/** Ids in one request: they are part of its URL. */
const SERVERS_AT_ONCE = 50;
const PAGE = 500;
/** Ports of a cloud, at most: a VM has several, and so have routers and networks. */
const MAX_PORTS = 2_000_000;

const extensionsSchema = z.object({ extensions: z.array(z.object({ alias: z.string() })) });

/** Neutron omits attributes that its policy hides from the user. */
const visible = (attribute: string) => ({
  error: (issue: { input?: unknown }) =>
    issue.input === undefined ? `missing; the user needs the policy get_port:${attribute}` : undefined,
});

const requestSchema = z.unknown().transform((value) => {
  if (typeof value !== 'object' || value === null) return false;
  const groups: unknown = Reflect.get(value, 'request_groups');
  // Without `port-resource-request-groups` the request itself is the object.
  return groups === undefined ? Object.keys(value).length > 0 : !Array.isArray(groups) || groups.length > 0;
});

const kindFields = (aliases: ReadonlySet<string>) => ({
  id: z.string(),
  device_id: z.string(),
  mac_address: z.string(),
  'binding:vnic_type': aliases.has('binding') ? z.string(visible('binding:vnic_type')) : z.string().default('normal'),
});

const kindOf = (raw: z.infer<z.ZodObject<ReturnType<typeof kindFields>>>): PortKind => ({
  id: raw.id,
  serverId: raw.device_id,
  vnicType: raw['binding:vnic_type'],
  mac: raw.mac_address,
});

const portKindsSchema = (aliases: ReadonlySet<string>) =>
  z.object({
    ports: z.array(z.object(kindFields(aliases)).transform(kindOf)),
  });

/** Whether an extension is loaded decides whether its attribute must be there. */
const portsSchema = (aliases: ReadonlySet<string>) =>
  z.object({
    ports: z.array(
      z
        .object({ ...kindFields(aliases), resource_request: z.unknown().optional() })
        .refine((raw) => !aliases.has('port-resource-request') || raw.resource_request !== undefined, {
          path: ['resource_request'],
          message: 'missing; the user needs the policy get_port:resource_request',
        })
        .transform(
          (raw): Port => ({
            ...kindOf(raw),
            requestsResources: requestSchema.parse(raw.resource_request),
          }),
        ),
    ),
  });

/** A client of Neutron on a session. Its calls throw as {@link Session.call} says. */
export function createNeutron(session: Session): Neutron {
  const api: Api = createApi(session, {
    service: 'neutron',
    serviceType: 'network',
    versionPath: 'v2.0',
    versionId: /^v2\.0$/,
    headers: () => ({}),
  });

  const get = <S extends z.ZodType>(schema: S, request: GetRequest): Promise<z.infer<S>> =>
    api.get(schema, { ...request, version: '' });

  async function aliases(signal: AbortSignal | undefined): Promise<ReadonlySet<string>> {
    const { extensions } = await get(extensionsSchema, { route: '/extensions', signal });
    return new Set(extensions.map(({ alias }) => alias));
  }

  async function byMarker<P extends { readonly id: string }>(
    schema: z.ZodType<{ ports: P[] }>,
    asked: Query,
    signal: AbortSignal | undefined,
  ): Promise<P[]> {
    const found: P[] = [];
    const pages = new Pages({ service: 'neutron', url: '/ports', maxRows: MAX_PORTS });
    for (let marker: string | undefined; ; ) {
      const query = { limit: PAGE, marker, sort_key: 'id', ...asked };
      const { ports } = await get(schema, { route: '/ports', query, signal });
      found.push(...ports);
      marker = ports.at(-1)?.id;
      // A page may be shorter than asked for, by Neutron's pagination_max_limit: only an empty one is the last.
      if (marker === undefined) return found;
      pages.follow(found.length, marker);
    }
  }

  return {
    async listPorts(serverIds, { signal } = {}) {
      const schema = portsSchema(await aliases(signal));
      const found: Port[] = [];
      for (let i = 0; i < serverIds.length; i += SERVERS_AT_ONCE) {
        const ids = serverIds.slice(i, i + SERVERS_AT_ONCE);
        const asked = new Set(ids);
        const ports = await byMarker(schema, { device_id: ids }, signal);
        // The port was attached to another server meanwhile.
        found.push(...ports.filter((port) => asked.has(port.serverId)));
      }
      return found;
    },

    async listPortKinds({ serverId, signal } = {}) {
      const fields = ['id', 'device_id', 'mac_address', 'binding:vnic_type'];
      const asked: Query = serverId === undefined ? { fields } : { fields, device_id: serverId };
      const ports = await byMarker(portKindsSchema(await aliases(signal)), asked, signal);
      // Ports of nothing, and one that was attached to another server meanwhile.
      return ports.filter((port) => (serverId === undefined ? port.serverId !== '' : port.serverId === serverId));
    },
  };
}
