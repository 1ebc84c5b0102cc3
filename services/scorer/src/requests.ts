/** Which snapshots are asked for. Pure. */
import {
  ALL,
  type CapacityReading,
  type CellsAsked,
  type Control,
  capacityAskedSchema,
  cellsAskedSchema,
  commandSnapshotId,
  cycleSnapshotId,
  type Snapshot,
} from '@kronos/contracts';

/** One snapshot to be taken. */
export interface SnapshotRequest {
  readonly aggregate: string;
  readonly id: string;
  readonly purpose: Snapshot['purpose'];
  /** The cycle that its id names; null for a command's: the cycle in which it is observed. */
  readonly cycle: number | null;
  /** Groups what the snapshot leads to: its own id, or the command's. */
  readonly correlationId: string;
  /** The command's message; null for a cycle. */
  readonly causationId: string | null;
  /** Trace context of the command. */
  readonly traceparent: string | null;
  /** The moves between cells that the command asks for; absent for any other. */
  readonly cells?: { readonly commandId: string; readonly asked: CellsAsked };
  /** The room that the command asks for; absent for any other. */
  readonly capacity?: CapacityReading;
}

/** The snapshot of a cycle. */
export function cycleRequest(aggregate: string, cycle: number): SnapshotRequest {
  const id = cycleSnapshotId(aggregate, cycle);
  return { aggregate, id, purpose: 'cycle', cycle, correlationId: id, causationId: null, traceparent: null };
}

/** The snapshots that a command asks for: of its aggregate, or of every one in scope; none for any other command. */
export function commandRequests(
  control: Control,
  traceparent: string | null,
  scope: readonly string[],
): SnapshotRequest[] {
  if (control.type === 'cells.moveAsked' || control.type === 'capacity.asked') {
    const { aggregate, correlationId, id: causationId, data } = control;
    if (!scope.includes(aggregate)) return [];
    const { commandId } = data;
    const id = commandSnapshotId(aggregate, commandId);
    const common = { aggregate, id, cycle: null, correlationId, causationId, traceparent };
    return control.type === 'cells.moveAsked'
      ? [{ ...common, purpose: 'cells', cells: { commandId, asked: cellsAskedSchema.parse(data) } }]
      : [{ ...common, purpose: 'capacity', capacity: { commandId, asked: capacityAskedSchema.parse(data) } }];
  }
  if (control.type !== 'evaluation.requested') return [];
  const aggregates = control.aggregate === ALL ? scope : scope.filter((one) => one === control.aggregate);
  return aggregates.map((aggregate) => ({
    aggregate,
    id: commandSnapshotId(aggregate, control.data.commandId),
    purpose: control.data.purpose === 'record' ? 'record' : 'command',
    cycle: null,
    correlationId: control.correlationId,
    causationId: control.id,
    traceparent,
  }));
}
