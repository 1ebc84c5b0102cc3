/** Instance actions and their events: how Nova tells afterwards what happened. */
import type { Action, ActionEvent, Migration, Server } from './model.ts';
import type { Caller, CloudState } from './state.ts';

export function recordAction(s: CloudState, server: Server, action: string, caller: Caller | null, atMs: number): void {
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

export function actionOf(s: CloudState, migration: Migration): Action | undefined {
  return s.actions.get(migration.serverUuid)?.findLast((action) => action.requestId === migration.requestId);
}

export function beginEvent(s: CloudState, migration: Migration, event: string, host: string): ActionEvent | undefined {
  const action = actionOf(s, migration);
  if (action === undefined) return undefined;
  const entry: ActionEvent = {
    event,
    host,
    startMs: s.nowMs,
    finishMs: null,
    result: null,
    details: null,
    traceback: null,
  };
  action.events.push(entry);
  action.updatedMs = s.nowMs;
  return entry;
}

export function endEvent(s: CloudState, migration: Migration, event: string, error?: string): void {
  const action = actionOf(s, migration);
  const entry = action?.events.findLast((each) => each.event === event && each.finishMs === null);
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
  return migration.synchronous || migration.type === 'migration'
    ? 'conductor_migrate_server'
    : 'conductor_live_migrate_instance';
}
