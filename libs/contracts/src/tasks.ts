import { z } from 'zod';
import { isoTimeSchema, message, reasonSchema } from './envelope.ts';
import { cellMethodSchema, stepSchema } from './plans.ts';

/** A task on `kronos.migrations.<agg>`: one step of a released plan. */
export const migrationRequestedSchema = message(
  'migration.requested',
  1,
  stepSchema.omit({ why: true, delaySeconds: true }).extend({
    planId: z.string(),
    /** 1 for the first POST; retries count on. */
    attempt: z.int().min(1),
    /** Destination of this attempt: `to`, or an alternate. */
    destination: z.string(),
    notBefore: isoTimeSchema,
    /** Release + plan_ttl, or the closing of its window if that comes first: not started after this. */
    notAfter: isoTimeSchema,
  }),
);
export type MigrationRequested = z.infer<typeof migrationRequestedSchema>;

const errorTypeSchema = z.enum([
  'PreFlightError',
  'MigrationFailed',
  'MigrationTimeout',
  'NovaClientError',
  'Cancelled',
  'DeadLetter',
]);
export type ErrorType = z.infer<typeof errorTypeSchema>;

const attemptOf = {
  taskId: z.string(),
  planId: z.string(),
  serverId: z.string(),
  attempt: z.int().min(1),
  from: z.string(),
  destination: z.string(),
};

/** A server before its move between cells. */
const serverBeforeSchema = z.object({
  vmState: z.string(),
  /** Nova's number; null: it shows none. */
  powerState: z.int().nullable(),
  /** Fixed and floating addresses, sorted. */
  addresses: z.array(z.string()),
  /** Ids of the attached volumes, sorted. */
  volumes: z.array(z.string()),
});
export type ServerBefore = z.infer<typeof serverBeforeSchema>;

/** An attempt holds a slot from here to its end. The POST follows within 10 s or is not sent. */
export const migrationStartedSchema = message(
  'migration.started',
  1,
  z.object({
    ...attemptOf,
    groups: z.array(z.string()),
    /** Newest Nova migration id known for this server: only a newer one is this attempt's. 0: none. */
    newestMigrationId: z.int().min(0),
    /** The scheduler was bypassed (`[executor] force`). */
    forced: z.boolean(),
    ramMb: z.number(),
    diskGb: z.number(),
    /** Of a move between cells: how, and the server as it was, which it must be again afterwards. */
    cell: z
      .object({
        method: cellMethodSchema,
        oldFlavor: z.string().nullable(),
        newFlavor: z.string().nullable(),
        before: serverBeforeSchema,
        /** Uuids of earlier cold migrations and resizes of the server: ids are counted per cell, so only another uuid is this attempt's. */
        knownMigrations: z.array(z.string()),
      })
      .optional(),
  }),
);
export type MigrationStarted = z.infer<typeof migrationStartedSchema>;

/** Nova's ids of the migration that the attempt started. */
export const migrationObservedSchema = message(
  'migration.observed',
  1,
  z.object({
    ...attemptOf,
    migrationId: z.int().nullable(),
    requestId: z.string().nullable(),
    /** The same in both cells, while the id is counted per cell. Absent: of a live migration. */
    migrationUuid: z.string().nullable().optional(),
  }),
);
export type MigrationObserved = z.infer<typeof migrationObservedSchema>;

/**
 * An executor isolates an attempt whose number of deliveries suggests a poison message. Written before it starts, and
 * once more when it has survived; the newest one of an attempt counts.
 */
export const migrationSuspectedSchema = message(
  'migration.suspected',
  1,
  z.object({
    ...attemptOf,
    deliveries: z.int().min(1),
    /** Number of starts in a row without a note of survival, this one included. 0: survived. */
    tries: z.int().min(0),
  }),
);
export type MigrationSuspected = z.infer<typeof migrationSuspectedSchema>;

/** Written before an executor asks Nova to abort a migration: a later follower knows why it ends. */
export const migrationAbortRequestedSchema = message(
  'migration.abortRequested',
  1,
  z.object({
    ...attemptOf,
    /** `operator`, `queue`, `deadline`, `no-progress`, `hard-timeout`, or a word that a later version adds. */
    cause: z.string(),
    text: z.string(),
    /** The limit that was exceeded, in milliseconds; null when no limit is the cause. */
    limitMs: z.number().nullable(),
  }),
);
export type MigrationAbortRequested = z.infer<typeof migrationAbortRequestedSchema>;

/** Nova refused to abort a migration. The executor keeps following it; readers know that an abort does not end it. */
export const migrationAbortRefusedSchema = message(
  'migration.abortRefused',
  1,
  z.object({
    ...attemptOf,
    migrationId: z.int(),
    /** HTTP status of Nova's answer. */
    status: z.int(),
    /** Nova's own words. */
    text: z.string(),
  }),
);
export type MigrationAbortRefused = z.infer<typeof migrationAbortRefusedSchema>;

