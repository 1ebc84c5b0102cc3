import { z } from 'zod';
import { type Api, createApi, type GetRequest } from './api.ts';
import { atLeastMicroversion, type VersionNeed, type VersionRange } from './microversion.ts';
import type { CallOptions } from './novaTransport.ts';
import type { Session } from './session.ts';

/** Resource class to amount, e.g. `{VCPU: 4, MEMORY_MB: 8192}`. */
type Resources = Readonly<Record<string, number>>;

/**
 * The microversions of each call. Source: Placement's REST API version history. 1.17 is Queens, 1.30 Rocky, 1.31 Stein,
 * 1.36 Train.
 */
const PLACEMENT_CALLS = {
  /** 1.17 traits; 1.29 nested providers; 1.31 `in_tree` (below it this client picks the tree out of all candidates). */
  allocationCandidates: { lowest: '1.17', highest: '1.36' },
  /** 1.21 `member_of`. */
  allocationCandidatesInAggregate: { lowest: '1.21', highest: '1.36' },
  /** 1.22 traits that must not be there. */
  allocationCandidatesWithout: { lowest: '1.22', highest: '1.36' },
  getInventories: { lowest: '1.0', highest: '1.36' },
  getUsages: { lowest: '1.9', highest: '1.36' },
  /** 1.6 traits. */
  getTraits: { lowest: '1.6', highest: '1.36' },
  getProviderAllocations: { lowest: '1.0', highest: '1.36' },
} as const satisfies Readonly<Record<string, VersionNeed>>;

interface CandidateRequest {
  readonly resources: Resources;
  /** Only the tree of this provider (uuid of a hypervisor). */
  readonly inTree?: string;
  /** Only providers in any of these Placement aggregates (uuids of Nova aggregates). */
  readonly memberOf?: readonly string[];
  /** Traits that must be there. */
  readonly required?: readonly string[];
  /** Traits that must not be there. */
  readonly forbidden?: readonly string[];
  /** Maximum number of allocation requests. */
  readonly limit?: number;
}

export interface ProviderSummary {
  readonly id: string;
  readonly rootId: string;
  /** `capacity` = (total - reserved) x allocation_ratio; every class of the provider, also those not asked for. */
  readonly resources: Readonly<Record<string, { readonly capacity: number; readonly used: number }>>;
  readonly traits: readonly string[];
}

interface AllocationCandidates {
  /** 0 means that the resources fit nowhere that was asked for. */
  readonly allocationRequestCount: number;
  /** By provider id. Only trees that can hold the resources: a full host is not in it. */
  readonly providers: Readonly<Record<string, ProviderSummary>>;
}

export interface ProviderInventory {
  readonly total: number;
  readonly reserved: number;
  readonly allocationRatio: number;
  readonly minUnit: number;
  readonly maxUnit: number;
  readonly stepSize: number;
  /** (total - reserved) x allocationRatio, rounded down as Placement does. */
  readonly capacity: number;
}

export interface Placement {
  versions(options?: CallOptions): Promise<VersionRange>;
  versionFor(call: keyof typeof PLACEMENT_CALLS, options?: CallOptions): Promise<string>;
  allocationCandidates(request: CandidateRequest, options?: CallOptions): Promise<AllocationCandidates>;
  /** By resource class. @throws NotFound */
  getInventories(providerId: string, options?: CallOptions): Promise<Readonly<Record<string, ProviderInventory>>>;
  /** Amount used by resource class. @throws NotFound */
  getUsages(providerId: string, options?: CallOptions): Promise<Resources>;
  /** @throws NotFound */
  getTraits(providerId: string, options?: CallOptions): Promise<string[]>;
  /**
   * Resources by consumer. While a server live-migrates, the source's share is held by the migration's uuid and the
   * destination's by the server's uuid. @throws NotFound
   */
  getProviderAllocations(providerId: string, options?: CallOptions): Promise<Readonly<Record<string, Resources>>>;
}

const amounts = z.record(z.string(), z.number());

const candidatesSchema = z.object({
  allocation_requests: z.array(z.object({ allocations: z.record(z.string(), z.object({ resources: amounts })) })),
  provider_summaries: z.record(
    z.string(),
    z.object({
      resources: z.record(z.string(), z.object({ capacity: z.number(), used: z.number() })),
      traits: z.array(z.string()).default([]),
      // Below 1.29 there are no trees: each provider is its own root.
      root_provider_uuid: z.string().nullish(),
    }),
  ),
});

const inventoriesSchema = z.object({
  inventories: z.record(
    z.string(),
    z
      .object({
        total: z.number(),
        reserved: z.number(),
        allocation_ratio: z.number(),
        min_unit: z.number(),
        max_unit: z.number(),
        step_size: z.number(),
      })
      .transform(
        (raw): ProviderInventory => ({
          total: raw.total,
          reserved: raw.reserved,
          allocationRatio: raw.allocation_ratio,
          minUnit: raw.min_unit,
          maxUnit: raw.max_unit,
          stepSize: raw.step_size,
          capacity: Math.floor((raw.total - raw.reserved) * raw.allocation_ratio),
        }),
      ),
  ),
});

