/** Asks Prometheus: each query once per cycle, whichever policies and aggregates it serves. */

import { type Clock, limit as timeLimit } from '@kronos/clock';
import { errorText } from '@kronos/contracts';
import { BadQuery, isPlainSelector, type Prometheus, PrometheusUnauthorized, stalenessRange } from '@kronos/prometheus';
import { codeOf } from './collect.ts';
import { createLimiter } from './limit.ts';
import type { QueryAnswer, Question } from './readings.ts';

export interface QueryInput {
  readonly prometheus: Prometheus;
  readonly questions: readonly Question[];
  readonly stalenessMs: number;
  readonly clock: Clock;
  readonly concurrency: number;
  /** Without an answer for this time Prometheus counts as unreachable. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
  /** Runs around each question, for spans and metrics. */
  readonly around: (question: Question, ask: () => Promise<QueryAnswer>) => Promise<QueryAnswer>;
}

/**
 * The answers to all questions, in their order. An answer that could not be had says why.
 *
 * @throws the signal's reason when it aborts; nothing else.
 */
export async function askAll(input: QueryInput): Promise<QueryAnswer[]> {
  const limit = createLimiter(input.concurrency);
  const late = timeLimit(input.clock, input.deadlineMs);
  const deadline = late.signal;
  const signal = AbortSignal.any([input.signal, deadline]);
  let reachable: Promise<string> | undefined;
  const reachability = (): Promise<string> => {
    reachable ??= input.prometheus.runtimeInfo({ signal }).then(
      () => 'it answers /api/v1/status/runtimeinfo',
      () => 'it does not answer /api/v1/status/runtimeinfo either',
    );
    return reachable;
  };

  const ask = async ({ query }: Question): Promise<QueryAnswer> => {
    const timeMs = input.clock.now();
    const plain = isPlainSelector(query);
    const { prometheus } = input;
    const [instant, range, timestamps] = await Promise.allSettled([
      prometheus.instant(query, { timeMs, signal }),
      prometheus.range(query, stalenessRange(timeMs, input.stalenessMs), { signal }),
      plain ? prometheus.instant(`timestamp(${query})`, { timeMs, signal }) : undefined,
    ]);
    input.signal.throwIfAborted();
    const failed = [instant, range, timestamps].find((one) => one.status === 'rejected');
    return {
      query,
      timeMs,
      instant: instant.status === 'fulfilled' ? instant.value.samples : null,
      range: range.status === 'fulfilled' ? range.value.series : null,
      timestamps: !plain ? undefined : timestamps.status === 'fulfilled' ? (timestamps.value?.samples ?? null) : null,
      failure: failed === undefined ? null : await failureOf(failed.reason),
      // The age of the values is judged by all three.
      warnings: [
        ...new Set(
          [instant, range, timestamps].flatMap((one) =>
            one.status === 'fulfilled' ? (one.value?.warnings ?? []) : [],
          ),
        ),
      ],
    };
  };

  const failureOf = async (error: unknown): Promise<NonNullable<QueryAnswer['failure']>> => {
    if (error instanceof BadQuery) return { kind: 'refused', code: error.code, text: error.message };
    if (deadline.aborted) {
      const text = `Prometheus did not answer within ${input.deadlineMs / 1000} s`;
      return { kind: 'unreachable', code: 'KRONOS_HTTP_TIMEOUT', text };
    }
    const text = errorText(error);
    // Its answer is the reason: whether it answers other requests says no more.
    if (error instanceof PrometheusUnauthorized) return { kind: 'unreachable', code: error.code, text };
    return { kind: 'unreachable', code: codeOf(error), text: `${text}; ${await reachability()}` };
  };

  try {
    return await Promise.all(
      input.questions.map((question) => limit(() => input.around(question, () => ask(question)))),
    );
  } finally {
    late.clear();
  }
}
