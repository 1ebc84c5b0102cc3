import {
  type ControlType,
  commandExamples,
  type LogEvent,
  type LogEventType,
  type StoredEvent,
} from '@kronos/contracts';
import { testLog } from '@kronos/projections/testing';

type Log = ReturnType<typeof testLog>;

/** A head as services write it; the type and the data follow. */
const head = (log: Log, service: 'executor' | 'provisioner', id: string) => ({
  version: 1 as const,
  id,
  time: new Date(log.nowMs).toISOString(),
  aggregate: 'gpu',
  by: { service, instance: `${service}-1`, version: '1.0.0' },
  correlationId: id,
  causationId: null,
});

function attempt(log: Log, planId: string, serverId: string) {
  const task = { taskId: `${planId}-s1`, planId, serverId, attempt: 1, from: 'h1', destination: 'h2' };
  return { ...task, head: head(log, 'executor', `${task.taskId}/abort`) };
}

function lastPlan(log: Log, type: 'cycle.decided' | 'plan.proposed'): string {
  const found = log.events.findLast(({ event }) => event.type === type)?.event as LogEvent | undefined;
  if (found?.type === 'cycle.decided') return found.data.snapshotId;
  if (found?.type === 'plan.proposed') return found.data.planId;
  throw new Error(`no ${type} so far`);
}
const balanced = (log: Log): string => lastPlan(log, 'cycle.decided');
const between = (log: Log): string => lastPlan(log, 'plan.proposed');

function drain(log: Log, host: string): string {
  const found = log.events.find(({ event }) => event.type === 'host.drainAsked' && event.data.host === host)?.event;
  if (found?.type !== 'host.drainAsked') throw new Error(`no drain of ${host}`);
  return found.data.commandId;
}

/** A plan that waits, its answers and its first moves. */
const plansAndMoves = (log: Log) => ({
  'installation.created': () => {
    log.again({
      ...head(log, 'provisioner', 'installation/9f1c7f0e-95cf-4c64-9a0f-0d5b1f6a7c11'),
      aggregate: '_all_',
      type: 'installation.created',
      data: { installationId: '9f1c7f0e-95cf-4c64-9a0f-0d5b1f6a7c11', statement: 'provisioned', comment: null },
    });
  },
  'planner.configured': () => log.configured({ approval: 'manual' }),
  'cycle.decided': () => {
    log.pass(60).proposed([
      { serverId: 'vm1', from: 'h1', to: 'h2' },
      { serverId: 'vm2', from: 'h1', to: 'h3' },
      { serverId: 'vm3', from: 'h1', to: 'h4' },
      { serverId: 'vm4', from: 'h1', to: 'h5' },
      { serverId: 'vm5', from: 'h1', to: 'h6' },
    ]);
  },
  'plan.approved': () => log.pass(10).approved(balanced(log), [1, 2, 3, 4]),
  'plan.rejected': () => log.rejected(balanced(log), [5]),
  'plan.dispatched': () => log.dispatched(balanced(log), 4),
  'migration.started': () => {
    for (const step of [1, 2]) log.pass(2).started({ task: `${balanced(log)}-s${step}` });
  },
  'migration.observed': () => {
    for (const step of [1, 2]) log.observed({ task: `${balanced(log)}-s${step}` });
  },
  'migration.completed': () => log.pass(30).completed({ task: `${balanced(log)}-s1` }),
  'migration.suspected': () => {
    log.suspected({ task: `${balanced(log)}-s2` }, 1);
    log.suspected({ task: `${balanced(log)}-s2` }, 0);
  },
});

/** How moves end, and commands about VMs and aggregates. */
const endsAndCommands = (log: Log) => ({
  'migration.aborted': () => log.aborted(`${balanced(log)}-s2`),
  'migration.abortRequested': () => {
    const { head: envelope, ...of } = attempt(log, balanced(log), 'vm2');
    const data = {
      ...of,
      taskId: `${balanced(log)}-s2`,
      destination: 'h3',
      cause: 'operator',
      text: 'ada',
      limitMs: null,
    };
    log.again({ ...envelope, id: `${data.taskId}/abort`, type: 'migration.abortRequested', data });
  },
  'migration.abortRefused': () => log.abortRefused({ task: `${balanced(log)}-s2` }),
  'migration.closed': () => log.closed(`${balanced(log)}-s2`),
  'migration.failed': () => log.failed({ task: `${balanced(log)}-s2`, hostAtFault: 'h3', cause: 'destination' }),
  'host.released': () => log.hostReleased('h3'),
  'migration.cancelled': () => log.cancelled(`${balanced(log)}-s3`),
  'migration.skipped': () => log.skipped({ task: `${balanced(log)}-s4` }),
  'instance.quarantined': () => log.quarantined('vm9', 3600),
  'instance.unquarantined': () => log.unquarantined('vm9'),
  'aggregate.paused': () => log.paused(),
  'aggregate.resumed': () => log.resumed(),
  'evaluation.requested': () => log.evaluationRequested(),
});

