import { z } from 'zod';
import { isoTimeSchema } from './envelope.ts';

/** The services of an installation. */
export const serviceNames = ['scorer', 'planner', 'executor', 'ledger'] as const;
export type ServiceName = (typeof serviceNames)[number];

/** Characters of a readiness check's reason that a heartbeat carries. */
export const REPORTED_REASON = 500;

/** A part of what a readiness check needs, and why it fails. */
export const failingPartSchema = z.object({
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
  /** A cycle of an aggregate takes longer to decide than until the next one is due. */
  decisionSlow: 'decision-slow',
  /** Taking the snapshots of a cycle takes longer than until the next one is due. */
  cycleSlow: 'cycle-slow',
  /** The snapshot of an aggregate was stored later than its time by more than max_clock_skew. */
  storedLate: 'stored-late',
} as const;

/** Says how late a snapshot was stored. @param ms from its time until NATS stored it */
export const storedLateText = (ms: number): string =>
  `the last snapshot was stored ${(ms / 1000).toFixed(1)} s after its time, more than max_clock_skew`;
