import { z } from 'zod';
import { isoTimeSchema } from '../envelope.ts';
import { failingPartSchema } from '../services.ts';
import { defineMessage } from './define.ts';

/**
 * A heartbeat of one process, which `by` names, on `kronos.services.<service>.<instance>`. For people; no decision reads
 * it. Its `aggregate` is `_all_`: `aggregates` says which ones it serves.
 */
export const serviceReported = defineMessage({
  type: 'service.reported',
  writers: ['scorer', 'planner', 'executor', 'ledger'],
  data: z.object({
    state: z.enum(['starting', 'running', 'stopping', 'stopped']),
    /** Readiness checks that do not pass, by name; none: it is ready. */
    failing: z.array(
      z.object({
        check: z.string(),
        reason: z.string(),
        /** The failing parts, for programs; `reason` is for people. Absent: the check has one meaning, or is of Kronos 0.1. */
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
  sentence: (event) => {
    const { state, failing } = event.data;
    const text = state === 'running' ? (failing.length === 0 ? 'is ready' : 'is not ready') : `is ${state}`;
    const why = failing.map(({ check, reason }) => `${check}: ${reason}`).join('; ');
    return `${event.by.service} ${event.by.instance} ${text}${why === '' ? '' : `: ${why}`}`;
  },
});
export type ServiceReported = z.infer<typeof serviceReported.schema>;
