import { byText } from '@kronos/contracts';
import { limitOf } from '../answer.ts';
import type { ApiContext, Handlers } from '../context.ts';
import { cooldownPage, quarantinePage } from '../stateJson.ts';

/** Quarantines and cooldowns: what excludes VMs, hosts and aggregates from moves. */
export const exclusionsHandlers = ({ input, lookups }: ApiContext): Pick<Handlers, 'quarantine' | 'cooldowns'> => ({
  async quarantine({ query }) {
    const nameOf = lookups.names();
    const rows = lookups.chosen(query).flatMap((state) => quarantinePage(state, input.clock(), nameOf));
    // A person can quarantine a VM that no plan has named.
    const named = await input.names.named(rows.flatMap((q) => (q.serverName === null ? [q.serverId] : [])));
    return { quarantine: rows.map((q) => ({ ...q, serverName: q.serverName ?? named.get(q.serverId) ?? null })) };
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
