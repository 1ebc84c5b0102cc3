import { z } from 'zod';
import { message } from './envelope.ts';
import { capacityAskedSchema, cellsAskedSchema } from './snapshot.ts';

/** Commands of people. `aggregate` may be `_all_`. The fold decides whether a command takes effect. */
const command = <T extends string, D extends z.ZodRawShape>(type: T, data: D) =>
  message(type, 1, z.object({ commandId: z.string(), comment: z.string().nullable(), ...data }));

const aggregatePausedSchema = command('aggregate.paused', {});
const aggregateResumedSchema = command('aggregate.resumed', {});
/** `steps` null: all of them. Approving a step approves what it depends on. */
const planApprovedSchema = command('plan.approved', {
  planId: z.string(),
  steps: z.array(z.int().min(1)).nullable(),
});
/** Rejecting a step rejects its dependents. */
const planRejectedSchema = command('plan.rejected', {
  planId: z.string(),
  steps: z.array(z.int().min(1)).nullable(),
});
const instanceQuarantinedSchema = command('instance.quarantined', {
  serverId: z.string(),
  /** -1: until released. */
  seconds: z.number().min(-1),
});
const instanceUnquarantinedSchema = command('instance.unquarantined', { serverId: z.string() });
/** Not started: it ends Cancelled. Started: it is aborted as `migration.aborted` asks. */
const migrationCancelledSchema = command('migration.cancelled', { taskId: z.string() });
const migrationAbortedSchema = command('migration.aborted', { taskId: z.string() });
/** The task ends without waiting for Nova any longer. For a task that nothing else can end: what Nova still does is left alone. */
const migrationClosedSchema = command('migration.closed', { taskId: z.string() });
/** A move between cells that waits in VERIFY_RESIZE is to be confirmed, whatever its checks say. */
const migrationConfirmAskedSchema = command('migration.confirmAsked', { taskId: z.string() });
/** A move between cells is to be reverted as soon as Nova allows it. */
const migrationRevertAskedSchema = command('migration.revertAsked', { taskId: z.string() });
/**
 * The host is to be emptied: an executor disables its nova-compute service, and the planner evacuates it. `commandId` is the
 * id of the drain.
 */
const hostDrainAskedSchema = command('host.drainAsked', { host: z.string().min(1) });
/** The drain of the host ends: an executor enables the service if Kronos disabled it and nobody changed it since. */
const hostUndrainAskedSchema = command('host.undrainAsked', { host: z.string().min(1) });
/** The breaker of the host closes: its failures so far count no more. */
const hostReleasedSchema = command('host.released', { host: z.string().min(1) });
/**
 * A plan for moves between cells is to be made for servers of this aggregate: a scorer observes the cloud for it, and a planner
 * answers with `plan.proposed`.
 */
const cellsMoveAskedSchema = command('cells.moveAsked', cellsAskedSchema.shape);
/**
 * A plan is to be made that makes room for new VMs in this aggregate: a scorer observes the cloud for it, and a planner answers with
 * `plan.proposed`.
 */
const capacityAskedEventSchema = command('capacity.asked', capacityAskedSchema.shape);
const evaluationRequestedSchema = command('evaluation.requested', {
  /** `evaluate`: decide on it; `record`: keep it and never plan it. */
  purpose: z.enum(['evaluate', 'record']),
});

/**
 * Names the log: the first event of a new one, and, as a statement of a person, the event from which a log counts that was
 * found to be another one or to have lost events. On `_all_`, by the `provisioner`. The newest one is in force.
 */
const installationCreatedSchema = message(
  'installation.created',
  1,
  z.object({
    installationId: z.uuid(),
    /**
     * `provisioned`: nothing else was known. `newLog`: use this log as it is, whatever else was seen (`kronos provision
     * --new-log`). `restored`: an archive was restored up to here (`kronos archive restore`).
     */
    statement: z.enum(['provisioned', 'newLog', 'restored']),
    comment: z.string().nullable(),
  }),
);
export type InstallationCreated = z.infer<typeof installationCreatedSchema>;

/** All commands of people. */
const commandSchemas = [
  aggregatePausedSchema,
  aggregateResumedSchema,
  planApprovedSchema,
  planRejectedSchema,
  instanceQuarantinedSchema,
  instanceUnquarantinedSchema,
  migrationCancelledSchema,
  migrationAbortedSchema,
  migrationClosedSchema,
  evaluationRequestedSchema,
  hostDrainAskedSchema,
  hostUndrainAskedSchema,
  hostReleasedSchema,
  cellsMoveAskedSchema,
  capacityAskedEventSchema,
  migrationConfirmAskedSchema,
  migrationRevertAskedSchema,
] as const;

/**
 * A custodian states that unreadable events are to be skipped: all from `sequence` to `through` (inclusive) with the same
 * aggregate. It travels on its own subject, on which operators cannot publish. The comment is the reason.
 */
const eventSkippedSchema = command('event.skipped', { sequence: z.int().min(1), through: z.int().min(1) });

export const custodySchemas = [eventSkippedSchema] as const;
export type Control = z.infer<(typeof commandSchemas)[number] | (typeof custodySchemas)[number]>;

/** Everything on `kronos.controls`. */
export const controlSchemas = [...commandSchemas, installationCreatedSchema] as const;
