import { z } from 'zod';
import { isoTimeSchema, message, reasonSchema } from './envelope.ts';
import { stepSchema } from './plans.ts';

/** A task on `kronos.migrations.<agg>`: one step of a released plan, to be done. */
export const migrationRequestedSchema = message(
  'migration.requested',
  1,
  stepSchema.omit({ why: true, delaySeconds: true }).extend({
    planId: z.string(),
    /** 1 for the first POST; retries count on. */
    attempt: z.int().min(1),
    /** Where this attempt goes: `to`, or the alternate taken since. */
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
  }),
);
export type MigrationStarted = z.infer<typeof migrationStartedSchema>;

/** Nova's own names for what the attempt started. */
export const migrationObservedSchema = message(
  'migration.observed',
  1,
  z.object({ ...attemptOf, migrationId: z.int().nullable(), requestId: z.string().nullable() }),
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
    /** How often in a row it was begun without word of its survival, this time included. 0: survived. */
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
    /** What it was allowed, in milliseconds; null where no limit is the cause. */
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

/** What Nova said and how long it took, as far as it is known. */
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
    /** Where the server is, by Nova. */
    host: z.string(),
    retries: z.int().min(0),
    nova: novaFactsSchema.nullable(),
    /** What is not as it should be after the move; with any of them it was no plain success (see `moveEnd`). */
    warnings: z.array(reasonSchema),
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
    retries: z.int().min(0),
    /** Another attempt follows; else this is the task's one final result. */
    retryPending: z.boolean(),
    /** Where the next attempt goes and from when; null when final. */
    next: z.object({ attempt: z.int(), destination: z.string(), notBefore: isoTimeSchema }).nullable(),
    /** The destination that is to blame, for the host breaker; null when none is. */
    hostAtFault: z.string().nullable(),
    /** False when this attempt never got as far as `migration.started`. */
    started: z.boolean(),
    nova: novaFactsSchema.nullable(),
  }),
);
export type MigrationFailed = z.infer<typeof migrationFailedSchema>;

/** The executor's dry run: pre-flight passed for real, nothing was asked of Nova. */
export const migrationSkippedSchema = message('migration.skipped', 1, z.object({ ...attemptOf, reason: reasonSchema }));
export type MigrationSkipped = z.infer<typeof migrationSkippedSchema>;
