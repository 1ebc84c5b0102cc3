/** A command was given something it cannot use; exit status 2. */
export class UsageError extends Error {
  readonly code = 'KRONOS_USAGE';
  readonly remedy: string | undefined;

  constructor(message: string, remedy?: string) {
    super(message);
    this.name = 'UsageError';
    this.remedy = remedy;
  }
}
