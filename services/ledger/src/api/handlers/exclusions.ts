import { byText } from '@kronos/contracts';
import type { ApiContext, Handlers } from '../context.ts';
import { namesFromLog } from '../names.ts';
import { limitOf } from '../query.ts';
import { cooldownPage, quarantinePage } from '../stateJson.ts';

/** Quarantines and cooldowns: what excludes VMs, hosts and aggregates from moves. */
export const exclusionsHandlers = ({ input, lookups }: ApiContext): Pick<Handlers, 'quarantine' | 'cooldowns'> => ({
  async quarantine({ query }) {
    const nowMs = input.clock();
    const rows = lookups.chosen(query).flatMap((state) => quarantinePage(state, nowMs));
    const nameless = rows.flatMap(({ serverId, serverName }) => (serverName === null ? [serverId] : []));
    const nameOf = await namesFromLog(nameless, lookups.names(), input.names);
    return { quarantine: rows.map((row) => ({ ...row, serverName: row.serverName ?? nameOf(row.serverId) })) };
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