const drains = (log: Log) => ({
  'host.drainAsked': () => {
    for (const host of ['h1', 'h2']) log.drainAsked(host);
  },
  'host.claimed': () => log.hostClaimed(drain(log, 'h1'), 'h1'),
  'host.actFailed': () => log.hostActFailed(drain(log, 'h1'), 'h1'),
  'host.disabled': () => {
    log.hostClaimed(drain(log, 'h1'), 'h1', 'disable', 2);
    log.hostDisabled(drain(log, 'h1'), 'h1');
    log.hostDisabled(drain(log, 'h2'), 'h2', false);
  },
  'host.drained': () => log.hostDrained(drain(log, 'h1'), 'h1'),
  'host.undrainAsked': () => {
    for (const host of ['h1', 'h2']) log.undrainAsked(host);
  },
  'host.enabled': () => {
    log.hostClaimed(drain(log, 'h1'), 'h1', 'enable');
    log.hostEnabled(drain(log, 'h1'), 'h1');
  },
  'host.leftDisabled': () => log.hostLeftDisabled(drain(log, 'h2'), 'h2'),
});

const betweenCells = (log: Log) => ({
  'cells.moveAsked': () =>
    log.asked('cells.moveAsked', { ...commandExamples['cells.moveAsked'], comment: 'old racks' }),
  'plan.proposed': () => {
    const plan = log.cellsProposed([
      { serverId: 'vm6', from: 'h1', to: 'n1' },
      { serverId: 'vm7', from: 'h1', to: 'n2' },
    ]);
    log.approved(plan);
    log.dispatched(plan, 2);
    for (const step of [1, 2]) log.started({ task: `${plan}-s${step}` });
  },
  'migration.verifying': () => {
    for (const step of [1, 2]) log.pass(30).verifying({ task: `${between(log)}-s${step}` });
  },
  'migration.verified': () => log.pass(60).verified({ task: `${between(log)}-s1` }),
  'migration.confirmAsked': () => log.settleAsked('confirm', `${between(log)}-s1`),
  'migration.confirmRequested': () => {
    log.settleRequested('confirm', { task: `${between(log)}-s1` });
    log.completed({ task: `${between(log)}-s1` }, 90);
  },
  'migration.revertAsked': () => log.settleAsked('revert', `${between(log)}-s2`),
  'migration.revertRequested': () => {
    log.settleRequested('revert', { task: `${between(log)}-s2` }, 'operator');
    log.failed({ task: `${between(log)}-s2`, errorType: 'Cancelled' });
  },
});

const afterwards = (log: Log) => ({
  'capacity.asked': () => {
    log.asked('capacity.asked', commandExamples['capacity.asked']);
    log.cellsProposed([{ serverId: 'vm8', from: 'h4', to: 'h5' }], { capacity: true });
  },
  'plan.withdrawn': () => {
    log.withdrawn(log.proposed([{ serverId: 'vm10', from: 'h4', to: 'h5' }]));
  },
  'event.skipped': () => log.eventSkipped(log.events.length),
});

/**
 * The work of a few days with every type of event of the log. The compiler asks for the part of each new type; a command without one comes at the
 * end, as the example of its definition.
 */
export function everyEvent(): StoredEvent[] {
  const log = testLog();
  const written: { readonly [T in Exclude<LogEventType, ControlType>]: () => void } & {
    readonly [T in ControlType]?: () => void;
  } = {
    ...plansAndMoves(log),
    ...endsAndCommands(log),
    ...drains(log),
    ...betweenCells(log),
    ...afterwards(log),
  };
  for (const write of Object.values(written)) {
    log.pass(1);
    write();
  }
  addExamples(log, written);
  return log.events;
}

/** The commands that have no part of their own, as the examples of their definitions. */
function addExamples(log: Log, written: object): void {
  for (const [type, example] of Object.entries(commandExamples)) {
    if (Object.hasOwn(written, type)) continue;
    log.pass(1);
    log.asked(type as ControlType, example);
  }
}