/** Its server has arrived and is in VERIFY_RESIZE: from here on it is to be confirmed or reverted. */
export const migrationVerifyingSchema = message(
  'migration.verifying',
  1,
  z.object({
    ...attemptOf,
    /** The server's host by Nova: a resize names none. */
    host: z.string(),
  }),
);
export type MigrationVerifying = z.infer<typeof migrationVerifyingSchema>;

/** All checks have passed for `verifySeconds`. With `confirm: manual` it waits for a person. */
export const migrationVerifiedSchema = message(
  'migration.verified',
  1,
  z.object({ ...attemptOf, host: z.string(), verifySeconds: z.number() }),
);
export type MigrationVerified = z.infer<typeof migrationVerifiedSchema>;

const settleOf = {
  ...attemptOf,
  /** `verified`, `operator`, `verification`, `wrong-host`, or a word that a later version adds. */
  cause: z.string(),
  reason: reasonSchema,
};

/** Written before an executor asks Nova to confirm: an attempt is confirmed or reverted, never both. */
export const migrationConfirmRequestedSchema = message('migration.confirmRequested', 1, z.object(settleOf));
export type MigrationConfirmRequested = z.infer<typeof migrationConfirmRequestedSchema>;

/** Written before an executor asks Nova to revert. */
export const migrationRevertRequestedSchema = message('migration.revertRequested', 1, z.object(settleOf));
export type MigrationRevertRequested = z.infer<typeof migrationRevertRequestedSchema>;

/** Additional fields in the result of a move between cells. */
const cellResultSchema = z.object({
  method: cellMethodSchema,
  oldFlavor: z.string().nullable(),
  newFlavor: z.string().nullable(),
  /** The longest possible downtime of its guest: from the start of the attempt until it was seen up. 0: it was off before. Null: unknown. */
  downtimeMs: z.number().nullable(),
  /** The author of the confirm or revert: Kronos, or somebody else or Nova itself. Null: neither happened. */
  settledBy: z.enum(['kronos', 'others']).nullable(),
});
export type CellResult = z.infer<typeof cellResultSchema>;

/** Nova's answer and the duration, as far as known. */
const novaFactsSchema = z.object({
  migrationId: z.int().nullable(),
  requestId: z.string().nullable(),
  status: z.string().nullable(),
  /** Nova's own reason, from the instance action's events. */
  reason: z.string().nullable(),
  queuedMs: z.number().nullable(),
  runningMs: z.number().nullable(),
  totalMs: z.number().nullable(),
  memoryBytes: z.number().nullable(),
  diskBytes: z.number().nullable(),
});
export type NovaFacts = z.infer<typeof novaFactsSchema>;

export const migrationCompletedSchema = message(
  'migration.completed',
  1,
  z.object({
    ...attemptOf,
    /** `alreadyThere`: it was on the destination before anything was called. */
    outcome: z.enum(['migrated', 'alreadyThere']),
    /** The server's host, by Nova. */
    host: z.string(),
    retries: z.int().min(0),
    nova: novaFactsSchema.nullable(),
    /** Problems after the move. A move with problems is not a full success (see `moveEnd`). */
    warnings: z.array(reasonSchema),
    /** Of a move between cells. */
    cell: cellResultSchema.optional(),
  }),
);
export type MigrationCompleted = z.infer<typeof migrationCompletedSchema>;

export const migrationFailedSchema = message(
  'migration.failed',
  1,
  z.object({
    ...attemptOf,
    /** A reader meets types of later versions too: unknown ones quarantine, to be safe. */
    errorType: z.string(),
    reason: reasonSchema,
    /**
     * The party at fault, a key of `parties` in libs/facts: `server`, `destination`, `scheduler`, `operator` and others. Absent: written
     * by Kronos 0.1, or by a planner.
     */
    cause: z.string().optional(),
    retries: z.int().min(0),
    /** Another attempt follows; else this is the task's one final result. */
    retryPending: z.boolean(),
    /** Destination and earliest time of the next attempt; null when final. */
    next: z.object({ attempt: z.int(), destination: z.string(), notBefore: isoTimeSchema }).nullable(),
    /** The destination that caused the failure, for the host breaker; null when none did. */
    hostAtFault: z.string().nullable(),
    /** False when this attempt never got as far as `migration.started`. */
    started: z.boolean(),
    nova: novaFactsSchema.nullable(),
    /** Of a move between cells that was started. */
    cell: cellResultSchema.optional(),
  }),
);
export type MigrationFailed = z.infer<typeof migrationFailedSchema>;

/** The executor's dry run: pre-flight passed for real, nothing was asked of Nova. */
export const migrationSkippedSchema = message('migration.skipped', 1, z.object({ ...attemptOf, reason: reasonSchema }));
export type MigrationSkipped = z.infer<typeof migrationSkippedSchema>;
