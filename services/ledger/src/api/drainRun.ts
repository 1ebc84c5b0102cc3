import { nextRunAct, progressOf, progressText, runHostOf } from '@kronos/operator';
import type { AggregateState } from '@kronos/projections';
import { ApiError } from './answer.ts';
import { MOST_DRAINS } from './endpoints.ts';
import { limitOf, numberParameter } from './query.ts';
import type { ApiAnswer } from './schemas.ts';

/** The progress of drains in turn, and the next act. Pure. The query has the whole run, so that its address is enough. @throws ApiError */
export function drainRunAnswer(state: AggregateState, sequence: number, query: URLSearchParams): ApiAnswer<'drainRun'> {
  const names = [...new Set(query.getAll('host'))];
  if (names.length === 0 || names.length > MOST_DRAINS)
    throw new ApiError(400, `name 1 to ${MOST_DRAINS} hosts: ?host=NAME&host=NAME`);
  const { aggregate } = state;
  const since = numberParameter(query, 'since') ?? 0;
  const maxParallel = limitOf(query, { name: 'parallel', usual: 1, most: MOST_DRAINS });
  const hosts = names.map((host) => runHostOf({ aggregate, host, since }, state));
  return {
    aggregate,
    sequence,
    hosts: hosts.map((one) => {
      const progress = progressOf(one, state);
      return { host: one.host, state: progress.at, text: progressText(progress) };
    }),
    next: next(nextRunAct(hosts, () => state, { maxParallel, rolling: query.get('rolling') === 'true' })),
  };
}

function next(act: ReturnType<typeof nextRunAct>): ApiAnswer<'drainRun'>['next'] {
  switch (act.do) {
    case 'drain':
      return { act: 'drain', host: act.host.host, problem: null };
    // The maintenance is a person's here, who ends the drain after it: a browser gives no commands to machines.
    case 'hook':
    case 'undrain':
      return { act: 'maintain', host: act.host.host, problem: null };
    case 'wait':
      return { act: 'wait', host: null, problem: null };
    case 'end':
      return { act: 'end', host: null, problem: act.problem };
  }
}
