import { type Config, type Verify, verifyOf } from '@kronos/config';

/** Everything that the life of a task depends on besides the task itself. Durations are milliseconds. */
export interface TaskOptions {
  /** Attempts after the first one. */
  readonly maxRetries: number;
  /** Wait before the second attempt on the same destination; doubled for each further one. */
  readonly retryBackoffMs: number;
  readonly retryBackoffMaxMs: number;
  readonly pollIntervalMs: number;
  /** Limit of a migration's wait in Nova before it runs. */
  readonly queueTimeoutMs: number;
  readonly deadlinePerGibMs: number;
  readonly deadlineMinMs: number;
  /** A running migration without a new minimum of remaining bytes for this time counts as past its deadline. */
  readonly noProgressMs: number;
  readonly onDeadline: 'abort' | 'wait';
  readonly hardTimeoutMs: number;
  readonly dryRun: boolean;
  readonly force: boolean;
  /**
   * The first byte of an act on the cloud is written within this time or never: of the POST counted from before its started
   * event was written, of an abort from when it was decided.
   */
  readonly postWindowMs: number;
  /** An attempt without a migration in Nova is closed after this time at the earliest. */
  readonly takeoverMs: number;
  /** No more time than this passes between a pre-flight and the start of the attempt. */
  readonly checkTtlMs: number;
  /** A pre-flight whose reads took longer starts nothing: its first reads are too old. */
  readonly checkMaxMs: number;
  /** Time that Nova has, once a migration is over, to make the server's record consistent. */
  readonly settleMs: number;
  /** Time after which the row of a migration counts as lost, when Nova no longer lists it. */
  readonly rowGoneMs: number;
  /** Wait before an abort that Nova refused is asked for again. */
  readonly abortAgainMs: number;
  /** Longest wait between two tries while an API does not answer. */
  readonly blindMaxMs: number;
  /** Time for which the answers to a look are awaited once an operator closes the task with force. */
  readonly forcedLookMs: number;
  /** Number of requests for the reason of a failure when the API does not answer. */
  readonly explainTries: number;
  /** A task delivered more often than this may be a poison message: the executor works on it alone. */
  readonly suspectDeliveries: number;
  /**
   * A suspected task that was begun this many times in a row and crashed its executor each time is a dead letter; once it is started, it
   * is only tried less often. More than `suspectDeliveries`: until a poison message is suspected itself, it crashes executors
   * that work on a suspected task beside it.
   */
  readonly suspectTries: number;
  /** Delay of a task that is requeued to make room for others, and the first delay of a poison message. */
  readonly requeueMs: number;
  /** A check of a moved server may fail for this long after VERIFY_RESIZE before the move is reverted. */
  readonly verifyTimeoutMs: number;
  /** The additional check of a server that moved between cells. */
  readonly verify: Verify;
}

/** The defaults of the specification and of the option table. */
export const defaultTaskOptions: TaskOptions = {
  maxRetries: 3,
  retryBackoffMs: 30_000,
  retryBackoffMaxMs: 600_000,
  pollIntervalMs: 5_000,
  queueTimeoutMs: 1_800_000,
  deadlinePerGibMs: 60_000,
  deadlineMinMs: 600_000,
  noProgressMs: 600_000,
  onDeadline: 'abort',
  hardTimeoutMs: 43_200_000,
  dryRun: false,
  force: false,
  postWindowMs: 10_000,
  takeoverMs: 60_000,
  checkTtlMs: 10_000,
  checkMaxMs: 60_000,
  settleMs: 60_000,
  rowGoneMs: 600_000,
  abortAgainMs: 30_000,
  blindMaxMs: 60_000,
  forcedLookMs: 10_000,
  explainTries: 5,
  suspectDeliveries: 5,
  suspectTries: 6,
  requeueMs: 60_000,
  verifyTimeoutMs: 600_000,
  verify: { kind: 'none' },
};

/** From the configuration; a value without an option in kronos.conf keeps its default. */
export function taskOptions(config: Config): TaskOptions {
  const { executor, cells } = config;
  return {
    ...defaultTaskOptions,
    maxRetries: executor.maxRetries,
    retryBackoffMs: executor.retryBackoff * 1000,
    retryBackoffMaxMs: executor.retryBackoffMax * 1000,
    pollIntervalMs: executor.pollInterval * 1000,
    queueTimeoutMs: executor.queueTimeout * 1000,
    deadlinePerGibMs: executor.deadlinePerGib * 1000,
    deadlineMinMs: executor.deadlineMin * 1000,
    noProgressMs: executor.noProgressTimeout * 1000,
    onDeadline: executor.onDeadline,
    hardTimeoutMs: executor.hardTimeout * 1000,
    dryRun: executor.dryRun,
    force: executor.force,
    verifyTimeoutMs: cells.verifyTimeout * 1000,
    verify: verifyOf(cells.verify) ?? { kind: 'none' },
  };
}
