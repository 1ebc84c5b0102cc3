/** Errors of the executor's start. */

/** The command line names an aggregate that the configuration does not have. */
export class UnknownAggregate extends Error {
  readonly code = 'KRONOS_EXECUTOR_UNKNOWN_AGGREGATE';
  readonly remedy: string;

  constructor(name: string, scope: readonly string[]) {
    super(`the aggregate ${name} is not in scope`);
    this.name = 'UnknownAggregate';
    this.remedy = `Name one of these, or add it to [engine] aggregates: ${scope.join(', ')}.`;
  }
}
