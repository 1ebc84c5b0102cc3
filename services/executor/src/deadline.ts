import { type Duration, gibOfMove } from '@kronos/rules';
import type { TaskOptions } from './options.ts';

/** Byte counts of a running migration as Nova reports them; null where the hypervisor has not said. */
export interface ProgressFacts {
  readonly memoryTotalBytes: number | null;
  readonly memoryProcessedBytes: number | null;
  readonly memoryRemainingBytes: number | null;
  readonly diskTotalBytes: number | null;
  readonly diskProcessedBytes: number | null;
  readonly diskRemainingBytes: number | null;
}

/** The observations of a migration while it ran. Times are readings of the monotonic clock, in milliseconds. */
export interface Watch {
  readonly runningSince: number;
  /** Least remaining bytes seen, and when; null before the first count. */
  readonly best: { readonly remainingBytes: number; readonly at: number } | null;
  /** Most bytes seen to be processed. */
  readonly memoryBytes: number | null;
  readonly diskBytes: number | null;
  /** Memory and local disk of the server, as far as Nova counts them. */
  readonly totalBytes: number | null;
}

export const startWatch = (at: number): Watch => ({
  runningSince: at,
  best: null,
  memoryBytes: null,
  diskBytes: null,
  totalBytes: null,
});

/** The watch after one more reading. */
export function watched(watch: Watch, progress: ProgressFacts | null, at: number): Watch {
  if (progress === null) return watch;
  const { memoryTotalBytes, memoryRemainingBytes, diskTotalBytes, diskRemainingBytes } = progress;
  const total = (memoryTotalBytes ?? 0) + (diskTotalBytes ?? 0);
  const remaining = (memoryRemainingBytes ?? 0) + (diskRemainingBytes ?? 0);
  const counts = total > 0 && memoryRemainingBytes !== null;
  const better = counts && (watch.best === null || remaining < watch.best.remainingBytes);
  return {
    runningSince: watch.runningSince,
    best: better ? { remainingBytes: remaining, at } : watch.best,
    memoryBytes: most(watch.memoryBytes, progress.memoryProcessedBytes),
    diskBytes: most(watch.diskBytes, progress.diskProcessedBytes),
    totalBytes: most(watch.totalBytes, total > 0 ? total : null),
  };
}

function most(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.max(a, b);
}

const GIB = 1024 ** 3;

/**
 * How long a migration may run, in milliseconds: by the size of the server. Slow links extend that, but not beyond `hardTimeoutMs`: to
 * twice what nearly all former moves like it needed, and to twice what all its bytes need at the pace at which it came to its least
 * remaining bytes. Fast links never shorten it: a server that writes more memory than the others is slow and makes progress.
 *
 * @param usual how long moves like it take, by former ones; null: not known
 */
export function deadlineMs(
  size: { readonly ramMb: number; readonly diskGb: number },
  { runningSince, best, totalBytes }: Watch,
  options: TaskOptions,
  usual: Duration | null = null,
): number {
  const gib = gibOfMove(size);
  const bySize = Math.max(options.deadlineMinMs, gib * options.deadlinePerGibMs);
  const byHistory = 2 * (usual?.interval?.highMs ?? 0);
  const copied = best === null || totalBytes === null ? 0 : totalBytes - best.remainingBytes;
  const byPace =
    best === null || totalBytes === null || copied <= 0 ? 0 : (2 * totalBytes * (best.at - runningSince)) / copied;
  return Math.max(bySize, Math.min(Math.max(byHistory, byPace), options.hardTimeoutMs));
}

/** The limits that a migration can be past. `abandoned`: not late, but idle while Nova does not call it over. */
export const OVERDUE = ['queue', 'deadline', 'no-progress', 'hard-timeout', 'abandoned'] as const;

export type Overdue = {
  readonly cause: (typeof OVERDUE)[number];
  /** The limit that it is past, in milliseconds. */
  readonly limitMs: number;
  readonly text: string;
};

/** Whether a migration has to be aborted by now. `since` is when it was first looked for, `usual` as for {@link deadlineMs}. */
export function overdue(
  run: { readonly watch: Watch | null; readonly since: number; readonly usual?: Duration | null },
  size: { readonly ramMb: number; readonly diskGb: number },
  at: number,
  options: TaskOptions,
): Overdue | null {
  const { watch, usual = null } = run;
  if (watch === null) {
    const limitMs = options.queueTimeoutMs;
    if (at - run.since < limitMs) return null;
    return { cause: 'queue', limitMs, text: `it waited in Nova for ${seconds(limitMs)} without running` };
  }
  const elapsed = at - watch.runningSince;
  const limitMs = deadlineMs(size, watch, options, usual);
  const late = elapsed >= limitMs;
  const stuck = watch.best !== null && at - watch.best.at >= options.noProgressMs;
  if (!late && !stuck) return null;
  if (options.onDeadline === 'wait') {
    const hardMs = Math.max(options.hardTimeoutMs, limitMs);
    if (elapsed < hardMs) return null;
    return { cause: 'hard-timeout', limitMs: hardMs, text: `it ran for ${seconds(hardMs)}, the hard limit` };
  }
  if (late)
    return { cause: 'deadline', limitMs, text: `it ran for ${seconds(limitMs)}, the limit for its size and pace` };
  const left = watch.best === null ? '' : `, ${(watch.best.remainingBytes / GIB).toFixed(2)} GiB remaining`;
  return {
    cause: 'no-progress',
    limitMs: options.noProgressMs,
    text: `it made no progress for ${seconds(options.noProgressMs)}${left}`,
  };
}

const seconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`;
