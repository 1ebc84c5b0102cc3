/** Reads Nova and Placement. A part that cannot be read is recorded as such; nothing is guessed. */

import type { Clock } from '@kronos/clock';
import { errorText } from '@kronos/contracts';
import {
  BadRequest,
  Forbidden,
  MicroversionUnsupported,
  NotFound,
  type Nova,
  type Placement,
  type ProviderSummary,
  type Server,
} from '@kronos/openstack';
import type { Capacity, CloudLists, Fate, Fetched, ProviderCapacity } from './cloud.ts';
import { inventoryOf, limitsHold, type ProviderLimits } from './inventoryOf.ts';
import { createLimiter } from './limit.ts';
import type { ServerSource } from './serverSource.ts';
import type { Topology } from './topology.ts';

/** Deleted servers that are confirmed one by one in a cycle; the rest wait for the next one. */
const MOST_FATES = 200;

/** The part's value, or why it could not be read. Ends with the signal's reason when that aborts. */
export async function fetched<T>(read: () => Promise<T>, signal: AbortSignal): Promise<Fetched<T>> {
  try {
    return { ok: true, value: await read() };
  } catch (error) {
    signal.throwIfAborted();
    return { ok: false, code: codeOf(error), text: errorText(error) };
  }
}

/** The code of an error of Kronos. */
export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'KRONOS_UNEXPECTED';

export type ListPart = keyof CloudLists;

type ListSources = {
  readonly nova: Nova;
  readonly source: Pick<ServerSource, 'read'>;
  readonly clock: Pick<Clock, 'monotonic'>;
};

/**
 * The cloud-wide lists, all at once; one that fails leaves the others alone. `timed` is told how long each took.
 *
 * @throws the signal's reason when it aborts; nothing else.
 */
export async function collectLists(
  { nova, source, clock }: ListSources,
  signal: AbortSignal,
  timed: (part: ListPart, ok: boolean, milliseconds: number) => void,
): Promise<CloudLists> {
  const read = async <T>(part: ListPart, call: () => Promise<T>): Promise<Fetched<T>> => {
    const from = clock.monotonic();
    const result = await fetched(call, signal);
    timed(part, result.ok, clock.monotonic() - from);
    return result;
  };
  const reading = read('hypervisors', () => nova.listHypervisors({ signal }));
  const readingServices = read('services', () => nova.listServices({ signal }));
  const cellsReached = async (): Promise<boolean> => {
    const listed = await readingServices;
    return listed.ok && !listed.value.some(({ cellDown }) => cellDown);
  };
  const hosts = async (): Promise<string[]> => {
    const listed = await reading;
    if (!listed.ok) throw new Error(`the hosts are not known: ${listed.text}`);
    return [...new Set(listed.value.map((one) => one.service.host))];
  };
  const [aggregates, services, hypervisors, servers, serverGroups, migrations] = await Promise.all([
    read('aggregates', () => nova.listAggregates({ signal })),
    readingServices,
    reading,
    read('servers', () => source.read(signal, { hosts, cellsReached })),
    read('serverGroups', () => nova.listServerGroups({ signal })),
    read('migrations', () => nova.listUnfinishedMigrations({ signal })),
  ]);
  return { aggregates, services, hypervisors, servers, serverGroups, migrations };
}

/** The fate of known servers that are no longer in the list: one read each, at most {@link MOST_FATES}. */
export async function collectFates(
  nova: Pick<Nova, 'getServer'>,
  ids: readonly string[],
  concurrency: number,
  signal: AbortSignal,
): Promise<Map<string, Fate>> {
  const limit = createLimiter(concurrency);
  const fates = await Promise.all(
    ids.slice(0, MOST_FATES).map((id) =>
      limit(async (): Promise<[string, Fate]> => {
        try {
          return [id, fateOf(await nova.getServer(id, { signal }))];
        } catch (error) {
          signal.throwIfAborted();
          return [id, error instanceof NotFound ? { fate: 'deleted' } : { fate: 'unknown', text: errorText(error) }];
        }
      }),
    ),
  );
  return new Map(fates);
}

/** Nova keeps a soft-deleted server for a while and shows it to those who ask for it by id. */
function fateOf(server: Server): Fate {
  if (server.status === 'DELETED' || server.status === 'SOFT_DELETED') return { fate: 'deleted' };
  return { fate: 'exists', host: server.host };
}

/** Time for which the limits of a provider (min_unit, max_unit, step_size) are used before they are read again. */
const LIMITS_KEPT_MS = 3_600_000;

