import { systemClock } from '@kronos/clock';
import { parseAs, safeUrl } from '@kronos/http';
import { z } from 'zod';
import { type Api, createApi, type Query } from './api.ts';
import type { CallOptions } from './novaTransport.ts';
import type { Session } from './session.ts';

/** A port of a server, as far as it decides where the server may go. */
export interface Port {
  readonly id: string;
  readonly serverId: string;
  /** `normal`, `direct`, `macvtap`, `accelerator-direct` ...; `normal` where Neutron has no port bindings. */
  readonly vnicType: string;
  /** It asks Placement for resources, such as a guaranteed bandwidth. */
  readonly requestsResources: boolean;
}

export interface Neutron {
  /**
   * The ports of these servers.
   *
   * @throws EndpointNotFound where the catalog has no network service; BadAnswer where Neutron hides an attribute from this user
   */
  listPorts(serverIds: readonly string[], options?: CallOptions): Promise<Port[]>;
}

/** Ids in one request: they are part of its URL. */
const SERVERS_AT_ONCE = 50;
const PAGE = 500;

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

/** Whether an extension is loaded decides whether its attribute must be there. */
const portsSchema = (aliases: ReadonlySet<string>) =>
  z.object({
    ports: z.array(
      z
        .object({
          id: z.string(),
          device_id: z.string(),
          'binding:vnic_type': aliases.has('binding')
            ? z.string(visible('binding:vnic_type'))
            : z.string().default('normal'),
          resource_request: z.unknown().optional(),
        })
        .refine((raw) => !aliases.has('port-resource-request') || raw.resource_request !== undefined, {
          path: ['resource_request'],
          message: 'missing; the user needs the policy get_port:resource_request',
        })
        .transform(
          (raw): Port => ({
            id: raw.id,
            serverId: raw.device_id,
            vnicType: raw['binding:vnic_type'],
            requestsResources: requestSchema.parse(raw.resource_request),
          }),
        ),
    ),
  });

export function createNeutron(session: Session, options: { readonly monotonic?: () => number } = {}): Neutron {
  const api: Api = createApi(
    session,
    { service: 'neutron', serviceType: 'network', versionPath: 'v2.0', versionId: /^v2\.0$/, headers: () => ({}) },
    options.monotonic ?? (() => systemClock.monotonic()),
  );

  async function get<S extends z.ZodType>(
    schema: S,
    path: string,
    query: Query,
    devices: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<z.infer<S>> {
    const prepared = await api.prepare({ method: 'GET', path, route: `/${path}`, version: '', query, signal });
    const url = new URL(prepared.url);
    for (const id of devices) url.searchParams.append('device_id', id);
    const answer = await session.call({ ...prepared, url: url.href });
    return parseAs({ service: 'neutron', method: 'GET', url: safeUrl(prepared.url) }, schema, answer.text);
  }

  return {
    async listPorts(serverIds, { signal } = {}) {
      const { extensions } = await get(extensionsSchema, 'extensions', {}, [], signal);
      const schema = portsSchema(new Set(extensions.map(({ alias }) => alias)));
      const found: Port[] = [];
      for (let i = 0; i < serverIds.length; i += SERVERS_AT_ONCE) {
        const ids = serverIds.slice(i, i + SERVERS_AT_ONCE);
        const asked = new Set(ids);
        for (let marker: string | undefined; ; ) {
          const { ports } = await get(schema, 'ports', { limit: PAGE, marker, sort_key: 'id' }, ids, signal);
          // The port was attached to another server meanwhile.
          found.push(...ports.filter((port) => asked.has(port.serverId)));
          marker = ports.at(-1)?.id;
          // A page may be shorter than asked for, by Neutron's pagination_max_limit: only an empty one is the last.
          if (marker === undefined) break;
        }
      }
      return found;
    },
  };
}
