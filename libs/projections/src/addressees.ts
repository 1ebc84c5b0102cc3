/**
 * The types of which the aggregate may be `_all_`. The definitions of the events say the same (`addressAll` of contracts, which
 * `addressees.unit.test.ts` compares), but they hold the schemas, which the fold does without in a browser. Pure.
 */
export const ADDRESS_ALL: ReadonlySet<string> = new Set([
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