/**
 * Reads capacity from Placement: one `allocation_candidates` per aggregate gives capacity, use and traits of all its
 * hosts but full ones. It does not give min_unit, max_unit and step_size: those are read per provider, kept for an hour,
 * and read again at once when a capacity changed.
 */
export class CapacityReader {
  readonly #placement: Placement;
  readonly #limit: <T>(job: () => Promise<T>) => Promise<T>;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #limits = new Map<string, { readonly limits: ProviderLimits; readonly readAt: number }>();

  constructor(placement: Placement, concurrency: number, clock: Pick<Clock, 'monotonic'>) {
    this.#placement = placement;
    this.#limit = createLimiter(concurrency);
    this.#clock = clock;
  }

  /**
   * The capacity of the hosts of one aggregate. What could not be read is not in the result.
   *
   * @throws the signal's reason when it aborts; nothing else.
   */
  async read(topology: Pick<Topology, 'hosts' | 'placementAggregate'>, signal: AbortSignal): Promise<Capacity> {
    const providers = new Map<string, ProviderCapacity>();
    const failures = new Map<string, string>();
    const ids = topology.hosts.map((host) => host.hypervisorId);
    if (ids.length === 0) return { providers, failures, failure: null };
    let failure: Capacity['failure'] = null;

    let summaries: Readonly<Record<string, ProviderSummary>> = {};
    try {
      // Every hypervisor has memory, also one whose CPUs are all pinned; one MB leaves out only the completely full.
      const request = { resources: { MEMORY_MB: 1 } };
      const { placementAggregate: uuid } = topology;
      const candidates = await this.#limit(() =>
        this.#placement.allocationCandidates(uuid === null ? request : { ...request, memberOf: [uuid] }, { signal }),
      );
      summaries = candidates.providers;
    } catch (error) {
      signal.throwIfAborted();
      // Refused: the providers may still be asked one by one. Anything else would only fail once more for each of them.
      if (!(error instanceof MicroversionUnsupported || error instanceof BadRequest || error instanceof Forbidden)) {
        for (const id of ids) failures.set(id, errorText(error));
        return { providers, failures, failure: { code: codeOf(error), text: errorText(error) } };
      }
    }
    await Promise.all(
      ids.map(async (id) => {
        try {
          const summary = Object.hasOwn(summaries, id) ? summaries[id] : undefined;
          providers.set(
            id,
            await (summary === undefined ? this.#alone(id, signal) : this.#summed(id, summary, signal)),
          );
        } catch (error) {
          signal.throwIfAborted();
          failures.set(id, error instanceof NotFound ? 'Placement has no provider for it' : errorText(error));
          if (!(error instanceof NotFound)) failure ??= { code: codeOf(error), text: errorText(error) };
        }
      }),
    );
    return { providers, failures, failure };
  }

  /** A provider that is in the summaries. */
  async #summed(id: string, summary: ProviderSummary, signal: AbortSignal): Promise<ProviderCapacity> {
    const kept = this.#limits.get(id);
    const current =
      kept !== undefined && this.#clock.monotonic() - kept.readAt < LIMITS_KEPT_MS && limitsHold(kept.limits, summary);
    const limits = current ? kept.limits : await this.#readLimits(id, signal);
    return { inventory: inventoryOf(limits, summary.resources), traits: [...summary.traits].sort() };
  }

  /** A provider that is not: full, not mirrored into the Placement aggregate, or without candidates on this cloud. */
  async #alone(id: string, signal: AbortSignal): Promise<ProviderCapacity> {
    const [limits, usages, traits] = await Promise.all([
      this.#readLimits(id, signal),
      this.#limit(() => this.#placement.getUsages(id, { signal })),
      fetched(() => this.#limit(() => this.#placement.getTraits(id, { signal })), signal),
    ]);
    const amounts = Object.entries(limits).map(([name, { capacity }]) => [
      name,
      { capacity, used: (Object.hasOwn(usages, name) ? usages[name] : undefined) ?? 0 },
    ]);
    const inventory = inventoryOf(limits, Object.fromEntries(amounts));
    return { inventory, traits: traits.ok ? [...traits.value].sort() : null };
  }

  async #readLimits(id: string, signal: AbortSignal): Promise<ProviderLimits> {
    const limits = await this.#limit(() => this.#placement.getInventories(id, { signal }));
    this.#limits.set(id, { limits, readAt: this.#clock.monotonic() });
    return limits;
  }
}
