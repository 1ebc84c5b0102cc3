/** Reads what the snapshot of one aggregate needs besides the observation of the whole cloud. */
import type { Clock } from '@kronos/clock';
import type { Policy } from '@kronos/contracts';
import type { Placement } from '@kronos/openstack';
import type { AssembleInput } from './assemble.ts';
import type { Capacity, ReadOptions } from './cloud.ts';
import { CapacityReader } from './collect.ts';
import { CellReader, type CellReaderDeps, exporterLabels } from './hostCells.ts';
import { PortReader, type PortReaderDeps } from './ports.ts';
import type { Observation } from './readCloud.ts';
import { topologyOf } from './topology.ts';

export type AggregateReaderDeps = Omit<CellReaderDeps, 'labels'> &
  Pick<PortReaderDeps, 'neutron'> & {
    readonly placement: Placement;
    readonly clock: Clock;
    /** All aggregates in scope. */
    readonly scope: readonly string[];
    readonly policiesOf: (aggregate: string) => readonly Policy[];
    readonly observe: ReadOptions;
    /** Gets each reading of capacities, and how long it took. */
    readonly onCapacity?: (aggregate: string, capacity: Capacity, ms: number) => void;
  };

/** @throws what reading capacities throws */
export type ReadAggregate = (
  aggregate: string,
  observation: Observation,
  signal: AbortSignal,
) => Promise<Required<Pick<AssembleInput, 'capacity' | 'cells' | 'ports'>>>;

/** One for all cycles: what hardly changes is kept from one to the next. */
export function aggregateReader(deps: AggregateReaderDeps): ReadAggregate {
  const { placement, neutron, clock, concurrency, scope, policiesOf, observe, onCapacity } = deps;
  const capacityReader = new CapacityReader(placement, concurrency, clock);
  const cellReader = new CellReader({ ...deps, labels: exporterLabels(scope.flatMap(policiesOf)) });
  const portReader = new PortReader({ neutron, mode: observe.sriovPorts, clock });
  return async (aggregate, observation, signal) => {
    const topology = topologyOf(observation.lists, aggregate, scope, observe);
    const readFrom = clock.now();
    const capacity = await capacityReader.read(topology, signal);
    onCapacity?.(aggregate, capacity, clock.now() - readFrom);
    const cells = await cellReader.read({ ...observation, hosts: topology.hosts, capacity }, signal);
    return { capacity, cells, ports: await portReader.read(observation.index, signal) };
  };
}