const usagesSchema = z.object({ usages: amounts });
const traitsSchema = z.object({ traits: z.array(z.string()) });
const allocationsSchema = z.object({ allocations: z.record(z.string(), z.object({ resources: amounts })) });

/** A client of Placement on a session. Its calls throw as {@link Session.call} says. */
export function createPlacement(session: Session): Placement {
  const api: Api = createApi(session, {
    service: 'placement',
    serviceType: 'placement',
    versionPath: '',
    versionId: /^v1(\.\d+)?$/,
    headers: (version) => ({ 'openstack-api-version': `placement ${version}` }),
  });

  const versionFor = (call: keyof typeof PLACEMENT_CALLS, signal?: AbortSignal): Promise<string> =>
    api.negotiated(call, PLACEMENT_CALLS[call], signal);

  async function get<S extends z.ZodType>(
    call: keyof typeof PLACEMENT_CALLS,
    schema: S,
    request: GetRequest,
  ): Promise<z.infer<S>> {
    return api.get(schema, { ...request, version: await versionFor(call, request.signal) });
  }

  const ofProvider = (id: string, what: string, signal: AbortSignal | undefined): GetRequest => ({
    route: `/resource_providers/{id}/${what}`,
    path: `resource_providers/${encodeURIComponent(id)}/${what}`,
    signal,
  });

  return {
    versions: ({ signal } = {}) => api.versions(signal),
    versionFor: (call, { signal } = {}) => versionFor(call, signal),

    async allocationCandidates(request, { signal } = {}) {
      const call = candidatesCall(request);
      const inTreeKnown = atLeastMicroversion(await versionFor(call, signal), '1.31');
      const traits = [...(request.required ?? []), ...(request.forbidden ?? []).map((trait) => `!${trait}`)];
      const query = {
        resources: resourcesParameter(request.resources),
        in_tree: inTreeKnown ? request.inTree : undefined,
        member_of: anyOf(request.memberOf),
        required: traits.length === 0 ? undefined : traits.join(','),
        limit: request.inTree === undefined || inTreeKnown ? request.limit : undefined,
      };
      const route = '/allocation_candidates';
      const body = await get(call, candidatesSchema, { route, query, signal });
      return candidatesOf(body, inTreeKnown ? undefined : request.inTree);
    },

    async getInventories(id, { signal } = {}) {
      return (await get('getInventories', inventoriesSchema, ofProvider(id, 'inventories', signal))).inventories;
    },

    async getUsages(id, { signal } = {}) {
      return (await get('getUsages', usagesSchema, ofProvider(id, 'usages', signal))).usages;
    },

    async getTraits(id, { signal } = {}) {
      return (await get('getTraits', traitsSchema, ofProvider(id, 'traits', signal))).traits;
    },

    async getProviderAllocations(id, { signal } = {}) {
      const body = await get('getProviderAllocations', allocationsSchema, ofProvider(id, 'allocations', signal));
      return Object.fromEntries(Object.entries(body.allocations).map(([holder, { resources }]) => [holder, resources]));
    },
  };
}

/** @param inTree leave out all but the tree of this provider; undefined: Placement has done so, or nobody asked */
function candidatesOf(body: z.infer<typeof candidatesSchema>, inTree: string | undefined): AllocationCandidates {
  const providers: Record<string, ProviderSummary> = {};
  for (const [id, raw] of Object.entries(body.provider_summaries)) {
    const rootId = raw.root_provider_uuid ?? id;
    if (inTree !== undefined && rootId !== inTree) continue;
    const { resources, traits } = raw;
    providers[id] = { id, rootId, resources, traits };
  }
  const requests = body.allocation_requests.filter(({ allocations }) =>
    Object.keys(allocations).some((id) => providers[id] !== undefined),
  );
  return { allocationRequestCount: requests.length, providers };
}

function candidatesCall(request: CandidateRequest): keyof typeof PLACEMENT_CALLS {
  if (request.forbidden !== undefined && request.forbidden.length > 0) return 'allocationCandidatesWithout';
  if (request.memberOf !== undefined && request.memberOf.length > 0) return 'allocationCandidatesInAggregate';
  return 'allocationCandidates';
}

/** `VCPU:4,MEMORY_MB:8192`; Placement refuses an amount of 0, so such classes are left out. */
function resourcesParameter(resources: Resources): string {
  return Object.entries(resources)
    .filter(([, amount]) => amount > 0)
    .map(([name, amount]) => `${name}:${amount}`)
    .join(',');
}

function anyOf(ids: readonly string[] | undefined): string | undefined {
  if (ids === undefined || ids.length === 0) return undefined;
  return `in:${ids.join(',')}`;
}
