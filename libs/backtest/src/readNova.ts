/** Reads what Nova and Placement have of the past. */

import type { Clock } from '@kronos/clock';
import { errorText } from '@kronos/contracts';
import { CapacityReader, createLimiter, type ObserveOptions, topologyOf } from '@kronos/observation';
import type { InstanceAction, Migration, Nova, Placement, Server } from '@kronos/openstack';
import { changedSince, needsEvents } from './lives.ts';
import type { NovaHistory } from './past.ts';
import type { Throttle } from './throttle.ts';

export type ReadNovaInput = {
  readonly nova: Pick<
    Nova,
    | 'listAggregates'
    | 'listServices'
    | 'listHypervisors'
    | 'listServerGroups'
    | 'listServers'
    | 'listMigrations'
    | 'listInstanceActions'
    | 'getInstanceAction'
  >;
  readonly placement: Placement;
  readonly clock: Clock;
  /** Start of the range, ms since the epoch. */
  readonly sinceMs: number;
  readonly scope: readonly string[];
  readonly options: ObserveOptions;
  readonly pace: Throttle;
  readonly signal: AbortSignal;
  readonly onProgress: (done: number, total: number) => void;
};

/** Calls at a time. */
const CONCURRENCY = 4;

/**
 * Everything of Nova's that a backtest needs. Actions that cannot be read are counted, not guessed.
 *
 * @throws the errors of the Nova client where a list cannot be read, and the signal's reason when it aborts
 */
export async function readNova(input: ReadNovaInput): Promise<NovaHistory> {
  const { nova, clock, sinceMs, scope, options, signal } = input;
  const readMs = clock.now();
  const since = `${new Date(sinceMs).toISOString().slice(0, 19)}Z`;
  const aggregates = await nova.listAggregates({ signal });
  const services = await nova.listServices({ signal });
  const hypervisors = await nova.listHypervisors({ signal });
  const serverGroups = await nova.listServerGroups({ signal });
  // The changed ones last: a server that is deleted between the two lists is in the second.
  const alive = await nova.listServers({}, { signal });
  const changed = await nova.listServers({ changesSince: since }, { signal });
  const migrations = await nova.listMigrations({ changesSince: since }, { signal });
  const servers = [...new Map([...alive, ...changed].map((one) => [one.id, one])).values()].filter(
    ({ cellDown }) => !cellDown,
  );
  const failures: string[] = [];
  const actions = await readActions(input, servers, failures);
  const rows = Map.groupBy(migrations, ({ serverId }) => serverId);
  const lists = {
    aggregates: { ok: true, value: aggregates },
    services: { ok: true, value: services },
    hypervisors: { ok: true, value: hypervisors },
  } as const;
  const reader = new CapacityReader(input.placement, CONCURRENCY, clock);
  const capacity: NovaHistory['capacity'][number][] = [];
  for (const aggregate of scope) {
    const { providers } = await reader.read(topologyOf(lists, aggregate, scope, options), signal);
    capacity.push(...providers);
  }
  return {
    readMs,
    sinceMs,
    aggregates,
    services,
    hypervisors,
    serverGroups,
    records: servers.map((server) => recordOf(server, rows, actions)),
    capacity,
    failures,
  };
}

const recordOf = (
  server: Server,
  rows: ReadonlyMap<string, readonly Migration[]>,
  actions: ReadonlyMap<string, readonly InstanceAction[] | null>,
): NovaHistory['records'][number] => ({
  server,
  migrations: rows.get(server.id) ?? [],
  actions: actions.get(server.id) ?? [],
  ...(actions.get(server.id) === null ? { actionsUnread: true } : {}),
});

/** The actions of the servers about which something changed; those that tell of a move with their events. */
async function readActions(
  { nova, sinceMs, pace, signal, onProgress }: ReadNovaInput,
  servers: readonly Server[],
  failures: string[],
): Promise<Map<string, InstanceAction[] | null>> {
  const limit = createLimiter(CONCURRENCY);
  const wanted = servers.filter((server) => changedSince(server, sinceMs));
  const found = new Map<string, InstanceAction[] | null>();
  let done = 0;
  await Promise.all(
    wanted.map((server) =>
      limit(async () => {
        try {
          await pace(signal);
          const listed = await nova.listInstanceActions(server.id, { signal });
          const recent = listed.filter(({ startedAt }) => Date.parse(startedAt) >= sinceMs);
          const whole: InstanceAction[] = [];
          for (const action of recent) {
            if (!needsEvents({ server }, action)) {
              whole.push(action);
              continue;
            }
            await pace(signal);
            whole.push(await nova.getInstanceAction(server.id, action.requestId, { signal }));
          }
          found.set(server.id, whole);
        } catch (error) {
          signal.throwIfAborted();
          found.set(server.id, null);
          failures.push(`actions of server ${server.id}: ${errorText(error)}`);
        }
        done += 1;
        onProgress(done, wanted.length);
      }),
    ),
  );
  return found;
}
