import type { Party } from './parties.ts';
import { formerCodes, sharedReasons as shared } from './sharedReasons.ts';

/**
 * The attempt that can follow. `destination`: the next alternate at once. `infrastructure`: the same destination, later. `none`:
 * nothing that a further attempt could cure.
 */
export type Fault = 'destination' | 'infrastructure' | 'none';

export interface TaskReason {
  /** The party at fault. */
  readonly party: Party;
  readonly fault: Fault;
  readonly meaning: string;
}

const row = (party: Party, fault: Fault, meaning: string): TaskReason => ({ party, fault, meaning });

/**
 * The only list of the reasons for which an attempt does not start, fails, or warns, each with the party at fault. A code never
 * changes its meaning. docs/reasons.md of this package is generated from here, and a test keeps it equal.
 */
export const taskReasons = {
  // Pre-flight, the server.
  'server-gone': row('client', 'none', 'Nova does not know the server any more.'),
  'moved-by-others': row('client', 'none', 'The server is on another host: somebody else moved it.'),
  'vm-opted-out': row('operator', 'none', shared['vm-opted-out']),
  'vm-outside-window': row('operator', 'none', shared['vm-outside-window']),
  'vm-window-unreadable': row('operator', 'none', shared['vm-window-unreadable']),
  'vm-locked': row('server', 'none', shared['vm-locked']),
  'vm-status': row('server', 'none', shared['vm-status']),
  'vm-power-state': row('server', 'none', shared['vm-power-state']),
  'vm-accelerator': row('server', 'none', shared['vm-accelerator']),
  'vm-sriov-port': row('server', 'none', shared['vm-sriov-port']),
  'vm-busy': row('server', 'infrastructure', shared['vm-busy']),
  'power-unknown': row('server', 'infrastructure', 'Nova does not say whether the guest runs.'),

  // Pre-flight, the source.
  'vm-source-down': row('source', 'infrastructure', shared['vm-source-down']),
  'vm-source-disabled': row('operator', 'none', shared['vm-source-disabled']),
  'source-left': row('operator', 'none', 'The source left the aggregate since the plan.'),

  // Pre-flight, the destination.
  'destination-unknown': row('destination', 'destination', 'Nova has no nova-compute on the destination.'),
  'host-down': row('destination', 'destination', shared['host-down']),
  'host-disabled': row('operator', 'destination', shared['host-disabled']),
  'destination-left': row('operator', 'destination', 'The destination left the aggregate since the plan.'),
  'host-in-two-aggregates': row('operator', 'destination', shared['host-in-two-aggregates']),
  capacity: row('room', 'destination', shared.capacity),
  'numa-fit': row('room', 'destination', shared['numa-fit']),
  'numa-unknown': row('room', 'destination', shared['numa-unknown']),
  'pinned-zone': row('server', 'destination', shared['pinned-zone']),
  'other-zone': row('operator', 'destination', shared['other-zone']),
  'anti-affinity': row('group', 'destination', shared['anti-affinity']),
  affinity: row('group', 'destination', shared.affinity),
  'affinity-gathered': row('group', 'none', shared['affinity-gathered']),
  'server-group-policy-unknown': row('group', 'none', shared['server-group-policy-unknown']),
  'refused-before': row('kronos', 'destination', shared['refused-before']),
  'host-broken': row('kronos', 'destination', shared['host-broken']),

  // Pre-flight of a move between cells.
  'no-method': row('kronos', 'none', 'The task does not say how its server moves between cells.'),
  'cell-status': row('server', 'none', shared['cell-status']),
  'cell-accelerator': row('server', 'none', shared['cell-accelerator']),
  'cell-pci-device': row('server', 'none', shared['cell-pci-device']),
  'flavor-changed': row('client', 'none', 'The server has another flavor than the plan says.'),
  'flavor-unknown': row('operator', 'none', shared['flavor-unknown']),
  'cell-policy': row('nova', 'none', shared['cell-policy']),
  'cells-off': row('operator', 'none', shared['cells-off']),

  // The request.
  'not-allowed': row('nova', 'none', "Nova's policy or its version does not allow a request."),
  'not-sent': row('nova', 'infrastructure', 'The request did not reach Nova.'),
  'nova-refused': row('nova', 'infrastructure', 'Nova refused the request, and the server is not the cause.'),
  'request-invalid': row('nova', 'none', 'Nova does not understand the request.'),
  'request-forbidden': row('nova', 'none', 'Nova does not accept the credentials for the request.'),
  'server-refused': row('server', 'none', 'Nova refused to move the server, whatever the destination.'),
  'destination-refused': row('scheduler', 'destination', 'Nova refused the destination for the server.'),

  // The migration.
  'no-migration': row('nova', 'infrastructure', 'Nova accepted the request and shows no migration.'),
  'no-valid-host': row('scheduler', 'destination', "Nova's scheduler refused the destination."),
  'claim-refused': row('scheduler', 'destination', 'The destination could not claim the resources of the server.'),
  'precheck-refused': row('scheduler', 'destination', 'A check of the computes refused the destination.'),
  'group-violated': row('group', 'destination', "The destination's own check of the server group refused the server."),
  'network-refused': row('network', 'destination', "The server's ports could not be bound on the destination."),
  'migration-failed': row('unknown', 'destination', 'The migration failed, and Nova names no cause that Kronos knows.'),
  'compute-restarted': row('source', 'infrastructure', 'A nova-compute was restarted while the migration ran.'),
  'source-unavailable': row('source', 'infrastructure', 'Nova could not reach the nova-compute of the source.'),
  'destination-unavailable': row(
    'destination',
    'destination',
    'Nova could not reach the nova-compute of the destination.',
  ),
  'nova-internal': row('nova', 'infrastructure', 'Nova lost its message bus or its database.'),
  'server-in-error': row('server', 'none', 'The move left the server in ERROR.'),
  'host-did-not-change': row('server', 'none', 'Nova calls the migration completed, and the server is on its source.'),
  abandoned: row('nova', 'none', 'Nova no longer works on the migration, and does not end it.'),
  queue: row('source', 'infrastructure', "The migration waited in Nova's queue for longer than queue_timeout."),
  deadline: row('server', 'none', 'The migration took longer than its deadline.'),
  'no-progress': row('server', 'none', 'The migration copied nothing more.'),
  'hard-timeout': row('server', 'none', 'The migration took longer than hard_timeout.'),

  // Ends that people, the plan or the log caused.
  'aborted-by-others': row('client', 'none', 'Somebody else aborted the migration in Nova.'),
  'reverted-by-others': row('client', 'none', 'Somebody else reverted the move.'),
  operator: row('operator', 'none', 'An operator stopped the move.'),
  closed: row('operator', 'none', 'An operator closed the task.'),
  cancelled: row('operator', 'none', 'An operator cancelled the task.'),
  'vm-quarantined': row('operator', 'none', shared['vm-quarantined']),
  'vm-quarantined-by-operator': row('operator', 'none', shared['vm-quarantined-by-operator']),
  'window-closed': row('operator', 'none', 'The window of the move closed before it started.'),
  'reason-gone': row('operator', 'none', 'The reason for the move is gone.'),
  'no-longer-useful': row('kronos', 'destination', 'A move to the alternate would not lower the imbalance any more.'),
  expired: row('kronos', 'none', 'The plan is too old to start the move.'),
  'no-options': row('kronos', 'none', 'The log names no options for the plan.'),
  'dependency-failed': row('kronos', 'none', 'A move that the task depends on failed.'),
  'dependency-skipped': row('kronos', 'none', 'A move that the task depends on was skipped.'),
  'dependency-unknown': row('kronos', 'none', 'A move that the task depends on was not released.'),
  poisonous: row('kronos', 'none', 'The task crashed the executors that worked on it.'),
  unreadable: row('kronos', 'none', 'A message of the work queue is no task.'),

  // Warnings about a move that was done.
  'server-not-up': row('server', 'none', 'The server is on its destination and neither runs nor is paused.'),
  'ended-otherwise': row(
    'nova',
    'none',
    'Nova does not call the migration completed, and the server is on its destination.',
  ),
  'no-migration-seen': row(
    'nova',
    'none',
    'The server is on its destination, and Nova shows no migration that took it there.',
  ),
  'moved-since': row('client', 'none', 'The server has moved on from its destination since.'),
  'server-changed': row('client', 'none', 'The state of the server differs from the one before the move.'),
  'confirmed-by-others': row('client', 'none', 'Somebody else confirmed the move before Kronos could revert it.'),
  'no-verify-resize': row('nova', 'none', 'The server was never seen in VERIFY_RESIZE.'),
  'target-unread': row('nova', 'none', 'The hosts of the target aggregate could not be read.'),
  'dry-run': row('operator', 'none', 'The executor is in dry run: it asks Nova for no migration.'),

  // The checks of a move between cells.
  'guest-off': row('server', 'none', 'The move left the server powered off.'),
  'wrong-host': row('scheduler', 'none', 'Nova moved the server to another host than asked for.'),
  'power-state': row('server', 'none', 'The power state differs from the one before the move.'),
  addresses: row('network', 'none', 'The addresses differ from those before the move.'),
  volumes: row('server', 'none', 'The volumes differ from those before the move.'),
  flavor: row('nova', 'none', 'The flavor is not the one that was asked for.'),
  probe: row('server', 'none', 'The check of the guest failed.'),
  verified: row('operator', 'none', 'The move was reverted after its checks had passed.'),
  verification: row('server', 'none', 'A check failed after the move, and the move was reverted.'),
} as const satisfies Record<string, TaskReason>;

export type TaskReasonCode = keyof typeof taskReasons;

export const taskReasonCodes = Object.keys(taskReasons) as readonly TaskReasonCode[];

/** The code of today for a recorded one; undefined when this version does not know it. */
export function taskCodeOf(code: string): TaskReasonCode | undefined {
  if (Object.hasOwn(taskReasons, code)) return code as TaskReasonCode;
  return Object.hasOwn(formerCodes, code) ? formerCodes[code as keyof typeof formerCodes] : undefined;
}

/** The row of a recorded code; undefined when this version does not know it. */
export function taskReasonOf(code: string): TaskReason | undefined {
  const known = taskCodeOf(code);
  return known && taskReasons[known];
}
