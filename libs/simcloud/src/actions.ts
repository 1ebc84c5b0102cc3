/** Instance actions and their events: how Nova tells afterwards what happened. */
import type { Action, ActionEvent, Migration, Server } from './model.ts';
import type { Caller, CloudState } from './state.ts';

/** @param caller null: something that Nova's API was not asked for */
export function recordAction(
  s: CloudState,
  server: Server,
  action: string,
  { caller, atMs = s.nowMs }: { readonly caller: Caller | null; readonly atMs?: number },
): void {
  const entry: Action = {
    requestId: caller?.requestId ?? `req-${s.random.uuid()}`,
    serverUuid: server.uuid,
    action,
    userId: caller?.userId ?? s.admin.id,
    projectId: caller?.projectId ?? server.projectId,
    startMs: atMs,
    updatedMs: atMs,
    message: null,
    events: [],
  };
  const list = s.actions.get(server.uuid);
  if (list === undefined) s.actions.set(server.uuid, [entry]);
  else list.push(entry);
}

/** The key of an action. */
type Request = Pick<Migration, 'serverUuid' | 'requestId'>;

export function actionOf(s: CloudState, migration: Request): Action | undefined {
  return s.actions.get(migration.serverUuid)?.findLast((action) => action.requestId === migration.requestId);
}

/** `cell`: only this cell's record of the action has the event. */
export function beginEvent(
  s: CloudState,
  migration: Request,
  event: string,
  { host, cell = null }: { readonly host: string; readonly cell?: string | null },
): ActionEvent | undefined {
  const action = actionOf(s, migration);
  if (action === undefined) return undefined;
  const entry: ActionEvent = {
    event,
    host,
    startMs: s.nowMs,
    finishMs: null,
    result: null,
    details: null,
    cell,
    traceback: null,
  };
  action.events.push(entry);
  action.updatedMs = s.nowMs;
  return entry;
}

/** Before its server enters another cell, that cell gets a copy of the action, whose events so far never end there. */
export function copyEvents(s: CloudState, migration: Request, from: string, to: string): void {
  const action = actionOf(s, migration);
  if (action === undefined) return;
  const copies = action.events.map((event) => ({ ...event, cell: to }));
  for (const event of action.events) event.cell = from;
  action.events.push(...copies);
}

export function endEvent(
  s: CloudState,
  migration: Request,
  event: string,
  { error, cell = null }: { readonly error?: string | undefined; readonly cell?: string | null } = {},
): void {
  const action = actionOf(s, migration);
  const entry = action?.events.findLast((each) => each.event === event && each.finishMs === null && each.cell === cell);
  if (action === undefined || entry === undefined) return;
  entry.finishMs = s.nowMs;
  entry.result = error === undefined ? 'Success' : 'Error';
  if (error !== undefined) {
    entry.details = error;
    entry.traceback = `  File "/usr/lib/python3/dist-packages/nova/conductor/manager.py"\n\n    ${error}\n`;
  }
  action.updatedMs = s.nowMs;
}

export function conductorEvent(migration: Migration): string {
  return migration.synchronous || migration.type !== 'live-migration'
    ? 'conductor_migrate_server'
    : 'conductor_live_migrate_instance';
}
