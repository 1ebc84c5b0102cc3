import { timeMs } from '@kronos/contracts';

/** Rows of Nova's migrations that nobody works on any more. Pure. */

/**
 * Time without a change after which a row that contradicts its server no longer counts. Longer than Nova ever takes to make its records
 * consistent, and longer than the interval at which a compute notes the progress of a migration.
 */
const ABANDONED_AFTER_MS = 300_000;

/** The statuses in which a compute works on a live migration: meanwhile its server has the task state `migrating`. */
const AT_WORK: ReadonlySet<string> = new Set(['queued', 'preparing', 'running', 'running (post-copy)']);

/** A row of Nova's migrations. Times as ISO 8601. */
type Row = {
  readonly type: string;
  readonly status: string;
  readonly createdAt: string;
  readonly updatedAt: string | null;
};
type Seen = {
  readonly cellDown: boolean;
  readonly host: string | null;
  readonly status: string;
  readonly taskState: string | null;
};

/**
 * Whether Nova has abandoned the migration: its server is idle on a known host, and the row has not changed for long. A restarted
 * compute leaves such rows for ever (`queued` and `preparing` rows are no part of its clean-up at start). A person who resets the state of a
 * server in VERIFY_RESIZE leaves one, too: nobody can confirm or revert that move any more.
 *
 * @param server as it was read beside the row; undefined: it was not
 */
export function isAbandoned(row: Row, server: Seen | undefined, nowMs: number): boolean {
  if (server === undefined || server.cellDown || server.host === null || server.taskState !== null) return false;
  const waits = row.type !== 'live-migration' && row.status === 'finished' && server.status !== 'VERIFY_RESIZE';
  const worked = row.type === 'live-migration' && AT_WORK.has(row.status);
  if (!waits && !worked) return false;
  const changedMs = timeMs(row.updatedAt ?? row.createdAt);
  // A time that cannot be read proves nothing: the row counts.
  return nowMs - changedMs >= ABANDONED_AFTER_MS;
}
