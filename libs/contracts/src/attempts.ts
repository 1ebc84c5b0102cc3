import { z } from 'zod';
import { cellMethodSchema } from './plans.ts';

const errorTypeSchema = z.enum([
  'PreFlightError',
  'MigrationFailed',
  'MigrationTimeout',
  'NovaClientError',
  'Cancelled',
  'DeadLetter',
]);
export type ErrorType = z.infer<typeof errorTypeSchema>;
/** The kinds of failures of a move. */
export const errorTypes = errorTypeSchema.options;

/** A server before its move between cells. */
export const serverBeforeSchema = z.object({
  vmState: z.string(),
  /** Nova's number; null: it shows none. */
  powerState: z.int().nullable(),
  /** Fixed and floating addresses, sorted. */
  addresses: z.array(z.string()),
  /** Ids of the attached volumes, sorted. */
  volumes: z.array(z.string()),
});
export type ServerBefore = z.infer<typeof serverBeforeSchema>;

/** Additional fields in the result of a move between cells. */
export const cellResultSchema = z.object({
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
export const novaFactsSchema = z.object({
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
