import { MAX_BREAKER_SECONDS, MAX_RETRY_WAIT_SECONDS } from '@kronos/contracts/limits';
import { bool, choice, EXECUTOR, integer, PLANNING, seconds } from '../option.ts';

/** The options of the section `[executor]`. */
export const executor = {
  max_concurrent_migrations: integer(4, {
    min: 1,
    by: EXECUTOR,
    help: 'Concurrency limit: moves in flight per aggregate, over all replicas of the executor.',
  }),
  max_outbound_per_host: integer(1, {
    min: 1,
    by: EXECUTOR,
    help: "Concurrency limit: moves in flight off one host. Nova's max_concurrent_live_migrations is 1 by default: further ones wait in Nova's queue.",
  }),
  max_inbound_per_host: integer(2, {
    min: 1,
    by: EXECUTOR,
    help: 'Concurrency limit: moves in flight onto one host. Nova has no such limit.',
  }),
  max_concurrent_per_group: integer(1, {
    min: 1,
    by: EXECUTOR,
    help: 'Concurrency limit: moves in flight of members of one server group.',
  }),
  max_retries: integer(3, { min: 0, max: 20, by: EXECUTOR, help: 'Number of attempts at a move after the first one.' }),
  retry_backoff: seconds(30, {
    min: 0,
    max: MAX_RETRY_WAIT_SECONDS,
    by: EXECUTOR,
    help: 'Backoff before the second attempt on the same destination; it doubles for each further one. The executor tries the next alternate at once.',
  }),
  retry_backoff_max: seconds(600, {
    min: 0,
    max: MAX_RETRY_WAIT_SECONDS,
    by: EXECUTOR,
    help: 'Maximum backoff between two attempts.',
  }),
  poll_interval: seconds(5, {
    min: 0.05,
    max: 300,
    by: EXECUTOR,
    help: 'Interval at which the executor asks Nova about a running migration.',
  }),
  queue_timeout: seconds(1800, {
    min: 1,
    by: EXECUTOR,
    help: 'How long a migration may wait in Nova until its status is running. The other deadlines count from that moment.',
  }),
  deadline_per_gib: seconds(60, {
    min: 0,
    by: EXECUTOR,
    help: "Deadline of a running migration per GiB of the VM's RAM and local disk. A slower migration that makes progress, or one between hosts whose former moves were slower, gets more time, up to hard_timeout. Nova's default is 800.",
  }),
  deadline_min: seconds(600, { min: 1, by: EXECUTOR, help: 'Shortest deadline of a running migration.' }),
  no_progress_timeout: seconds(600, {
    min: 1,
    by: EXECUTOR,
    help: 'A running migration whose remaining bytes have reached no new minimum for this long counts as past its deadline.',
  }),
  on_deadline: choice(['abort', 'wait'], 'abort', {
    by: EXECUTOR,
    help: 'Action at the deadline. abort: abort the migration. wait: wait until hard_timeout, then abort it.',
  }),
  hard_timeout: seconds(43200, {
    min: 1,
    by: EXECUTOR,
    help: 'Longest time of a running migration that is slow or has on_deadline=wait; then the executor aborts it. A longer deadline by size replaces it.',
  }),
  breaker_failures: integer(3, {
    min: 1,
    by: PLANNING,
    help: 'Host breaker: this many failed moves onto one host within breaker_window exclude it as a destination.',
  }),
  breaker_window: seconds(1800, {
    min: 1,
    max: MAX_BREAKER_SECONDS,
    by: PLANNING,
    help: 'Host breaker: the period in which failures count together.',
  }),
  breaker_duration: seconds(1800, {
    min: 1,
    max: MAX_BREAKER_SECONDS,
    by: PLANNING,
    help: 'Host breaker: how long the host is excluded.',
  }),
  dry_run: bool(false, {
    by: EXECUTOR,
    help: 'Check every task against the cloud, but never ask Nova to migrate. The result is migration.skipped.',
  }),
  force: bool(false, {
    by: EXECUTOR,
    help: "Bypass Nova's scheduler. Only for clouds below compute microversion 2.68. Each forced move is logged and recorded as forced.",
  }),
} as const;
