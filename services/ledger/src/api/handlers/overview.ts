import { iso } from '@kronos/contracts';
import { alarmKey } from '@kronos/status';
import { ApiError } from '../answer.ts';
import type { ApiContext, Handlers } from '../context.ts';
import { endpoints, PREFIX } from '../endpoints.ts';

/** The installation: what it is, what is wrong with it, and the text of its runbook. */
export const overviewHandlers = ({
  input,
  lookups,
  runbook,
}: ApiContext): Pick<Handlers, 'about' | 'alarms' | 'regions' | 'runbook'> => ({
  about: () => ({
    service: 'kronos-ledger',
    version: input.version,
    sequence: input.state().sequence,
    time: lookups.now(),
    routes: Object.values(endpoints).map(({ path, query = {} }) => {
      const names = Object.keys(query);
      return `${PREFIX}${path}${names.length === 0 ? '' : `?${names.map((name) => `${name}=`).join('&')}`}`;
    }),
  }),

  async alarms() {
    const { timeMs, well, alarms, services, firstSeenMs } = await input.status();
    return {
      sequence: input.state().sequence,
      time: iso(timeMs),
      well,
      alarms: alarms.map((alarm) => ({ ...alarm, since: iso(firstSeenMs.get(alarmKey(alarm)) ?? timeMs) })),
      services:
        services?.map(({ timeMs: _, storedAtMs, ...service }) => ({
          ...service,
          reportedAt: iso(storedAtMs),
        })) ?? null,
    };
  },

  regions: async () => ({ time: lookups.now(), regions: await input.regions.read() }),

  runbook({ params: { section = '' } }) {
    const found = runbook(section);
    if (found === null)
      throw new ApiError(404, `the runbook of this installation has no section ${JSON.stringify(section)}`);
    return { section, text: found };
  },
});
