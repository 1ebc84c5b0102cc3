/** A cluster file that cannot be planned: `field` is the place; the message begins with it and states the required form. */
export class ClusterFileError extends Error {
  readonly code = 'KRONOS_PLACEMENT_CLUSTER_FILE';
  readonly field: string;

  constructor(field: string, problem: string) {
    super(`${field} ${problem}`);
    this.name = 'ClusterFileError';
    this.field = field;
  }
}
