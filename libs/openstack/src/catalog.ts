import { z } from 'zod';
import { EndpointNotFound } from './errors.ts';

/** The `catalog` of a token (Identity API v3). */
export const catalogSchema = z.array(
  z.object({
    type: z.string(),
    endpoints: z
      .array(
        z.object({
          interface: z.string(),
          url: z.string(),
          region: z.string().nullish(),
          region_id: z.string().nullish(),
        }),
      )
      .default([]),
  }),
);

export type Catalog = z.infer<typeof catalogSchema>;

/** Older names under which a catalog may list a service (OpenStack service-types authority). */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  compute: ['compute', 'computev21'],
  identity: ['identity', 'identityv3'],
};

/** The interfaces that OpenStack's own services try (keystoneauth `valid_interfaces`). */
const DEFAULT_INTERFACES: readonly string[] = ['internal', 'public'];

/**
 * The endpoint of a service: the first of `interfaces` that the catalog has, in `region`. Without a region the catalog must
 * have the service in exactly one region: a guess could move servers in the wrong region.
 *
 * @throws EndpointNotFound listing what the catalog has.
 */
export function chooseEndpoint(
  catalog: Catalog,
  serviceType: string,
  interfaces: readonly string[] = DEFAULT_INTERFACES,
  region?: string,
): string {
  const names = ALIASES[serviceType] ?? [serviceType];
  const services = names.flatMap((name) => catalog.filter((entry) => entry.type === name));
  if (services.length === 0) {
    const has = [...new Set(catalog.map((entry) => entry.type))].sort().join(', ');
    throw new EndpointNotFound(
      serviceType,
      `the catalog has no service of type "${serviceType}"; it has ${has === '' ? 'none at all: is the token scoped to a project?' : has}; set an endpoint override if the service exists`,
    );
  }
  const all = services.flatMap((entry) => entry.endpoints.map((endpoint) => ({ ...endpoint, type: entry.type })));
  const listed = all.map((e) => `${e.interface} in ${e.region_id ?? e.region ?? '(no region)'}`);
  const here = all.filter((e) => region === undefined || e.region_id === region || e.region === region);
  for (const wanted of interfaces.map((name) => name.trim().replace(/URL$/, ''))) {
    const found = here.filter((e) => e.interface.replace(/URL$/, '') === wanted);
    const regions = [...new Set(found.map((e) => e.region_id ?? e.region ?? ''))];
    if (regions.length > 1) {
      throw new EndpointNotFound(
        serviceType,
        `the catalog has "${serviceType}" in several regions (${regions.sort().join(', ')}); set region_name`,
      );
    }
    if (found[0] !== undefined) return found[0].url.replace(/\/+$/, '');
  }
  throw new EndpointNotFound(
    serviceType,
    `the catalog has no "${serviceType}" endpoint with interface ${interfaces.join(' or ')}${region === undefined ? '' : ` in region ${region}`}; it has ${listed.length === 0 ? 'none' : [...new Set(listed)].join(', ')}; set valid_interfaces, region_name or endpoint_override`,
  );
}
