import { attemptIn, type StoredEvent } from '@kronos/contracts';
import { contextFrom } from '@kronos/eventlog';
import { attemptAttributes, attributes, spans } from '@kronos/telemetry';
import { type Attributes, SpanKind, type Tracer } from '@opentelemetry/api';

/** Records that an event reached the ledger, in the trace of the one who wrote it: a migration's trace ends here. */
export function traceArrival(
  tracer: Tracer,
  stored: StoredEvent & { readonly subject: string; readonly traceparent: string | null },
): void {
  if (stored.traceparent === null) return;
  const parent = contextFrom(stored.traceparent);
  const span = tracer.startSpan(spans.fold, { kind: SpanKind.CONSUMER, attributes: attributesOf(stored) }, parent);
  span.end();
}

/** The attributes of an event's span. */
function attributesOf({ event, sequence, subject }: StoredEvent & { readonly subject: string }): Attributes {
  const about: Attributes = {
    'messaging.system': 'nats',
    'messaging.operation.type': 'process',
    'messaging.destination.name': subject,
    [attributes.aggregate]: event.aggregate,
    [attributes.sequence]: sequence,
  };
  if (event.type === 'unreadable') return { ...about, [attributes.errorType]: 'unreadable' };
  about['messaging.message.id'] = event.id;
  about[attributes.correlationId] = event.correlationId;
  if (event.type === 'cycle.decided')
    return {
      ...about,
      [attributes.snapshotId]: event.data.snapshotId,
      [attributes.outcome]: event.data.outcome,
      [attributes.reason]: event.data.reason.code,
    };
  const attempt = attemptIn(event);
  if (attempt === null) return about;
  return {
    ...about,
    ...attemptAttributes(attempt),
    ...(event.type === 'migration.observed' ? { [attributes.novaMigrationId]: event.data.migrationId } : {}),
  };
}
