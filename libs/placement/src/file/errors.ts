/** A cluster file that cannot be planned: `field` is the place, the message states the required form. */
export class ClusterFileError extends Error {
  readonly code = 'KRONOS_PLACEMENT_CLUSTER_FILE';
  readonly field: string;

  constructor(field: string, problem: string) {
    super(`cluster file: ${field} ${problem}`);
    this.name = 'ClusterFileError';
    this.field = field;
  }
}
