import { z } from 'zod';
import { controlSchemas } from './controls.ts';
import { isoTimeSchema, message, objectRefSchema } from './envelope.ts';
import { type Exact, exact } from './exact.ts';
import { type Family, instanceName } from './names.ts';
import { cycleDecidedSchema, planDispatchedSchema, plannerConfiguredSchema } from './plans.ts';
import { serviceReportedSchema } from './services.ts';
import { snapshotTakenSchema } from './snapshot.ts';
import {
  migrationAbortRefusedSchema,
  migrationAbortRequestedSchema,
  migrationCompletedSchema,
  migrationFailedSchema,
  migrationObservedSchema,
  migrationRequestedSchema,
  migrationSkippedSchema,
  migrationStartedSchema,
  migrationSuspectedSchema,
} from './tasks.ts';

/** The folded state of one aggregate at a log sequence. The state's own form is of libs/projections. */
export const stateCheckpointedSchema = message(
  'state.checkpointed',
  1,
  z.object({
    sequence: z.int().min(0),
    foldVersion: z.int().min(1),
    /** `sha256:<hex>` of the canonical JSON of `state`. */
    digest: z.string(),
    /** Null when it is kept in the object store, then `body` says where. */
    state: z.json().nullable(),
    body: objectRefSchema.nullable(),
  }),
);
export type StateCheckpointed = z.infer<typeof stateCheckpointedSchema>;

/** One host's full list of instances, as Nova reported it. */
export const inventoryReportedSchema = message(
  'inventory.reported',
  1,
  z.object({ host: z.string(), instances: z.array(z.string()), observedAt: isoTimeSchema, cause: z.string() }),
);
export type InventoryReported = z.infer<typeof inventoryReportedSchema>;

export const planEventSchemas = [cycleDecidedSchema, planDispatchedSchema, plannerConfiguredSchema] as const;
export const resultSchemas = [
  migrationStartedSchema,
  migrationObservedSchema,
  migrationCompletedSchema,
  migrationFailedSchema,
  migrationSkippedSchema,
  migrationSuspectedSchema,
  migrationAbortRequestedSchema,
  migrationAbortRefusedSchema,
] as const;

/** Every message type, under the subject family it travels on. */
export const messagesByFamily = {
  snapshots: [snapshotTakenSchema],
  plans: planEventSchemas,
  migrations: [migrationRequestedSchema],
  results: resultSchemas,
  controls: controlSchemas,
  ledger: [stateCheckpointedSchema],
  inventory: [inventoryReportedSchema],
  services: [serviceReportedSchema],
} as const satisfies Record<Family, readonly z.ZodType[]>;

export const logEventSchema = z.discriminatedUnion('type', [...planEventSchemas, ...resultSchemas, ...controlSchemas]);
/** What KRONOS_LOG holds. */
export type LogEvent = z.infer<typeof logEventSchema>;
export type LogEventType = LogEvent['type'];
export type LogEventOf<T extends LogEventType> = Extract<LogEvent, { type: T }>;

export type Message = { [F in Family]: z.infer<(typeof messagesByFamily)[F][number]> }[Family];
export type MessageOf<F extends Family> = z.infer<(typeof messagesByFamily)[F][number]>;
export type MessageType = Message['type'];

/** An event that this version cannot understand: the aggregate is unplannable until a newer one reads it. */
export type UnreadableEvent = {
  readonly type: 'unreadable';
  readonly aggregate: string;
  /** What it claimed to be. */
  readonly claimedType: string;
  readonly claimedVersion: number | null;
  readonly problem: string;
};

/** An event as a reader of the log sees it. */
export type StoredEvent = {
  /** Stream sequence in KRONOS_LOG. */
  readonly sequence: number;
  /** The server's stamp, ms since the epoch. */
  readonly storedAt: number;
  readonly event: LogEvent | UnreadableEvent;
};

export type ParseResult<M> =
  | { ok: true; message: M }
  | { ok: false; problem: string; type: string; version: number | null };

type Reader = { readonly schema: z.ZodType<Message>; readonly exact: Exact };

const readers = new Map<string, Reader>(
  Object.values(messagesByFamily)
    .flat()
    .map((s) => [s.shape.type.value, { schema: s as unknown as z.ZodType<Message>, exact: exact(s) }]),
);
const familyByType = new Map<string, Family>(
  Object.entries(messagesByFamily).flatMap(([family, schemas]) =>
    schemas.map((s): [string, Family] => [s.shape.type.value, family as Family]),
  ),
);

/** The subject family on which a type travels. */
export function familyOf(type: MessageType): Family {
  const family = familyByType.get(type);
  if (family === undefined) throw new RangeError(`no message type ${type}`);
  return family;
}

/** What a message is about, as its subject names it: its aggregate, the host of an inventory, the process of a heartbeat. */
export function nameOf(message: Message): string {
  if (message.type === 'inventory.reported') return message.data.host;
  if (message.type === 'service.reported') return instanceName(message.by.service, message.by.instance);
  return message.aggregate;
}

function headOf(body: unknown): { readonly type: string; readonly version: number } | null {
  if (typeof body !== 'object' || body === null || !('type' in body) || !('version' in body)) return null;
  const { type, version } = body;
  return typeof type === 'string' && typeof version === 'number' && Number.isFinite(version) ? { type, version } : null;
}

/**
 * Checks a parsed JSON body against the schema of its type. Never throws: a body that does not fit is described.
 * Fields that this version does not know are dropped, as within a version only optional ones are added; a body without
 * any is given back as it is.
 */
export function parseMessage(body: unknown): ParseResult<Message> {
  const head = headOf(body);
  if (head === null) return { ok: false, problem: 'no type and version', type: 'unknown', version: null };
  const { type, version } = head;
  const reader = readers.get(type);
  if (reader === undefined) return { ok: false, problem: `unknown type ${type}`, type, version };
  if (reader.exact(body)) return { ok: true, message: body as Message };
  const parsed = reader.schema.safeParse(body);
  if (parsed.success) return { ok: true, message: parsed.data };
  const issue = parsed.error.issues[0];
  const where = issue === undefined ? '' : `${issue.path.join('.') || 'body'}: ${issue.message}`;
  return { ok: false, problem: where, type, version };
}

/** {@link parseMessage} for a reader of the log: what it cannot read becomes an event that says so. */
export function readLogEvent(body: unknown, aggregate: string): LogEvent | UnreadableEvent {
  const parsed = parseMessage(body);
  if (parsed.ok) {
    const family = familyOf(parsed.message.type);
    if (family === 'plans' || family === 'results' || family === 'controls') return parsed.message as LogEvent;
    return {
      type: 'unreadable',
      aggregate,
      claimedType: parsed.message.type,
      claimedVersion: parsed.message.version,
      problem: `a ${family} message does not belong on the log`,
    };
  }
  return {
    type: 'unreadable',
    aggregate,
    claimedType: parsed.type,
    claimedVersion: parsed.version,
    problem: parsed.problem,
  };
}
