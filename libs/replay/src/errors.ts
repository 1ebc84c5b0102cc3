/** Every error of record and replay: one class per meaning. README.md lists the codes. */

/** A recorded directory that cannot be used; the message names the file. */
export class RecordingInvalid extends Error {
  readonly code = 'KRONOS_RECORDING_INVALID';
  readonly remedy: string | undefined;

  constructor(file: string, problem: string, remedy?: string, options?: ErrorOptions) {
    super(`${file}: ${problem}`, options);
    this.name = 'RecordingInvalid';
    this.remedy = remedy;
  }
}

/** There is something already where a recording was to be written. */
export class RecordingExists extends Error {
  readonly code = 'KRONOS_RECORDING_EXISTS';
  readonly remedy = 'Give a directory that does not exist yet, or is empty.';

  constructor(directory: string) {
    super(`${directory} is not empty`);
    this.name = 'RecordingExists';
  }
}

/** There is nothing to record or to replay in the range. */
export class NothingRecorded extends Error {
  readonly code = 'KRONOS_NOTHING_RECORDED';
  readonly remedy: string;

  constructor(what: string, remedy: string) {
    super(what);
    this.name = 'NothingRecorded';
    this.remedy = remedy;
  }
}

/** A what-if with a policy whose queries were not recorded. */
export class PolicyNotRecorded extends Error {
  readonly code = 'KRONOS_POLICY_NOT_RECORDED';
  readonly remedy: string;
  readonly policy: string;

  constructor(policy: string, query: string, snapshotId: string, recorded: readonly string[]) {
    super(`policy ${policy}: the snapshot ${snapshotId} holds no answer to its query ${JSON.stringify(query)}`);
    this.name = 'PolicyNotRecorded';
    this.policy = policy;
    this.remedy = `A what-if can only use what was asked at the time, word for word: ${recorded.map((q) => JSON.stringify(q)).join(', ')}. Change thresholds, weights and budgets, or record again with the new query.`;
  }
}

/** The log does not have the decision, plan or VM to be explained. */
export class NotOnTheLog extends Error {
  readonly code = 'KRONOS_NOT_ON_THE_LOG';
  readonly remedy: string;
  /** Something was named that is not there; else there is simply nothing yet. */
  readonly named: boolean;

  constructor(what: string, remedy: string, { named = true }: { readonly named?: boolean } = {}) {
    super(what);
    this.name = 'NotOnTheLog';
    this.remedy = remedy;
    this.named = named;
  }
}

/** Whether there is no such file. */
export const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT';
