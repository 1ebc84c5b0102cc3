import { BadAnswer } from './errors.ts';
import { type CallOptions, MAX_RESTARTS, type NovaTransport } from './novaTransport.ts';
import type { Aggregate, ComputeService, Hypervisor, NamedFlavor, ServerGroup } from './novaTypes.ts';
import { aggregatesSchema, flavorsSchema, hypervisorsSchema, serverGroupsSchema, servicesSchema } from './novaWire.ts';
import { Pages } from './paging.ts';

/** Hosts, flavors and groups. */
export interface NovaCloud {
  listAggregates(options?: CallOptions): Promise<Aggregate[]>;
  /** The nova-compute services of all cells. */
  listServices(options?: CallOptions): Promise<ComputeService[]>;
  listHypervisors(options?: CallOptions): Promise<Hypervisor[]>;
  /** Every flavor, private ones too. */
  listFlavors(options?: CallOptions): Promise<NamedFlavor[]>;
  /** Groups of all projects. */
  listServerGroups(options?: CallOptions): Promise<ServerGroup[]>;
}

/** The reads of the cloud's lists. A list whose pages repeat is a BadAnswer. */
export function novaCloud({ pageSize, get, byMarker }: NovaTransport): NovaCloud {
  return {
    async listAggregates({ signal } = {}) {
      return (await get('listAggregates', aggregatesSchema, { route: '/os-aggregates', signal })).aggregates;
    },

    async listServices({ signal } = {}) {
      const query = { binary: 'nova-compute' };
      return (await get('listServices', servicesSchema, { route: '/os-services', query, signal })).services;
    },

    listHypervisors: ({ signal } = {}) =>
      byMarker(
        '/os-hypervisors/detail',
        async (marker, limit) => {
          const route = '/os-hypervisors/detail';
          const query = { limit, marker };
          const body = await get('listHypervisors', hypervisorsSchema, { route, query, signal });
          return { rows: body.hypervisors, more: body.hypervisors_links };
        },
        (hypervisor) => hypervisor.id,
      ),

    listFlavors: ({ signal } = {}) =>
      byMarker(
        '/flavors/detail',
        async (marker, limit) => {
          const route = '/flavors/detail';
          // Without `is_public` Nova leaves out the private ones.
          const query = { is_public: 'None', sort_key: 'flavorid', limit, marker };
          const body = await get('listFlavors', flavorsSchema, { route, query, signal });
          return { rows: body.flavors, more: body.flavors_links };
        },
        (flavor) => flavor.id,
      ),

    async listServerGroups({ signal } = {}) {
      // Nova pages groups by offset: when one is deleted meanwhile, the rest move up and one would be missed. So each page
      // begins with the last group of the page before it; if it does not, the list changed and is restarted.
      for (let restart = 0; ; restart += 1) {
        const all: ServerGroup[] = [];
        const pages = new Pages({ service: 'nova', url: '/os-server-groups' });
        for (;;) {
          const overlap = all.length === 0 ? 0 : 1;
          const query = { all_projects: true, limit: pageSize, offset: all.length - overlap };
          const route = '/os-server-groups';
          const body = await get('listServerGroups', serverGroupsSchema, { route, query, signal });
          const rows = body.server_groups;
          if (overlap === 1 && rows[0]?.id !== all.at(-1)?.id) break;
          for (const group of rows.slice(overlap)) all.push(group);
          const last = all.at(-1);
          if (rows.length <= overlap || last === undefined) return all;
          pages.follow(all.length, last.id);
        }
        if (restart >= MAX_RESTARTS) {
          const place = { service: 'nova', method: 'GET', url: '/os-server-groups' };
          throw new BadAnswer(place, `the list changed during each of ${MAX_RESTARTS + 1} readings`, 'server_groups');
        }
      }
    },
  };
}
