import { byText } from '@kronos/contracts';
import { limitOf } from '../answer.ts';
import type { ApiContext, Handlers } from '../context.ts';
import { type NameOf, namesOf } from '../names.ts';
import { cooldownPage, quarantinePage } from '../stateJson.ts';

/** Quarantines and cooldowns: what excludes VMs, hosts and aggregates from moves. */
export const exclusionsHandlers = ({ input, lookups }: ApiContext): Pick<Handlers, 'quarantine' | 'cooldowns'> => ({
  async quarantine({ query }) {
    const states = lookups.chosen(query);
    const nowMs = input.clock();
    const rows = (nameOf?: NameOf) => states.flatMap((state) => quarantinePage(state, nowMs, nameOf));
    const ids = rows().map(({ serverId }) => serverId);
    return { quarantine: rows(await namesOf(ids, lookups.names(), input.names)) };
  },

  cooldowns({ query }) {
    const nameOf = lookups.names();
    const pages = lookups.chosen(query).map((state) => cooldownPage(state, input.clock(), nameOf));
    const vms = pages.flatMap((page) => page.vms).sort((a, b) => byText(a.until, b.until));
    return {
      aggregates: pages.flatMap(({ aggregate }) => aggregate ?? []),
      hosts: pages.flatMap(({ hosts }) => hosts),
      total: vms.length,
      vms: vms.slice(0, limitOf(query)),
    };
  },
});
