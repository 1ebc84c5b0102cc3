import { z } from 'zod';

export const isoTimeSchema = z.iso.datetime({ offset: false });

/** The author: a service and its process, or the person behind a command. */
export const actorSchema = z.object({
  /** A service, or the role under which a person uses the `kronos` command. */
  service: z.enum(['scorer', 'planner', 'executor', 'ledger', 'operator', 'custodian', 'provisioner', 'restorer']),
  /** The process (host name and pid, or pod), or for an operator the name of the person. */
  instance: z.string(),
  version: z.string(),
});
export type Actor = z.infer<typeof actorSchema>;

/** A position on a log: the log's identity and its last sequence. */
export const logMarkSchema = z.object({
  /** Installation id in force; null: the log named none yet. */
  installationId: z.string().nullable(),
  /** Stream sequence of the last event. */
  sequence: z.int().min(0),
});
export type LogMark = z.infer<typeof logMarkSchema>;

/** A body kept in an object store bucket: the message names it by digest. */
export const objectRefSchema = z.object({
  bucket: z.string(),
  object: z.string(),
  /** `sha256:<hex>` of the uncompressed bytes. */
  digest: z.string(),
  bytes: z.int().min(0),
  /** Bytes as stored (gzip). */
  storedBytes: z.int().min(0),
});
export type ObjectRef = z.infer<typeof objectRefSchema>;

/** A reason: a code for programs, a sentence for people, and figures. */
export const reasonSchema = z.object({
  code: z.string(),
  text: z.string(),
  detail: z.record(z.string(), z.json()).optional(),
});
export type Reason = z.infer<typeof reasonSchema>;

/** The envelope of every message: one JSON object, the facts in `data`. */
export const message = <T extends string, V extends number, D extends z.ZodType>(type: T, version: V, data: D) =>
  z.object({
    type: z.literal(type),
    version: z.literal(version),
    /** Deterministic; also the `Nats-Msg-Id`. A second message with the same id is the same act. */
    id: z.string().min(1),
    /** When it happened, set once by the producer. */
    time: isoTimeSchema,
    aggregate: z.string().min(1),
    by: actorSchema,
    /** Groups all messages that one snapshot or one command caused: the id of the snapshot or of the command. */
    correlationId: z.string(),
    /** The id of the message that caused this one; null for the first of a chain. */
    causationId: z.string().nullable(),
    data,
  });
