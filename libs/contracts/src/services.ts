import { z } from 'zod';
import { isoTimeSchema, message } from './envelope.ts';

/** The services of an installation. */
export const serviceNames = ['scorer', 'planner', 'executor', 'ledger'] as const;
export type ServiceName = (typeof serviceNames)[number];

/** Characters of a readiness check's reason that a heartbeat carries. */
export const REPORTED_REASON = 500;

/** A part of what a readiness check needs, and why it fails. */
const failingPartSchema = z.object({
  /** Code of an error (`KRONOS_HTTP_TIMEOUT`), or of a state (`call-in-progress`, `storage-full`). */
  code: z.string(),
  /** The API, list, query, stream or aggregate. */
  part: z.string(),
  text: z.string(),
  /** Since when, where it goes on. */
  since: isoTimeSchema.optional(),
});
export type FailingPart = z.infer<typeof failingPartSchema>;

/** Parts of a readiness check that a heartbeat carries. */
export const REPORTED_PARTS = 8;

/** The codes of parts that are states, not errors. */
export const partCodes = {
  /** An API has not answered a call yet. */
  callInProgress: 'call-in-progress',
  /** A stream is at its limit. */
  streamFull: 'stream-full',
  /** The NATS server has no storage left. */
  storageFull: 'storage-full',
  /** NATS does not answer an append. */
  unanswered: 'append-unanswered',
  /** NATS refuses an append. */
  refused: 'append-refused',
} as const;

/**
 * A heartbeat of one process, which `by` names, on `kronos.services.<service>.<instance>`. For people; no decision reads
 * it. Its `aggregate` is `_all_`: `aggregates` says which ones it serves.
 */
export const serviceReportedSchema = message(
  'service.reported',
  1,
  z.object({
    state: z.enum(['starting', 'running', 'stopping', 'stopped']),
    /** Readiness checks that do not pass, by name; none: it is ready. */
    failing: z.array(
      z.object({
        check: z.string(),
        reason: z.string(),
        /** What fails, one by one, for programs; `reason` is for people. Absent: the check has one meaning, or is of Kronos 0.1. */
        parts: z.array(failingPartSchema).optional(),
      }),
    ),
    startedAt: isoTimeSchema,
    /** The next one comes within this time. */
    intervalSeconds: z.number().positive(),
    /** Aggregates that it serves. */
    aggregates: z.array(z.string()),
    /** The checkpoint that its fold started from, by sequence, and the sequence up to which the log confirms it; absent: none. */
    checkpoint: z
      .object({ sequence: z.number().int().nonnegative(), verifiedTo: z.number().int().nonnegative() })
      .optional(),
    /** Sinks of notifications that take nothing now, and since when; by the ledger. Absent: none. */
    sinks: z.array(z.object({ sink: z.string(), since: isoTimeSchema, reason: z.string() })).optional(),
    /** The options that this service reads, by section and name; no secrets. */
    options: z.record(z.string(), z.json()),
  }),
);
export type ServiceReported = z.infer<typeof serviceReportedSchema>;
