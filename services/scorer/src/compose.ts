/** Makes the snapshot that a request asks for out of one observation. */
import { type EndedMigration, iso, type Snapshot } from '@kronos/contracts';
import {
  aggregateReader,
  assemble,
  type Capacity,
  endedOf,
  type Fetched,
  type KnownServer,
  type Observation,
  type ReadHistory,
  readCells,
} from '@kronos/observation';
import type { ScorerDeps } from './deps.ts';
import type { SnapshotRequest } from './requests.ts';
import { cycleAt } from './schedule.ts';

/** The readings for the snapshots of a cycle. */
export type CycleReadings = Observation & {
  readonly history: ReadHistory | null;
  /** The migrations that Nova completed; null: nobody asked. */
  readonly ended: Fetched<readonly EndedMigration[]> | null;
};

/** @throws what reading capacities and, for a plan between cells, volumes and ports throws */
export type Compose = {
  readonly snapshot: (
    request: SnapshotRequest,
    observation: CycleReadings,
    known: readonly KnownServer[],
    signal: AbortSignal,
  ) => Promise<Snapshot>;
  /** By aggregate, the last reading of its capacity. */
  readonly capacities: () => ReadonlyMap<string, Capacity>;
  /** How long that took in the aggregate where it took longest, in ms; undefined: nothing was read yet. */
  readonly capacityMs: () => number | undefined;
};

/** One aggregate of a request, and the servers that it had before. */
type Asked = {
  readonly request: SnapshotRequest;
  readonly aggregate: string;
  readonly known: readonly KnownServer[];
};

export function createCompose(
  deps: Pick<ScorerDeps, 'nova' | 'neutron' | 'placement' | 'prometheus' | 'settings' | 'clock' | 'metrics'>,
): Compose {
  const { settings, clock, metrics } = deps;
  const capacities = new Map<string, Capacity>();
  const tookMs = new Map<string, number>();
  const readAggregate = aggregateReader({
    ...deps,
    ...settings,
    file: settings.hostCells,
    onCapacity(aggregate, capacity, ms) {
      capacities.set(aggregate, capacity);
      tookMs.set(aggregate, ms);
      const outcome = capacity.failures.size === 0 ? 'read' : 'failed';
      metrics.collectDuration.record(ms / 1000, { part: 'capacity', outcome });
    },
  });

  /** One aggregate of the observation. */
  async function assembled(
    { request, aggregate, known }: Asked,
    observation: CycleReadings,
    signal: AbortSignal,
  ): Promise<Snapshot> {
    const readings = await readAggregate(aggregate, observation, signal);
    return assemble({
      identity: {
        id: request.id,
        purpose: request.purpose,
        cycle: request.cycle ?? cycleAt(observation.fromMs, settings.intervalMs),
        intervalSeconds: settings.intervalMs / 1000,
        observedFrom: iso(observation.fromMs),
        time: iso(clock.now()),
      },
      aggregate,
      scope: settings.scope,
      options: settings.observe,
      // A plan between cells reads no metrics of the other aggregates.
      policies: aggregate === request.aggregate ? settings.policiesOf(aggregate) : [],
      balance: settings.balances(aggregate),
      ...observation,
      ...readings,
      known,
      history: settings.forecasts(aggregate) ? observation.history : null,
    });
  }

  /** The snapshot, with what a plan needs that somebody asked for. */
  async function snapshot(
    request: SnapshotRequest,
    observation: CycleReadings,
    known: readonly KnownServer[],
    signal: AbortSignal,
  ): Promise<Snapshot> {
    const { aggregate, cells, capacity } = request;
    if (cells === undefined) {
      const own = await assembled({ request, aggregate, known }, observation, signal);
      return { ...own, ...endedOf(observation.ended, own.servers), ...(capacity === undefined ? {} : { capacity }) };
    }
    const names = settings.scope.filter((one) => one !== aggregate);
    const others = await Promise.all(
      names.map((one) => assembled({ request, aggregate: one, known: [] }, observation, signal)),
    );
    const home = await assembled({ request, aggregate, known }, observation, signal);
    const { lists, index } = observation;
    const read = { ...cells, settings: settings.cells, home, others, lists, index };
    const reading = await readCells(read, deps.nova, deps.neutron, signal);
    // The last read ended now.
    return { ...home, time: iso(clock.now()), cells: reading };
  }

  return {
    snapshot,
    capacities: () => capacities,
    capacityMs: () => (tookMs.size === 0 ? undefined : Math.max(...tookMs.values())),
  };
}
