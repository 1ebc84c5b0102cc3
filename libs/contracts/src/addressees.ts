/** The types of which the aggregate may be `_all_`, from the definitions of the messages (npm run generate makes it). */
export const addressAll: ReadonlySet<string> = new Set([
  'aggregate.paused',
  'aggregate.resumed',
  'evaluation.requested',
  'event.skipped',
  'host.released',
  'installation.created',
  'instance.quarantined',
  'instance.unquarantined',
  'migration.aborted',
  'migration.cancelled',
  'migration.closed',
  'migration.confirmAsked',
  'migration.revertAsked',
  'plan.approved',
  'plan.rejected',
]);
