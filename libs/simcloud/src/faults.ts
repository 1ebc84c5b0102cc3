import { z } from 'zod';

const times = z.number().int().positive().optional();

/** The fault of this server's live migrations. `times`: only the next `times` migrations; without it, always. */
export const serverFaultSchema = z.discriminatedUnion('kind', [
  /** Copying fails and is rolled back: status `failed`, as with libvirt. */
  z.strictObject({ kind: z.literal('fail'), times }),
  /** Copying fails and is rolled back with status `error`, as with the test cloud's hypervisor. */
  z.strictObject({ kind: z.literal('error'), times }),
  /** Copying does not end until it is aborted or the fault is cleared. */
  z.strictObject({ kind: z.literal('hang'), times }),
  /** Copying takes this many cloud seconds; so does the start of a guest in another cell. */
  z.strictObject({ kind: z.literal('slow'), seconds: z.number().positive(), times }),
  /** Nova fails after the guest has arrived: host = destination, migration `error`, then (unless `vmError` is false) vm_state error. */
  z.strictObject({ kind: z.literal('error-after-switchover'), vmError: z.boolean().default(true), times }),
  /** The destination's pre-check refuses: with a named host that is NoValidHost. */
  z.strictObject({ kind: z.literal('pre-check'), times }),
  /** The conductor takes this many cloud seconds more before the migration's row exists. */
  z.strictObject({ kind: z.literal('conductor-delay'), seconds: z.number().positive(), times }),
  /** The request is lost between API and conductor: task_state stays `migrating` and no row ever appears. */
  z.strictObject({ kind: z.literal('lost'), times }),
  /** The source cannot upload the image of a server that leaves its cell: it is powered off, and stays ACTIVE. */
  z.strictObject({ kind: z.literal('snapshot'), times }),
  /** The destination cannot start a server that comes from another cell: ERROR in its old cell. */
  z.strictObject({ kind: z.literal('spawn'), times }),
  /** The source cannot remove the rest of a server that left its cell: ERROR in its new cell. */
  z.strictObject({ kind: z.literal('confirm'), times }),
  /** The source cannot start a server whose move to another cell is reverted: ERROR in its old cell. */
  z.strictObject({ kind: z.literal('revert'), times }),
  /** An abort is accepted and does nothing. */
  z.strictObject({ kind: z.literal('abort-ignored'), times }),
]);
export type ServerFaultSetting = z.infer<typeof serverFaultSchema>;

export const hostFaultSchema = z.discriminatedUnion('kind', [
  /** As destination it refuses every pre-check. */
  z.strictObject({ kind: z.literal('refuse'), times }),
  /** Every live migration to it fails while copying. */
  z.strictObject({ kind: z.literal('fail-inbound'), times }),
  /** The hook of its hypervisor refuses a guest that arrives: the migration fails before anything is copied. */
  z.strictObject({ kind: z.literal('hook'), times }),
  /** Copying to it takes this many times as long. */
  z.strictObject({ kind: z.literal('slow-inbound'), factor: z.number().positive(), times }),
]);
export type HostFaultSetting = z.infer<typeof hostFaultSchema>;

export const apis = ['identity', 'compute', 'placement', 'network', 'prometheus'] as const;
export type ApiName = (typeof apis)[number];
const api = z.enum([...apis, '*']);

/**
 * A fault of calls. `path` is a regular expression on path and query; `method` a verb; `probability` 0..1;
 * `times` the number of calls it hits before it goes away. The first rule that applies decides; latency rules add up.
 */
export const apiFaultSchema = z.strictObject({
  api,
  method: z.string().toUpperCase().optional(),
  path: z.string().optional(),
  probability: z.number().min(0).max(1).default(1),
  times,
  effect: z.discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('latency'),
      ms: z.number().nonnegative(),
      jitterMs: z.number().nonnegative().default(0),
    }),
    /** Answers with this status. `processed`: the call was carried out first (a gateway timeout after the act). */
    z.strictObject({
      kind: z.literal('status'),
      status: z.number().int().min(400).max(599),
      body: z.string().optional(),
      processed: z.boolean().default(false),
    }),
    /** The connection is cut: before the call is carried out, after it, or in the middle of the answer. */
    z.strictObject({ kind: z.literal('cut'), when: z.enum(['before', 'after', 'middle']) }),
    /** No answer ever comes; the call was carried out (`after`) or not (`before`). */
    z.strictObject({ kind: z.literal('hang'), when: z.enum(['before', 'after']).default('before') }),
    z.strictObject({ kind: z.literal('unauthorized') }),
    /** The answer is 200 and not JSON. */
    z.strictObject({ kind: z.literal('garbage') }),
  ]),
});
type ApiFault = z.infer<typeof apiFaultSchema>;
export type ApiFaultSetting = z.input<typeof apiFaultSchema>;

/**
 * A fault of series, from the moment it is set. `metric` and `labels` are exact; no metric means all.
 * missing: gone at once, as when a target goes down. stale: the last sample stays, and ages out after 5 minutes.
 * frozen: new samples with the old value. duplicate: a second series with another `instance`. nan, inf, value: every sample has this value.
 */
export const seriesFaultSchema = z.strictObject({
  kind: z.enum(['missing', 'stale', 'frozen', 'duplicate', 'nan', 'inf', 'value']),
  metric: z.string().optional(),
  labels: z.record(z.string(), z.string()).default({}),
  value: z.number().optional(),
});
export type SeriesFault = z.infer<typeof seriesFaultSchema>;
export type SeriesFaultSetting = z.input<typeof seriesFaultSchema>;

export interface ActiveSeriesFault extends SeriesFault {
  readonly id: number;
  readonly fromMs: number;
  untilMs: number | null;
}

export interface ActiveApiFault extends ApiFault {
  readonly id: number;
  left: number;
}
